package episode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/jsonlog"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/pkg/schema"
)

// line is a line of a transcript, in the format of the agent's transcripts. The members after
// Results exist only for episodes.
type line struct {
	Type     string            `json:"type"`
	Time     time.Time         `json:"time"`
	Session  string            `json:"session,omitempty"`
	Model    string            `json:"model,omitempty"`
	Turn     int               `json:"turn,omitempty"`
	Body     json.RawMessage   `json:"body,omitempty"` // {"text":…} if the calls are in the text of the answer
	Key      string            `json:"idempotency_key,omitempty"`
	Text     string            `json:"text,omitempty"`
	Stop     string            `json:"stop,omitempty"`
	Messages []json.RawMessage `json:"messages,omitempty"`
	Calls    []lineCall        `json:"calls,omitempty"`
	Results  []lineResult      `json:"results,omitempty"`

	Environment string   `json:"environment,omitempty"`
	Task        string   `json:"task,omitempty"`
	FinishTool  string   `json:"finish_tool,omitempty"`
	Seed        int64    `json:"seed,omitempty"`
	Reward      *float64 `json:"reward,omitempty"`
	Masked      bool     `json:"masked,omitempty"`
	FailureKind string   `json:"failure_kind,omitempty"`
}

// lineCall has the same member names as the agent's calls.
type lineCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
}

type lineResult struct {
	ID        string        `json:"id,omitempty"`
	Name      string        `json:"name"`
	CallID    schema.CallID `json:"call_id,omitempty"`
	State     string        `json:"state"`
	ToolError bool          `json:"tool_error,omitempty"`
}

// record buffers the lines of a transcript. They are written when the episode is closed, so that no
// step waits for the disk.
type record struct{ lines bytes.Buffer }

// keeps reports whether the episode has a transcript.
func (ep *Episode) keeps() bool { return ep.m.o.File.Transcripts != "" && !ep.oracle }

func (r *record) add(l *line) {
	if text, err := plainjson.Line(l); err == nil { // a line that cannot be encoded is dropped
		r.lines.Write(text)
	}
}

func (r *record) begin(ep *Episode, now time.Time) {
	if !ep.keeps() {
		return
	}
	r.add(&line{Type: "session", Time: now.UTC(), Session: ep.id, Environment: ep.env.name, Task: ep.task.ID, FinishTool: ep.env.FinishTool, Seed: ep.seed})
	user := message(map[string]any{"role": "user", "content": ep.prompt})
	r.add(&line{Type: "user", Time: now.UTC(), Text: ep.prompt, Messages: []json.RawMessage{user}})
}

// note records a step: the model's output and the observations.
func (ep *Episode) note(turn int, text string, made []eval.Call, seen []*Observation) {
	if !ep.keeps() {
		return
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	now := ep.m.o.Now().UTC()
	answer := line{Type: "answer", Time: now, Turn: turn, Key: fmt.Sprintf("%s.%d", ep.key, turn), Text: text}
	if text != "" {
		answer.Body = message(map[string]any{"text": text})
	}
	results := line{Type: "results", Time: now}
	calls := []map[string]any{}
	for i, c := range made {
		id := fmt.Sprintf("call_%d_%d", turn, i)
		answer.Calls = append(answer.Calls, lineCall{ID: id, Name: c.Name, Arguments: c.Arguments})
		calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)}})
		if i < len(seen) {
			results.add(id, seen[i])
		}
	}
	said := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 && text == "" {
		said["tool_calls"] = calls
	}
	answer.Messages = []json.RawMessage{message(said)}
	ep.written.add(&answer)
	if len(results.Results) > 0 {
		ep.written.add(&results)
	}
}

func (l *line) add(id string, o *Observation) {
	state, body := "succeeded", string(o.Result)
	if o.Error != nil {
		state, body = "failed", o.Error.Message
		if o.FailureKind == FailureUnknown || o.Error.Type == ErrorTimeout {
			state = "unknown"
		}
	}
	l.Results = append(l.Results, lineResult{ID: id, Name: o.Tool, CallID: o.CallID, State: state, ToolError: o.ToolError})
	l.Messages = append(l.Messages, message(map[string]any{"role": "tool", "tool_call_id": id, "content": body}))
}

func message(m map[string]any) json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

func (r *record) end(ep *Episode, outcome string) {
	if !ep.keeps() {
		return
	}
	l := line{Type: "end", Time: ep.m.o.Now().UTC(), Stop: outcome}
	if ep.final != nil {
		l.Reward, l.Masked, l.FailureKind = ep.final.Reward, ep.final.Masked, ep.final.FailureKind
	}
	r.add(&l)
}

// save writes the transcript to a new file and syncs it to disk.
func (r *record) save(ep *Episode) error {
	if !ep.keeps() {
		return nil
	}
	dir := filepath.Join(ep.m.o.File.Transcripts, ep.env.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, _, err := jsonlog.Open(filepath.Join(dir, ep.key+".jsonl"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Write(r.lines.Bytes()), f.Close())
}
