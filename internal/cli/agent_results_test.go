package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/modeltest"
)

func TestResultsAreReadFromTheMessagesOfEachAPI(t *testing.T) {
	for name, messages := range map[string][]string{
		"openai": {
			`{"role":"tool","tool_call_id":"a","content":"one"}`, `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"two"}]}`,
			`{"role":"user","content":[{"type":"text","text":"The image 1:"},{"type":"image_url"}]}`,
		},
		"responses": {`{"type":"function_call_output","call_id":"a","output":"one"}`, `{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"two"}]}`},
		"anthropic": {`{"role":"user","content":[{"type":"tool_result","content":"one"},{"type":"tool_result","content":[{"type":"text","text":"two"}]},{"type":"text","text":"I denied it"}]}`},
		"gemini":    {`{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"one"}}},{"functionResponse":{"name":"a","response":{"error":"two"}}},{"text":"x"}]}`},
	} {
		var raw []json.RawMessage
		for _, m := range messages {
			raw = append(raw, json.RawMessage(m))
		}
		if got := resultTexts(raw); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTheAgentShowsResults(t *testing.T) {
	y := openTestFabric(t)
	long := calls("read a")
	long.Calls[0].Arguments = `{"text":"` + strings.Repeat("x", 2*shownResult) + `"}`
	for _, c := range []struct {
		turn modeltest.Turn
		args []string
		want string
		show bool
	}{
		{calls("read a"), nil, "← notes__read: succeeded\n  noted a\n", true},
		{calls("read a"), []string{"--hide-json"}, "noted a", false},
		{calls("read fault"), nil, "the tool reported an error\n  ", true},
		{calls(`read \u001b[31m`), nil, "\x1b", false},
		{long, nil, strings.Repeat("x", shownResult+1) + "\n", false},
	} {
		_, notes, code, _ := y.agentRun(t, modeltest.Script{c.turn, {Text: "Done."}}, append(c.args, "Read.")...)
		_, shown, _ := strings.Cut(notes, "← ")
		if shown = "← " + shown; code != exitOK || strings.Contains(shown, c.want) != c.show {
			t.Errorf("exit code %d: %.300q", code, shown)
		}
	}
}

func TestTheAgentSaysThatItWaits(t *testing.T) {
	expires := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for want, q := range map[string]*agent.Confirmation{
		"Waiting for approval at http://x/a/1\n":                                      {People: true, Page: "http://x/a/1", Expires: expires},
		"Waiting for the decision about the call call_1, until 2026-01-02 03:04:05\n": {People: true, Expires: expires},
		"Waiting for the decision about the call call_1\n":                            nil,
	} {
		var notes bytes.Buffer
		c := &client{in: strings.NewReader(""), out: screen{w: io.Discard}, note: screen{w: &notes}}
		p := newAgentPerson(c, &agentOptions{confirm: "wait", output: "text"})
		d, _, err := p.Decide(t.Context(), agent.Held{Result: &agent.CallResult{CallID: "call_1", Confirmation: q}})
		if err != nil || d != agent.Wait || notes.String() != want {
			t.Errorf("%q: decided %d, %v", notes.String(), d, err)
		}
	}
}

// The agent has the token of a call that its caller confirms, so that approvers cannot decide it.
func TestTheAgentDoesNotWaitForApproversOfItsOwnConfirmation(t *testing.T) {
	held := agent.Held{Result: &agent.CallResult{CallID: "call_1", Confirmation: &agent.Confirmation{ID: "c"}}}
	for _, x := range []struct {
		confirm, input string
		want           agent.Decision
	}{
		{"wait", "", agent.Deny},
		{"ask", "w\nwait\ny\n", agent.Approve},
	} {
		var notes bytes.Buffer
		c := &client{in: strings.NewReader(x.input), out: screen{w: io.Discard}, note: screen{w: &notes}}
		p := newAgentPerson(c, &agentOptions{confirm: x.confirm, output: "text"})
		d, _, err := p.Decide(t.Context(), held)
		if err != nil || d != x.want || strings.Contains(notes.String(), "ait for") {
			t.Errorf("%s: decided %d, %v: %q", x.confirm, d, err, notes.String())
		}
	}
}
