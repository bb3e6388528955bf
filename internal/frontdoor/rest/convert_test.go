package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
)

func TestToolsAndCallsAreConvertedBetweenFormats(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a := f.do("POST", "/convert", `{"from":"openai","to":"anthropic",
		"tools":[{"type":"function","function":{"name":"get_weather","strict":true,"parameters":{"type":"object","properties":{"n":{"const":9007199254740993}}}}},{"type":"custom","custom":{"name":"x"}}],
		"calls":{"role":"assistant","content":"hm","tool_calls":[{"id":"c 1","type":"function","function":{"name":"get_weather","arguments":"{ \"n\":9007199254740993}"}}]}}`)
	golden(t, "convert", a)
	var got tools.Conversion
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK || len(got.Tools) != 1 || len(got.Calls) != 1 {
		t.Fatalf("%d %v: %s", a.status, err, a.body)
	}
	want := map[string]string{"/tools/0/function/strict": "dropped", "/tools/1": "skipped", "/calls/content": "dropped", "/calls/tool_calls/0/id": "changed"}
	for _, n := range got.Notes {
		if want[n.Pointer] != n.Kind {
			t.Errorf("the note %+v", n)
		}
		delete(want, n.Pointer)
	}
	if len(want) > 0 {
		t.Errorf("no notes on %v: %s", want, a.body)
	}
	if only := f.do("POST", "/convert", `{"from":"gemini","to":"mcp","tools":[]}`); string(only.body) != `{"from":"gemini","to":"mcp","tools":[],"notes":[]}`+"\n" && strings.TrimSpace(string(only.body)) != `{"from":"gemini","to":"mcp","tools":[],"notes":[]}` {
		t.Errorf("without calls: %s", only.body)
	}
	if f.Worker.Count() > 0 {
		t.Error("a conversion ran something")
	}
}

func TestInvalidConversionsAreRefused(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for body, says := range map[string]string{
		``: "empty", `[]`: "not a JSON object", `{"from":"openai"}`: "/to", `{"from":"openai","to":"x","tools":[]}`: "/to",
		`{"from":"openai","to":"mcp"}`: "nothing to convert", `{"from":"openai","to":"mcp","tool":[]}`: "/tool",
		`{"from":"openai","to":"mcp","tools":[{"a":1,"a":2}]}`:                                             "",
		`{"from":"openai","to":"mcp","tools":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`: "",
	} {
		a := f.do("POST", "/convert", body)
		if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), says) {
			t.Errorf("%.60q: %d %s", body, a.status, a.body)
		} else {
			problemOf(t, a)
		}
	}
}
