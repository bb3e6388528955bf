package frontdoor_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/frontdoor/mcp"
	"github.com/callyard/callyard/internal/frontdoor/rest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// A call that the policy makes durable is judged on arrival and stored with its verdict, so that its
// runner need not check it again. The test counts each way in.
func TestACallThatThePolicyMakesDurableIsCheckedOnce(t *testing.T) {
	// With a quota, each call of a batch has a goroutine that runs it after its check.
	for _, inFlight := range []int{0, 50} {
		t.Run(fmt.Sprint(inFlight), func(t *testing.T) { checkedOnce(t, inFlight) })
	}
}

func checkedOnce(t *testing.T, inFlight int) {
	policy, err := risk.Parse([]byte("rules:\n  - name: stored\n    match: {server: demo}\n    level: 1\n    durable: true\n"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var checks atomic.Int64
	f := frontdoortest.Open(t, frontdoortest.Options{
		Policy: risk.NewHolder(policy), InFlight: inFlight,
		Script:  frontdoortest.Script{Servers: []schema.Server{frontdoortest.Ready("demo", 1)}, Definitions: schema.Definitions{Tools: frontdoortest.Tools()}},
		Counted: func(schema.ServerID, string) { checks.Add(1) },
	})
	entry := calls.New(f.Calls)
	api, err := rest.New(rest.Options{Calls: entry, Batches: f.Batches, Catalog: f.Catalog, Router: f.Router, Keys: f.Keys, Metrics: f.Metrics, Log: f.Log, Version: "test", Started: time.Now(), Ready: f.Conn.Ready})
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := mcp.New(mcp.Options{Calls: entry, Catalog: f.Catalog, Keys: f.Keys, Metrics: f.Metrics, Log: f.Log, Version: "test", FrontDoor: f.Calls.FrontDoor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Close)
	doors := http.NewServeMux()
	doors.Handle("/mcp/", endpoint)
	doors.Handle("/", api)
	s := httptest.NewServer(doors)
	t.Cleanup(s.Close)
	f.Keys.Serve(s.URL)
	f.WaitFor("the tools of demo", func() bool { _, err := f.Catalog.Tools("demo"); return err == nil })

	message := func(capabilities string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"%s":"%s","%s":%s}}}`, mcpwire.MetaProtocolVersion, mcpwire.Modern, mcpwire.MetaClientCapabilities, capabilities)
	}
	modern := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", mcpwire.Modern, "Mcp-Method", "tools/call", "Mcp-Name", "echo"}
	line := `{"server":"demo","tool":"echo","arguments":{}}`
	three := `{"calls":[` + strings.Join([]string{line, line, line}, ",") + `]}`
	for _, way := range []struct {
		name, path, body string
		header           []string
		calls            int
	}{
		{"REST by path", "/servers/demo/tools/echo", `{}`, nil, 1},
		{"REST by body", "/calls", line, nil, 1},
		{"REST with a key", "/calls", line, []string{"Idempotency-Key", "k"}, 1},
		{"REST without waiting", "/calls", line, []string{"Prefer", "respond-async"}, 1},
		{"tool calls", "/tool-calls", `{"tool_calls":[{"id":"c1","type":"function","function":{"name":"demo__echo","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"demo__echo","arguments":"{}"}}]}`, nil, 2},
		{"MCP", "/mcp/demo", message(`{}`), modern, 1},
		{"MCP as a task", "/mcp/demo", message(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`), modern, 1},
		{"a batch", "/batches", three, nil, 3},
	} {
		ran := f.Worker.Count()
		checks.Store(0)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+way.path, strings.NewReader(way.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(way.header); i += 2 {
			r.Header.Set(way.header[i], way.header[i+1])
		}
		if status, _, body := frontdoortest.Send(t, s.Client(), r); status >= 300 {
			t.Errorf("%s: %d %s", way.name, status, body)
			continue
		}
		f.WaitFor("the calls by "+way.name, func() bool { return f.Worker.Count() >= ran+way.calls })
		if n := int(checks.Load()); n != way.calls || f.Worker.Count() != ran+way.calls {
			t.Errorf("%s: %d checks of %d calls, which ran %d times", way.name, n, way.calls, f.Worker.Count()-ran)
		}
	}
}
