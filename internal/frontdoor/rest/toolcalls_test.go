package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
	"github.com/callyard/callyard/pkg/schema"
)

// toolCallsOf sends tool calls and returns their outcomes.
func toolCallsOf(t *testing.T, f *fabric, path, body string, header ...string) (answer, tools.ToolCallsAnswer) {
	t.Helper()
	a := f.do("POST", path, body, header...)
	var out tools.ToolCallsAnswer
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("%s: %d %v: %s", body, a.status, err, a.body)
	}
	return a, out
}

func jsonString(s string) string { return strings.TrimSpace(string(httpapi.Encode(s))) }

func TestToolCallsOfEveryProviderRunAndAreAnswered(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const arguments = `{ "z":9007199254740993,"a":1.0,"é":"\u00e9" }`
	for name, body := range map[string]string{
		"openai":           `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"demo__echo","arguments":` + jsonString(arguments) + `}}]}`,
		"openai-responses": `[{"type":"function_call","call_id":"c1","name":"demo__echo","arguments":` + jsonString(arguments) + `}]`,
		"anthropic":        `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"demo__echo","input":` + arguments + `}]}`,
		"gemini":           `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"demo__echo","args":` + arguments + `}}]}`,
		"mcp":              `{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"demo__echo","arguments":` + arguments + `}}`,
	} {
		a, out := toolCallsOf(t, f, "/tool-calls", body)
		if got := string(f.Worker.Last().Payload); got != arguments {
			t.Errorf("%s: the tool got %s", name, got)
		}
		if out.Format != name || len(out.Messages) != 1 || len(out.Calls) != 1 || out.Calls[0].State != "succeeded" || out.Calls[0].CallID != f.Worker.Last().ID || out.Calls[0].Server != "demo" || out.Calls[0].Tool != "echo" {
			t.Errorf("%s: %s", name, a.body)
		}
		golden(t, "tool-calls-"+name, a)
	}
}

func TestCallsOfOneMessageAreAnsweredInOrderIndependently(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	call := func(id, name, arguments string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, name, jsonString(arguments))
	}
	body := `{"tool_calls":[` + strings.Join([]string{
		call("1", "demo__echo", `{}`), call("2", "demo__nothing", `{}`), call("3", "demo__strict", `{"n":"x"}`), call("4", "demo__fail", `{}`), call("5", "demo__rpc", `{}`),
		call("6", "demo__echo", `{"a":1,"a":2}`), call("7", "demo__echo", `{"a":`), call("8", "dead__echo", `{}`), call("9", "demo.steps", `{}`),
	}, ",") + `]}`
	a, out := toolCallsOf(t, f, "/tool-calls", body)
	golden(t, "tool-calls-mixed", a)
	if len(out.Messages) != 9 || len(out.Calls) != 9 {
		t.Fatalf("%d messages, %d calls", len(out.Messages), len(out.Calls))
	}
	for i, want := range []string{"succeeded", "failed", "failed", "succeeded", "failed", "failed", "failed", "failed", "succeeded"} {
		var m struct {
			ID string `json:"tool_call_id"`
		}
		if err := json.Unmarshal(out.Messages[i].RawMessage, &m); err != nil || m.ID != fmt.Sprint(i+1) || out.Calls[i].State != want || out.Calls[i].Index != i {
			t.Errorf("call %d: %s, answered to %q: %s", i+1, out.Calls[i].State, m.ID, out.Messages[i].RawMessage)
		}
	}
	if !out.Calls[3].ToolError || out.Calls[2].Problem == nil || out.Calls[2].Problem.Type != "/problems/invalid-arguments" {
		t.Errorf("%s", a.body)
	}
}

