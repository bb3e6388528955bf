package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
)

func openAICall(id, name, arguments string) string {
	return `{"id":` + jsonString(id) + `,"type":"function","function":{"name":` + jsonString(name) + `,"arguments":` + jsonString(arguments) + `}}`
}

// finishHanging waits for a call of the tool hang, and ends it and all others that hang.
func (f *fabric) finishHanging() {
	<-f.Worker.Asked
	f.Worker.Finish()
}

func TestCallsOfTheCallersOwnToolsAreHandedBackUntouched(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	own := openAICall("c2", "ask_user", `{ "big":9007199254740993 }`)
	broken := openAICall("c4", "ask_user", `{"cut`)
	a, out := toolCallsOf(t, f, "/tool-calls?own=ask_user,%20demo__steps", `{"tool_calls":[`+strings.Join([]string{
		openAICall("c1", "demo__echo", `{"x":1}`), own, openAICall("c3", "demo__steps", `{}`), broken, openAICall("c5", "Ask-User", `{}`),
	}, ",")+`]}`)
	golden(t, "tool-calls-own", a)
	if len(out.Calls) != 1 || out.Calls[0].ID != "c1" || out.Calls[0].Index != 0 || len(out.Messages) != 1 || len(out.OwnCalls) != 4 {
		t.Fatalf("%s", a.body)
	}
	if c := out.OwnCalls[0]; c.Index != 1 || c.ID != "c2" || c.Name != "ask_user" || string(c.Arguments.RawMessage) != `{"big":9007199254740993}` || string(c.Call.RawMessage) != own {
		t.Errorf("%+v", c)
	}
	if c := out.OwnCalls[2]; c.ID != "c4" || c.Arguments.RawMessage != nil || string(c.Call.RawMessage) != broken {
		t.Errorf("a call that cannot be read is handed back as %+v", c)
	}
	if c := out.OwnCalls[3]; c.Name != "ask_user" {
		t.Errorf("in another spelling it is %+v", c)
	}
	if f.Worker.Count() != 1 {
		t.Errorf("%d calls ran", f.Worker.Count())
	}
}

func TestOwnToolsAreFoundInText(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a, out := toolCallsOf(t, f, "/tool-calls?own=ask_user", `{"text":"{\"name\":\"ask_user\",\"arguments\":{\"q\":1}}"}`)
	if len(out.Calls) != 0 || len(out.Messages) != 0 || len(out.OwnCalls) != 1 || string(out.OwnCalls[0].Arguments.RawMessage) != `{"q":1}` || out.OwnCalls[0].Call.RawMessage != nil {
		t.Errorf("%s", a.body)
	}
	for _, own := range []string{",", "a,,b", strings.Repeat("a,", 600) + "a"} {
		if a := f.do("POST", "/tool-calls?own="+own, `[]`); a.status != http.StatusBadRequest {
			t.Errorf("own=%.20s: %d %s", own, a.status, a.body)
		}
	}
}

func TestNamesMatchInOtherSpellingsIfOneToolMatches(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	if made := f.do("PUT", "/sets/mine", `{"include":[{"server":"demo","tool":"late-error"},{"server":"demo","tool":"echo"}],"names":{"prefix":"my"}}`); made.status != 200 {
		t.Fatalf("%d %s", made.status, made.body)
	}
	for path, names := range map[string][]string{
		"/tool-calls":          {"Demo.Echo", "DEMO_ECHO", "demo-echo", "demo echo", "Echo", "functions.Demo__ECHO"},
		"/tool-calls?set=mine": {"My-Echo", "my.echo", "MY ECHO"},
	} {
		for _, name := range names {
			a, out := toolCallsOf(t, f, path, `{"tool_calls":[`+openAICall("c", name, `{}`)+`]}`)
			if out.Calls[0].State != "succeeded" || out.Calls[0].Server != "demo" || out.Calls[0].Tool != "echo" || out.Calls[0].Name != name {
				t.Errorf("%s %q: %s", path, name, a.body)
			}
		}
	}
	// The tools of a set have only the names in the set.
	_, out := toolCallsOf(t, f, "/tool-calls?set=mine", `{"tool_calls":[`+openAICall("c", "Demo.Echo", `{}`)+`]}`)
	if out.Calls[0].State != "failed" || out.Calls[0].Problem.Type != "/problems/not-found" {
		t.Errorf("%+v", out.Calls[0])
	}
}

