package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/jsonlog"
)

// The types of lines of a transcript.
const (
	entrySession = "session"
	entryUser    = "user"
	entryAnswer  = "answer"  // of the model, written before its calls run
	entryResults = "results" // of the calls of the answer
	entryEnd     = "end"     // the answer had no calls, or they were not sent
	entryTools   = "tools"   // more tools shown to the model
	entryUnsent  = "unsent"  // a budget stopped the calls of the answer
	entrySent    = "sent"    // the calls are sent after all
)

// entry is a line of a transcript.
type entry struct {
	Type     string            `json:"type"`
	Time     time.Time         `json:"time"`
	Session  string            `json:"session,omitempty"`
	Model    string            `json:"model,omitempty"`
	Forked   string            `json:"forked_from,omitempty"`
	Turn     int               `json:"turn,omitempty"`
	Key      string            `json:"idempotency_key,omitempty"`
	Text     string            `json:"text,omitempty"`
	Stop     string            `json:"stop,omitempty"`
	Messages []json.RawMessage `json:"messages,omitempty"` // part of the conversation
	Body     json.RawMessage   `json:"body,omitempty"`     // of the answer, or {"text":…}
	Calls    []model.Call      `json:"calls,omitempty"`
	Own      []string          `json:"own,omitempty"`    // names of calls that are not sent to Callyard
	Tools    []string          `json:"tools,omitempty"`  // names of tools
	Search   bool              `json:"search,omitempty"` // find_tools is offered
	Results  []CallResult      `json:"results,omitempty"`
	Usage    *model.Usage      `json:"usage,omitempty"`
}

// Transcript is a session in a file, which it locks. It must be used by one goroutine at a time.
type Transcript struct {
	ID    string // of the session
	Model string

	path       string
	file       *jsonlog.File
	unused     bool // this process created the file, and no prompt was sent
	messages   []json.RawMessage
	turns      int
	lastAnswer *entry // the answer whose calls have no results yet, or nil
	unsent     bool   // a budget stopped the calls of lastAnswer before they were sent
	user       string // the last prompt
	waiting    bool   // for an answer of the model
	tools      []string
	search     bool
}

// NewTranscript creates the file of a new session. If path is a directory with a trailing slash, or
// empty, the file is named after the session. It returns an error if the file exists.
func NewTranscript(path, modelName string) (*Transcript, error) {
	t := &Transcript{ID: "agent_" + strings.ToLower(rand.Text()), Model: modelName, path: path}
	if t.path == "" || strings.HasSuffix(path, string(filepath.Separator)) {
		t.path = filepath.Join(path, t.ID+".jsonl")
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the transcript: %w", err)
	}
	var err error
	if t.file, _, err = jsonlog.Open(t.path, os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, fmt.Errorf("creating the transcript: %w", err)
	}
	return t, t.append(entry{Type: entrySession, Session: t.ID, Model: modelName})
}