func TestCallsOfOneMessageRunConcurrently(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const n = 5
	var blocks []string
	for i := range n {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"%d","name":"demo__hang","input":{}}`, i))
	}
	done := make(chan answer, 1)
	go func() {
		r := f.request("POST", "/tool-calls?timeout_ms=30000", strings.NewReader("["+strings.Join(blocks, ",")+"]"))
		res, err := f.client.Do(r)
		if err != nil {
			done <- answer{}
			return
		}
		_ = res.Body.Close()
		done <- answer{status: res.StatusCode}
	}()
	for range n { // all of them arrived before any has ended
		<-f.Worker.Asked
	}
	f.Worker.Finish()
	if a := <-done; a.status != http.StatusOK {
		t.Errorf("answered %d", a.status)
	}
}

// hold raises the risk of the server demo, so that its calls are held.
func hold(f *fabric) {
	f.Worker.Change(func(w *schema.Worker) { w.Servers[0].Risk, w.Servers[0].Restarts = 2, 1 })
	f.WaitFor("the risk", func() bool {
		tool, err := f.api.o.Catalog.Tool("demo", "echo")
		return err == nil && tool.Risk == 2
	})
}

func TestHeldToolCallIsReportedAndRunsWhenConfirmed(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	hold(f)
	a, out := toolCallsOf(t, f, "/tool-calls", `[{"type":"tool_use","id":"h","name":"demo__echo","input":{"x":1}},{"type":"tool_use","id":"u","name":"demo__none","input":{}}]`)
	item := out.Calls[0]
	if item.State != "held" || item.Confirmation == nil || item.Confirmation.ConfirmationID == "" || item.Confirmation.CallID != item.CallID || item.CallID == "" {
		t.Fatalf("%s", a.body)
	}
	said := string(out.Messages[0].RawMessage)
	if !strings.Contains(said, "has not run") || !strings.Contains(said, "/calls/"+string(item.CallID)) || strings.Contains(said, item.Confirmation.ConfirmationID) || !strings.Contains(said, `"tool_use_id":"h","content":[{"type":"text","text":"This call has not run`) {
		t.Errorf("the model is told %s", said)
	}
	confirmed := f.do("POST", "/confirmations/"+item.Confirmation.ConfirmationID, `{"confirm":true}`)
	if confirmed.status != http.StatusOK || string(f.Worker.Last().Payload) != `{"x":1}` {
		t.Errorf("confirmed: %d %s", confirmed.status, confirmed.body)
	}
}

func TestConfirmationIsIdempotentUnderItsKey(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	hold(f)
	held := func() string {
		_, out := toolCallsOf(t, f, "/tool-calls", `[{"type":"tool_use","id":"h","name":"demo__echo","input":{"x":1}}]`)
		return "/confirmations/" + out.Calls[0].Confirmation.ConfirmationID
	}
	for _, body := range []string{`{"confirm":true}`, `{"confirm":false}`} {
		at := held()
		first := f.do("POST", at, body, "Idempotency-Key", "k")
		for range 3 {
			again := f.do("POST", at, body, "Idempotency-Key", "k")
			if first.status != http.StatusOK || again.status != first.status || string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s was answered %d %s, and then %d %s", body, first.status, first.body, again.status, again.body)
			}
		}
		opposite := f.do("POST", at, `{"confirm":`+strconv.FormatBool(body != `{"confirm":true}`)+`}`, "Idempotency-Key", "k")
		if p := problemOf(t, opposite); p.Type != "/problems/idempotency-key-reused" {
			t.Errorf("the opposite of %s: %s", body, opposite.body)
		}
		for _, header := range [][]string{{"Idempotency-Key", "other"}, nil} {
			if other := f.do("POST", at, body, header...); other.status != http.StatusNotFound {
				t.Errorf("another request: %d %s", other.status, other.body)
			}
		}
	}
	if f.Worker.Count() != 1 {
		t.Errorf("%d runs of one confirmed call", f.Worker.Count())
	}
}