func TestAmbiguousNamesAndUnreadableCallsAreReportedAndNeverRun(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a, out := toolCallsOf(t, f, "/tool-calls?own=DEMO__ECHO,x_y,X-Y", `{"tool_calls":[`+strings.Join([]string{
		openAICall("c1", "demo.Echo", `{}`), openAICall("c2", "X y", `{}`), `"c3"`, `{"id":"c4","type":"function"}`, `{"id":"c5","type":"function","function":{"arguments":"{}"}}`, openAICall("c6", "demo.nobody", `{}`),
	}, ",")+`]}`)
	golden(t, "tool-calls-ambiguous", a)
	if len(out.Calls) != 6 || len(out.Messages) != 6 || len(out.OwnCalls) != 0 {
		t.Fatalf("%s", a.body)
	}
	for i, says := range []string{"use one of: DEMO__ECHO, demo__echo", "use one of: x_y, X-Y", "cannot be read", "cannot be read", "no name", "There is no tool"} {
		if c := out.Calls[i]; c.State != "failed" || c.Problem == nil || !strings.Contains(c.Problem.Detail, says) || c.CallID != "" {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	// In a text, such a name counts as that of a tool, so that its call is reported.
	if a, out := toolCallsOf(t, f, "/tool-calls?own=DEMO__ECHO", `{"text":"{\"name\":\"demo.Echo\",\"arguments\":{}}"}`); len(out.Calls) != 1 || out.Calls[0].State != "failed" {
		t.Errorf("%s", a.body)
	}
	if f.Worker.Count() > 0 {
		t.Errorf("%d calls ran", f.Worker.Count())
	}
}

func TestAToolThatIsDisabledIsRefusedInEverySpelling(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	f.do("PATCH", "/servers/demo/tools/echo", `{"enabled":false,"reason":"not now"}`)
	f.WaitFor("the switch", func() bool {
		tool, err := f.api.o.Catalog.Tool("demo", "echo")
		return err == nil && !tool.Switch.Enabled
	})
	_, out := toolCallsOf(t, f, "/tool-calls", `{"tool_calls":[`+openAICall("c", "Demo.ECHO", `{}`)+`]}`)
	if c := out.Calls[0]; c.State != "failed" || !strings.Contains(c.Problem.Detail, "not now") {
		t.Errorf("%+v", c)
	}
}

func TestMCPBridgeToolCallFormatIsAccepted(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	a, out := toolCallsOf(t, f, "/tool-calls", `{"tool_call":{"server_id":"demo","tool_name":"echo","parameters":{"x":1.0}},"response":null}`)
	if len(out.Calls) != 1 || out.Calls[0].State != "succeeded" || string(f.Worker.Last().Payload) != `{"x":1.0}` || !strings.Contains(string(out.Messages[0].RawMessage), "<tool_response>") {
		t.Errorf("%s", a.body)
	}
	if a, out := toolCallsOf(t, f, "/tool-calls", `{"tool_call":{"server_id":null,"tool_name":null,"parameters":null},"response":"Hello."}`); len(out.Calls) != 0 {
		t.Errorf("%s", a.body)
	}
	if _, out := toolCallsOf(t, f, "/tool-calls", `{"tool_call":{"server_id":"other","tool_name":"echo","parameters":{}}}`); len(out.Calls) != 1 || out.Calls[0].State != "failed" {
		t.Errorf("a tool of a server that is not there: %+v", out.Calls)
	}
}

func TestToolCallResultsAreStreamedAsTheyComplete(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) { o.Heartbeat = 5 * time.Millisecond })
	res, r := f.stream("POST", "/tool-calls?own=ask_user&timeout_ms=30000", `[{"type":"tool_use","id":"slow","name":"demo__hang","input":{}},{"type":"tool_use","id":"quick","name":"demo__echo","input":{"x":1}},{"type":"tool_use","id":"mine","name":"ask_user","input":{}}]`)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if e, _ := r.next(); e.Name != "own_call" || !strings.Contains(e.Data, `"id":"mine"`) {
		t.Errorf("%+v", e)
	}
	e, _ := r.next() // while the other one hangs
	var item struct {
		tools.ToolCallItem
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(e.Data), &item); err != nil || e.Name != "call" || item.ID != "quick" || item.Index != 1 || item.State != "succeeded" || len(item.Messages) != 1 || !strings.Contains(string(item.Messages[0]), `"tool_use_id":"quick"`) {
		t.Errorf("%v %+v", err, e)
	}
	r.comment() // the stream is quiet while the other one hangs
	f.finishHanging()
	if e, _ := r.next(); e.Name != "call" || !strings.Contains(e.Data, `"id":"slow"`) {
		t.Errorf("%+v", e)
	}
	e, _ = r.next()
	var whole tools.ToolCallsAnswer
	if err := json.Unmarshal([]byte(e.Data), &whole); err != nil || e.Name != "end" || len(whole.Calls) != 2 || len(whole.OwnCalls) != 1 || len(whole.Messages) != 1 {
		t.Errorf("%v %+v", err, e)
	}
	if e, more := r.next(); more {
		t.Errorf("after the end: %+v", e)
	}
	if res, _ := f.stream("POST", "/tool-calls", `{}`); res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a request that is refused: %d %v", res.StatusCode, res.Header)
	}
}

