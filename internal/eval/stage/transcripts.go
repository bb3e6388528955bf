package stage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/eval"
)

// findTools is the tool with which a model of callyard agent looks for others.
const findTools = "find_tools"

// step is a line of a transcript of callyard agent or of an episode, as far as it is read.
type step struct {
	Type    string          `json:"type"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Task    string          `json:"task"`
	Finish  string          `json:"finish_tool"`
	Text    string          `json:"text"`
	Body    json.RawMessage `json:"body"`
	Calls   []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"calls"`
	Masked bool `json:"masked"`
}

// transcript is what a transcript says of an answer.
type transcript struct {
	path     string
	began    time.Time
	response eval.Response
	answers  int
	masked   bool
}

// Transcripts makes responses of the transcripts in a folder, which are its files *.jsonl: those of
// episodes and those of sessions of callyard agent. An episode answers the sample with the id of
// its task, a session the sample whose question is its first prompt; the response of one that
// answers none has the id of the session. Several answers to a sample are numbered in the order
// in which they began. What a model called over all its turns is one response; the finish tool
// of an episode and the agent's search for tools are no calls. Masked episodes have no valid
// result, and transcripts without an answer have none: they are left out, and counted in
// leftOut. The text is that of a file of responses.
func Transcripts(folder string, samples []Sample) (text []byte, leftOut int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, 0, fmt.Errorf("looking for transcripts: %w", err)
	}
	if len(files) == 0 {
		return nil, 0, fmt.Errorf("%s has no transcript, which is a file *.jsonl: name the folder of one environment, or that of the sessions", folder)
	}
	byQuestion := make(map[string]string, len(samples))
	for i := range samples {
		byQuestion[strings.TrimSpace(samples[i].Question)] = samples[i].ID
	}
	var all []*transcript
	for _, path := range files {
		t, err := readTranscript(path, byQuestion)
		switch {
		case err != nil:
			return nil, 0, err
		case t.masked || t.answers == 0:
			leftOut++
		default:
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *transcript) int {
		return cmp.Or(cmp.Compare(a.response.ID, b.response.ID), a.began.Compare(b.began), cmp.Compare(a.path, b.path))
	})
	responses := make([]eval.Response, len(all))
	for i, t := range all {
		responses[i] = t.response
		if i > 0 && responses[i-1].ID == t.response.ID {
			responses[i].Trial = responses[i-1].Trial + 1
		}
	}
	chunks, err := linesOf(ResponsesFile, responses)
	return bytes.Join(chunks, nil), leftOut, err
}

// readTranscript reads one file. A last line that a kill left incomplete is left out.
func readTranscript(path string, byQuestion map[string]string) (*transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	steps, err := linesIn(path, text[:bytes.LastIndexByte(text, '\n')+1], func(*step, []byte) error { return nil })
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 || steps[0].Type != "session" {
		return nil, fmt.Errorf("%s is not a transcript: it does not begin with a session", path)
	}
	return takeSteps(path, steps, byQuestion)
}

func takeSteps(path string, steps []step, byQuestion map[string]string) (*transcript, error) {
	begin := &steps[0]
	t := &transcript{path: path, began: begin.Time, response: eval.Response{ID: begin.Task}}
	var calls []map[string]any
	var said []string
	for i := range steps {
		s := &steps[i]
		t.masked = t.masked || s.Masked
		if s.Type == "user" && t.response.ID == "" {
			if t.response.ID = byQuestion[strings.TrimSpace(s.Text)]; t.response.ID == "" {
				t.response.ID = begin.Session
			}
		}
		if s.Type != "answer" {
			continue
		}
		t.answers++
		if s.Text != "" {
			said = append(said, s.Text)
		}
		if bytes.HasPrefix(s.Body, []byte(`{"text":`)) {
			continue // its calls are in its text
		}
		for _, c := range s.Calls {
			if c.Name == findTools || c.Name == begin.Finish && begin.Finish != "" {
				continue
			}
			if len(c.Arguments) == 0 {
				c.Arguments = json.RawMessage("{}")
			}
			calls = append(calls, map[string]any{
				"id": fmt.Sprintf("call_%d", len(calls)), "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)},
			})
		}
	}
	t.response.ID = cmp.Or(t.response.ID, begin.Session)
	if t.response.ID == "" {
		return nil, errors.New(path + " is not a transcript: its session has no id")
	}
	t.response.Text = strings.Join(said, "\n")
	if len(calls) > 0 {
		message, err := json.Marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls})
		if err != nil {
			return nil, fmt.Errorf("encoding the calls of %s: %w", path, err)
		}
		t.response.Message = message
	}
	return t, nil
}