// OpenTranscript continues a session. It removes a last line that is incomplete after a kill, which
// is safe because the entry has had no effect yet. The error is [jsonlog.ErrInUse] while another
// process has the session open.
func OpenTranscript(path string) (*Transcript, error) {
	t := &Transcript{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no session to continue at %s: %w", path, fs.ErrNotExist)
	}
	if err == nil && !isTranscript(text) {
		return nil, notTranscript(path) // do not open it: that would remove its last line
	}
	if err == nil {
		t.file, text, err = jsonlog.Open(path, 0, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the transcript: %w", err)
	}
	if err := t.load(text); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// load reads all lines.
func (t *Transcript) load(text []byte) error {
	n := 0
	for line := range bytes.Lines(bom.Trim(text)) {
		n++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d is not a line of a transcript: %w", t.path, n, err)
		}
		t.take(&e)
	}
	if t.ID == "" {
		return notTranscript(t.path)
	}
	return nil
}

// isTranscript reports whether the text begins with a session entry.
func isTranscript(text []byte) bool {
	line, _, _ := bytes.Cut(bom.Trim(text), []byte{'\n'})
	var e entry
	return json.Unmarshal(line, &e) == nil && e.Type == entrySession && e.Session != ""
}

func notTranscript(path string) error {
	return fmt.Errorf("%s is not a transcript: it does not begin with a session", path)
}

// take updates the state with an entry.
func (t *Transcript) take(e *entry) {
	t.messages = append(t.messages, e.Messages...)
	switch e.Type {
	case entrySession:
		t.ID, t.Model = e.Session, e.Model
	case entryUser:
		t.user, t.lastAnswer, t.waiting = e.Text, nil, true
	case entryAnswer:
		t.turns, t.lastAnswer, t.unsent, t.waiting = e.Turn, e, false, false
	case entryTools:
		t.tools, t.search = append(t.tools, e.Tools...), e.Search
	case entryUnsent, entrySent:
		t.unsent = e.Type == entryUnsent
	case entryResults, entryEnd:
		t.lastAnswer, t.waiting = nil, e.Type == entryResults
	}
}

// append writes a line and syncs it to disk.
func (t *Transcript) append(e entry) error {
	e.Time = time.Now().UTC()
	if err := t.file.Append(&e); err != nil {
		return fmt.Errorf("writing the transcript: %w", err)
	}
	t.take(&e)
	t.unused = e.Type == entrySession
	return nil
}

// mark notes whether a budget stopped the calls of the last answer: entryUnsent or entrySent. The
// note is on disk before the calls are sent, so that a later process neither sends calls that a
// prompt replaces nor reports calls that ran as not run.
func (t *Transcript) mark(kind string) error {
	if t.unsent == (kind == entryUnsent) {
		return nil
	}
	return t.append(entry{Type: kind, Turn: t.turns})
}

// Messages returns the conversation so far.
func (t *Transcript) Messages() []json.RawMessage { return t.messages }

// Format returns the format of the conversation so far. It is "" if the conversation is empty or the
// session does not name its model.
func (t *Transcript) Format() format.Format {
	spec, err := model.ParseSpec(t.Model)
	if err != nil || len(t.messages) == 0 {
		return ""
	}
	return spec.Format()
}

// Interrupted reports whether the session stopped before the model's final answer.
func (t *Transcript) Interrupted() bool { return t.lastAnswer != nil || t.waiting }

// Path returns the path of the file.
func (t *Transcript) Path() string { return t.path }

// Fork copies the session to a new file in the same directory, with a new id. Calls without a
// result keep their idempotency key, so they do not run twice.
func (t *Transcript) Fork() (*Transcript, error) {
	text, err := os.ReadFile(t.path)
	if err != nil {
		return nil, fmt.Errorf("reading the transcript: %w", err)
	}
	fork, err := NewTranscript(filepath.Dir(t.path)+string(filepath.Separator), t.Model)
	if err != nil {
		return nil, err
	}
	_, rest, _ := bytes.Cut(text, []byte{'\n'}) // without the session entry
	if err := fork.file.Write(rest); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the transcript: %w", err), fork.Close())
	}
	fork.unused = false
	if err := fork.Close(); err != nil {
		return nil, err
	}
	return OpenTranscript(fork.path)
}

// Close unlocks the file. It removes the file if the session is new and no prompt was sent, because
// such a session cannot be continued.
func (t *Transcript) Close() error {
	if t.unused {
		_ = os.Remove(t.path) // a leftover file is harmless
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("closing the transcript: %w", err)
	}
	return nil
}

// Latest returns the path of the transcript in dir that was modified last.
func Latest(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "agent_*.jsonl"))
	if err != nil {
		return "", fmt.Errorf("looking for transcripts: %w", err)
	}
	var latest string
	var at time.Time
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.ModTime().After(at) {
			latest, at = f, info.ModTime()
		}
	}
	if latest == "" {
		return "", fmt.Errorf("there is no session to continue in %s", dir)
	}
	return latest, nil
}