func TestDisconnectFromToolCallStreamCancelsTheCalls(t *testing.T) {
	t.Parallel()
	f := openFabric(t, func(o *Options) { o.Heartbeat = 5 * time.Millisecond })
	res, _ := f.stream("POST", "/tool-calls?timeout_ms=30000", `[{"type":"tool_use","id":"slow","name":"demo__hang","input":{}}]`)
	<-f.Worker.Asked
	_ = res.Body.Close()
	<-f.Worker.Canceled
}

func TestToolCallsAreStoredAndContinueWithoutTheirCaller(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	const call = `{"type":"tool_use","id":"a","name":"demo__echo","input":{"x":1}}`
	a := f.do("POST", "/tool-calls", `[`+call+`]`, "Prefer", "respond-async")
	var out tools.ToolCallsAnswer
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusAccepted || len(out.Calls) != 1 || out.Calls[0].State != "accepted" || out.Calls[0].CallID == "" {
		t.Fatalf("%d %v %s", a.status, err, a.body)
	}
	at := out.Calls[0].Location
	if at != "/calls/"+string(out.Calls[0].CallID) || a.header.Get("Location") != at || a.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("%v %s", a.header, at)
	}
	if end := f.do("GET", at+"?wait=10", ""); !strings.Contains(string(end.body), `"state":"succeeded"`) {
		t.Errorf("%s", end.body)
	}

	a = f.do("POST", "/tool-calls", `[`+call+`,{"type":"tool_use","id":"b","name":"demo__nothing","input":{}}]`, "Prefer", "respond-async", "Idempotency-Key", "k", "Accept", "text/event-stream")
	out = tools.ToolCallsAnswer{}
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusAccepted || out.Calls[0].State != "accepted" || out.Calls[1].State != "failed" || a.header.Get("Location") != "" {
		t.Fatalf("%d %v %v %s", a.status, err, a.header, a.body)
	}
	// The same request without respond-async waits for the results.
	b, again := toolCallsOf(t, f, "/tool-calls", `[`+call+`,{"type":"tool_use","id":"b","name":"demo__nothing","input":{}}]`, "Idempotency-Key", "k")
	if again.Calls[0].State != "succeeded" || again.Calls[0].CallID != out.Calls[0].CallID {
		t.Errorf("%s", b.body)
	}
	ran := f.Worker.Count()
	if ran != 2 {
		t.Errorf("%d runs of two calls", ran)
	}
}

func TestPreferWaitReturnsTheCallsThatEndedInTime(t *testing.T) {
	f := openFabric(t, nil)
	for wait := 1; ; wait *= 4 { // on a busy machine, even a quick call takes longer
		a := f.do("POST", "/tool-calls", `[{"type":"tool_use","id":"a","name":"demo__echo","input":{}},{"type":"tool_use","id":"b","name":"demo__hang","input":{}}]`, "Prefer", fmt.Sprint("wait=", wait))
		var out tools.ToolCallsAnswer
		err := json.Unmarshal(a.body, &out)
		f.finishHanging()
		if err == nil && a.status == http.StatusAccepted && out.Calls[0].State == "accepted" && wait < 60 {
			continue
		}
		if err != nil || a.status != http.StatusAccepted || out.Calls[0].State != "succeeded" || out.Calls[1].State != "accepted" || a.header.Get("Preference-Applied") != fmt.Sprint("wait=", wait) {
			t.Fatalf("%d %v %s", a.status, err, a.body)
		}
		return
	}
}
