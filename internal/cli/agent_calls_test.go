package cli

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/agent/modeltest"
)

// TestEveryCallOfAnAnswerHasOneResult has a model name tools that cannot be in a list of names. The
// model's API refuses a request in which a call has no result, or two.
func TestEveryCallOfAnAnswerHasOneResult(t *testing.T) {
	for _, name := range []string{"", " ", "x,notes__read", "x"} {
		y := openTestFabric(t)
		turn := calls("read a", "read b")
		turn.Calls[0].Name = name
		out, notes, code, server := y.agentRun(t, modeltest.Script{turn, {Text: "Done."}}, "--output", "json", "Read.")
		if asked := server.Asked(); len(server.Refused()) > 0 || len(asked) != 2 || len(asked[1].Results) != 2 || !strings.Contains(out, `"answer":"Done."`) {
			t.Errorf("%q: exit code %d, %s%s; refused %v", name, code, out, notes, server.Refused())
		}
		if !slices.Equal(y.ran, []string{"read b"}) {
			t.Errorf("%q: ran %v", name, y.ran)
		}
	}
}

// TestCallsInATextAreThoseThatAreShown has a model write its calls in the text: they run if all of
// them are of tools that the model was shown, and a held call is shown with its arguments.
func TestCallsInATextAreThoseThatAreShown(t *testing.T) {
	const reads, alsoReads = `{"name":"notes__read","arguments":{"text":"a </tool_call>"}}`, `{"name":"notes__read","arguments":{"text":"b"}}`
	for _, c := range []struct {
		text string
		args []string
		ran  []string
		held string
	}{
		{reads + alsoReads, nil, []string{"read a </tool_call>", "read b"}, ""},
		{`<tool_call>{"name":"notes__read","arguments":{"text":"a"}}</tool_call><tool_call>{"name":"notes__lost","arguments":{}}</tool_call>`, nil, nil, ""},
		{alsoReads + ` {"name":"notes.delete","arguments":{"text":"c"}}`, []string{"--tools", "notes/read"}, []string{"read b"}, ""},
		{`{"tool_call":{"server_id":"notes","tool_name":"delete","parameters":{"text":"d"}}}`, nil, nil, `"arguments":{"text":"d"}`},
	} {
		y := openTestFabric(t)
		args := append([]string{"--plain", "--output", "stream-json", "Read."}, c.args...)
		out, notes, _, server := y.agentRun(t, modeltest.Script{{Text: c.text}, {Text: "Done."}}, args...)
		slices.Sort(y.ran)
		if !slices.Equal(y.ran, c.ran) || len(server.Refused()) > 0 {
			t.Errorf("%s: ran %q, %s%s; refused %v", c.text, y.ran, out, notes, server.Refused())
		}
		if c.held != "" && !strings.Contains(out, c.held) {
			t.Errorf("%s: the held call is %s", c.text, out)
		}
		if shown, results := strings.Count(out, `"type":"call"`), strings.Count(out, `"type":"result"`); shown != results {
			t.Errorf("%s: %d calls were shown and %d results", c.text, shown, results)
		}
	}
}

// TestAnAnswerThatCallyardRefusesIsAnswered has a model nest arguments deeper, and make more calls, than
// Callyard accepts. The session was stuck: it sent them again each time that it was continued.
func TestAnAnswerThatCallyardRefusesIsAnswered(t *testing.T) {
	deep, many := calls("read a"), modeltest.Turn{}
	deep.Calls[0].Arguments = `{"text":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}"
	for i := range 129 {
		many.Calls = append(many.Calls, modeltest.Call{ID: "toolu_" + strconv.Itoa(i), Name: "notes__read", Arguments: "{}"})
	}
	y := openTestFabric(t)
	for reason, turn := range map[string]modeltest.Turn{"the nesting exceeds the limit": deep, "129 tool calls": many} {
		out, notes, code, server := y.agentRun(t, modeltest.Script{turn, {Text: "Done."}}, "--max-calls", "0", "--max-repeat", "0", "--output", "json", "Read.")
		asked := server.Asked()
		if code != exitOK || !strings.Contains(out, `"answer":"Done."`) || len(server.Refused()) > 0 || len(asked) != 2 || !strings.Contains(string(asked[1].Raw), reason) {
			t.Errorf("%s: exit code %d, %.500s%s; refused %v", reason, code, out, notes, server.Refused())
		}
	}
	if len(y.ran) > 0 {
		t.Errorf("ran %v", y.ran)
	}
}

// TestAFailureOfTheModelSaysHowToContinue has a model that fails after the first call.
func TestAFailureOfTheModelSaysHowToContinue(t *testing.T) {
	y := openTestFabric(t)
	_, notes, code, _ := y.agentRun(t, modeltest.Script{calls("read a"), {Fault: &modeltest.Fault{Status: 400, Type: "invalid_request_error"}}}, "Read.")
	if code != exitUnreachable || !strings.Contains(notes, "Continue with `callyard agent --resume /") {
		t.Errorf("exit code %d: %s", code, notes)
	}
}
