package eval

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOnlyGoodBlocksOfTheNamedToolAreLeftOut(t *testing.T) {
	const f, done = `<tool_call>{"name":"f"}</tool_call>`, `<tool_call>{"name":"done","arguments":{"answer":1}}</tool_call>`
	for text, want := range map[string]string{
		"":                                "",
		"no call":                         "no call",
		"a " + done + " b " + f + done:    "a  b " + f,
		f + "<tool_call>" + `{"name":"do`: f + "<tool_call>" + `{"name":"do`,
		`<tool_call>done</tool_call>`:     `<tool_call>done</tool_call>`,
		`done {"name":"done"}`:            `done {"name":"done"}`,
	} {
		if got := WithoutCalls(text, "done"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := WithoutCalls(done, ""); got != done {
		t.Errorf("without a name: %q", got)
	}
}

// TestCallsInTheTextOfAMessageAreFound has messages of servers that do not parse the calls of a model.
func TestCallsInTheTextOfAMessageAreFound(t *testing.T) {
	tools := []Tool{{Name: "f"}}
	text, err := json.Marshal(`I call <tool_call>{"name":"f"}</tool_call>`)
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]int{
		`{"role":"assistant","content":TEXT}`:                                                                                      1,
		`{"role":"assistant","content":TEXT,"tool_calls":[]}`:                                                                      1,
		`{"choices":[{"index":0,"message":{"role":"assistant","content":TEXT}},{"message":{"content":TEXT}}]}`:                     1,
		`{"role":"assistant","content":[{"type":"text","text":TEXT}]}`:                                                             1,
		`{"content":[{"type":"thinking","thinking":TEXT},{"type":"text","text":"No."}]}`:                                           0,
		`{"role":"model","parts":[{"text":TEXT,"thought":true},{"text":TEXT}]}`:                                                    1,
		`{"candidates":[{"content":{"parts":[{"text":TEXT}]}}]}`:                                                                   1,
		`{"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":TEXT}]}]}`:         1,
		`{"role":"assistant","content":TEXT,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`: 1,
		`{"role":"assistant","content":"No."}`:                                                                                     0, `{}`: 0, `[]`: 0, `null`: 0, strings.Repeat("[", 5000) + strings.Repeat("]", 5000): 0,
	} {
		x := Extract(&Response{Message: json.RawMessage(strings.ReplaceAll(message, "TEXT", string(text)))}, tools, NewNames(tools))
		if len(x.Calls) != want || len(x.Rescued) < want || x.GoodBlocks != want {
			t.Errorf("%.100s: %+v", message, x)
		}
	}
}
