package stage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/bom"
)

// findTools is the tool with which a model of callyard agent searches for other tools.
const findTools = "find_tools"

// step is a line of a transcript of callyard agent or of an episode. It has only the members that
// are used.
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
	Results []struct {
		Name   string `json:"name"`
		Server string `json:"server"`
		Tool   string `json:"tool"`
	} `json:"results"`
	Masked bool `json:"masked"`
}

// transcript is the content of a transcript that is relevant to an answer.
type transcript struct {
	path     string
	began    time.Time
	response eval.Response
	answers  int
	masked   bool
}

// maxFirstLine is the maximum length in bytes of the first line of a transcript.
const maxFirstLine = 64 << 10

// IsTranscript reports whether a file starts like a transcript. It returns false for an unreadable
// file.
func IsTranscript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // opened for reading only
	begin, err := io.ReadAll(io.LimitReader(f, maxFirstLine))
	if err != nil {
		return false
	}
	first, _, _ := bytes.Cut(bom.Trim(begin), []byte("\n"))
	var s step
	return json.Unmarshal(first, &s) == nil && s.Type == "session"
}

// Transcripts converts transcripts to responses. path is a transcript, or a folder whose *.jsonl
// files are the transcripts of episodes and of sessions of callyard agent. An episode answers the
// sample with the id of its task. A session answers the sample whose prompts are its own first
// prompts; if there is none, the response has the id of the session. Several answers to a sample are
// numbered in the order in which they began.
//
// The answer to a conversation has the calls of each turn, which begins with a prompt. Otherwise all
// calls of the model in all turns form one response. The finish tool of an episode and the agent's
// search for tools are not calls. Masked episodes, which have no valid result, and transcripts
// without an answer are left out and counted in leftOut. The text is that of a file of responses.
func Transcripts(path string, samples []Sample) (text []byte, leftOut int, err error) {
	files := []string{path}
	info, err := os.Stat(path)
	folder := err == nil && info.IsDir()
	if folder {
		if files, err = filepath.Glob(filepath.Join(path, "*.jsonl")); err != nil {
			return nil, 0, fmt.Errorf("looking for transcripts: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, 0, fmt.Errorf("%s has no transcript, which is a file *.jsonl: name the folder of one environment, or that of the sessions", path)
	}
	known := newSampleFinder(samples)
	var all []*transcript
	for _, path := range files {
		t, err := readTranscript(path, known)
		switch {
		case folder && errors.Is(err, errNoLine):
			leftOut++
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

// errNoLine means that a file has no complete line. A process that was killed leaves such a file.
var errNoLine = errors.New("it has no complete line")

// readTranscript reads one file. It ignores an incomplete last line, which a killed process leaves.
// The error is errNoLine if no other line is left.
func readTranscript(path string, known *sampleFinder) (*transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	steps, err := linesIn[step](path, text[:bytes.LastIndexByte(text, '\n')+1], nil)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s is not a transcript: %w", path, errNoLine)
	}
	if steps[0].Type != "session" {
		return nil, fmt.Errorf("%s is not a transcript: it does not begin with a session", path)
	}
	return takeSteps(path, steps, known)
}

func takeSteps(path string, steps []step, known *sampleFinder) (*transcript, error) {
	begin := &steps[0]
	sample := known.of(begin, steps)
	t := &transcript{path: path, began: begin.Time, response: eval.Response{ID: cmp.Or(begin.Task, begin.Session)}}
	if sample != nil {
		t.response.ID = sample.ID
	}
	if t.response.ID == "" {
		return nil, errors.New(path + " is not a transcript: its session has no id")
	}
	names := toolNames(sample, steps)
	var turns []turnSteps
	for i := range steps {
		s := &steps[i]
		t.masked = t.masked || s.Masked
		if s.Type == "user" || s.Type == "answer" && len(turns) == 0 {
			turns = append(turns, turnSteps{})
		}
		if s.Type == "answer" {
			t.answers++
			turns[len(turns)-1].add(s, begin.Finish, names)
		}
	}
	if sample != nil && sample.Converses() {
		t.response.Turns = make([][]eval.Step, 0, len(turns))
		for i := range turns {
			t.response.Turns = append(t.response.Turns, turns[i].steps())
		}
		return t, nil
	}
	var whole turnSteps
	for i := range turns {
		whole = append(whole, turns[i]...)
	}
	one := whole.joined()
	if one.Text == "" && one.Message == nil { // a line of responses has an answer
		one.Message = json.RawMessage(`{"role":"assistant","content":""}`)
	}
	t.response.Text, t.response.Message = one.Text, one.Message
	return t, nil
}

// turnSteps holds the model's answers in a turn.
type turnSteps []turnStep

type turnStep struct {
	text  string
	calls []eval.Call
}

// add adds an answer. names maps to the names of tools in the sample.
func (t *turnSteps) add(s *step, finish string, names map[string]string) {
	one := turnStep{text: s.Text}
	if bytes.HasPrefix(s.Body, []byte(`{"text":`)) { // its calls are in its text
		one.text = eval.WithoutCalls(s.Text, finish)
	} else {
		for _, c := range s.Calls {
			if c.Name == findTools || c.Name == finish && finish != "" {
				continue
			}
			one.calls = append(one.calls, eval.Call{Name: cmp.Or(names[c.Name], c.Name), Arguments: c.Arguments})
		}
	}
	*t = append(*t, one)
}

// steps returns the answers as steps of a conversation.
func (t turnSteps) steps() []eval.Step {
	all := make([]eval.Step, 0, len(t))
	for i := range t {
		all = append(all, t[i:i+1].joined())
	}
	return all
}

// joined returns one answer with all texts and calls.
func (t turnSteps) joined() eval.Step {
	var said []string
	var calls []eval.Call
	for i := range t {
		if t[i].text != "" {
			said = append(said, t[i].text)
		}
		calls = append(calls, t[i].calls...)
	}
	return eval.Step{Text: strings.Join(said, "\n"), Message: CallMessage(calls)}
}

// CallMessage returns calls as a message of the model in the format of chat completions, or nil if
// there are none.
func CallMessage(calls []eval.Call) json.RawMessage {
	if len(calls) == 0 {
		return nil
	}
	type function struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
	type call struct {
		Function function `json:"function"`
		ID       string   `json:"id"`
		Type     string   `json:"type"`
	}
	message := struct {
		Content *string `json:"content"`
		Role    string  `json:"role"`
		Calls   []call  `json:"tool_calls"`
	}{Role: "assistant"}
	for i, c := range calls {
		message.Calls = append(message.Calls, call{function{cmp.Or(string(c.Arguments), "{}"), c.Name}, fmt.Sprintf("call_%d", i), "function"})
	}
	raw, _ := json.Marshal(message) // contains only strings, so encoding cannot fail
	return raw
}

// toolNames maps the names under which a model knew tools to the names in the sample, if the sample
// uses the names of tools at their servers. The results of calls provide the server's names.
func toolNames(sample *Sample, steps []step) map[string]string {
	if sample == nil {
		return nil
	}
	names := make(map[string]string)
	for i := range steps {
		for _, r := range steps[i].Results {
			if r.Tool != "" && !namesTool(sample, "", r.Name) && namesTool(sample, r.Server, r.Tool) {
				names[r.Name] = r.Tool
			}
		}
	}
	return names
}

// namesTool reports whether a sample contains exactly this tool name. An offered tool of that name may
// belong to another server.
func namesTool(s *Sample, server, name string) bool {
	for i := range s.Tools {
		if t := &s.Tools[i]; t.Name == name && (server == "" || t.Server == "" || t.Server == server) {
			return true
		}
	}
	return len(s.Tools) == 0 && slices.Contains(s.Expected, name) || s.Check != nil && slices.Contains(s.Check.Hidden, name)
}
