package eval

import "testing"

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