func TestIdempotencyKeyMakesToolCallsRunOnce(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	body := `[{"type":"tool_use","id":"a","name":"demo__echo","input":{"x":1}},{"type":"tool_use","id":"b","name":"demo__echo","input":{"x":2}}]`
	first, one := toolCallsOf(t, f, "/tool-calls", body, "Idempotency-Key", "k1")
	second, two := toolCallsOf(t, f, "/tool-calls", body, "Idempotency-Key", "k1")
	if one.Calls[0].State != "succeeded" || string(first.body) != string(second.body) {
		t.Errorf("the first answer is\n%s\nthe second\n%s", first.body, second.body)
	}
	ran := f.Worker.Count()
	if ran != 2 || one.Calls[0].CallID == one.Calls[1].CallID || one.Calls[0].CallID != two.Calls[0].CallID {
		t.Errorf("%d runs of two calls", ran)
	}
	_, other := toolCallsOf(t, f, "/tool-calls", strings.Replace(body, `"x":1`, `"x":3`, 1), "Idempotency-Key", "k1")
	if other.Calls[0].State != "failed" || other.Calls[0].Problem.Type != "/problems/idempotency-key-reused" {
		t.Errorf("another body under the same key: %+v", other.Calls[0])
	}
}

func TestToolCallsInTextAreFoundAndRun(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	text := "I will ask.\n<tool_call>{'name': 'demo.echo', 'arguments': {'x': True,}}</tool_call>\n<tool_call>{\"name\":\"nobody\",\"arguments\":{}}</tool_call>"
	a, out := toolCallsOf(t, f, "/tool-calls", `{"text":`+jsonString(text)+`}`)
	golden(t, "tool-calls-text", a)
	if len(out.Calls) != 2 || out.Calls[0].State != "succeeded" || !out.Calls[0].Repaired || string(f.Worker.Last().Payload) != `{"x":true}` || out.Calls[1].State != "failed" {
		t.Errorf("%s; the tool got %s", a.body, f.Worker.Last().Payload)
	}
	if a, out := toolCallsOf(t, f, "/tool-calls?format=gemini", `{"text":"Nothing to call."}`); len(out.Calls) != 0 || len(out.Messages) != 0 || out.Format != "gemini" {
		t.Errorf("%s", a.body)
	}
}

func TestBodiesThatAreNoToolCallsAreRefused(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/tool-calls", ``, 400}, {"/tool-calls", `{`, 400}, {"/tool-calls", `{}`, 400}, {"/tool-calls", `{"role":"assistant","content":"hello"}`, 400},
		{"/tool-calls", `[{"type":"tool_use","id":"a","id":"b","name":"demo__echo"}]`, 400}, {"/tool-calls?format=nonsense", `[]`, 400}, {"/tool-calls?wait=1", `[]`, 400},
		{"/tool-calls", strings.Repeat("[", 200) + strings.Repeat("]", 200), 400}, {"/tool-calls", `["` + strings.Repeat("x", 2<<20) + `"]`, 413}, {"/tool-calls?timeout_ms=0", `[]`, 400},
	} {
		if a := f.do("POST", c.path, c.body); a.status != c.status {
			t.Errorf("%s %.60q: %d %s", c.path, c.body, a.status, a.body)
		} else {
			problemOf(t, a)
		}
	}
	if _, out := toolCallsOf(t, f, "/tool-calls?format=openai", `[]`); len(out.Calls) != 0 {
		t.Errorf("%+v", out)
	}
}

func TestTooManyToolCallsAreRefusedWithTheLimit(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	one := `{"id":"c","type":"function","function":{"name":"demo__echo","arguments":"{}"}}`
	for name, body := range map[string]string{
		"calls": `{"tool_calls":[` + strings.Repeat(one+",", format.MaxCalls) + one + `]}`,
		"text":  `{"text":"` + strings.Repeat(`<start_function_call>call:demo__echo{}<end_function_call>`, format.MaxCalls+1) + `"}`,
	} {
		got := f.do("POST", "/tool-calls", body)
		if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(got.body), "128") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
