package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestResourceUpdatesStopWhenReadingIsNoLongerAllowed(t *testing.T) {
	calm := func() *risk.Policy {
		return judge(t, "rules:\n  - name: calm\n    match: {server: demo}\n    level: 1\n").Current()
	}
	for name, decides := range map[string]string{
		"denied":                   "deny: closed",
		"held at medium risk":      "level: 2",
		"held for people":          "level: 2\n    approval: {groups: [ops]}",
		"denied for this URI only": "deny: closed\n    when: args.uri == 'demo://any/2'",
	} {
		t.Run(name, func(t *testing.T) {
			method := ""
			if strings.Contains(decides, "args") {
				method = ", method: resources/read"
			}
			holder := risk.NewHolder(calm())
			closed := judge(t, fmt.Sprintf("rules:\n  - name: closed\n    match: {server: demo%s}\n    %s\n", method, decides)).Current()
			f := openJudged(t, holder, nil)
			s := f.enter("/mcp", `{}`)
			res, err := f.client.Do(f.request("GET", "/mcp", "", mcpwire.HeaderSessionID, s.id))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			next := events(t, res)
			subscribe := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"callyard:demo:demo://any/2"}}`
			changed := bus.Resources{Server: "demo", URIs: []string{"demo://any/2"}}
			said := func(method string) {
				t.Helper()
				if got := next(); !strings.Contains(got, method) {
					t.Errorf("%s, not %s", got, method)
				}
			}
			holder.Replace(closed)
			if a := s.send(subscribe); !strings.Contains(string(a.body), `"error"`) || !strings.Contains(string(a.body), "closed") && !strings.Contains(string(a.body), "forbidden") && !strings.Contains(string(a.body), "Resource not found") {
				t.Errorf("subscribed to what may not be read: %s", a.body)
			}
			f.endpoint.Updated(changed)
			holder.Replace(calm())
			s.send(subscribe).result(t)
			f.endpoint.Updated(changed)
			said("resources/updated")
			holder.Replace(closed)
			f.endpoint.Updated(changed)
			f.endpoint.Updated(bus.Resources{Server: "demo", URIs: []string{"demo://any/3"}}) // no client subscribed to it
			holder.Replace(calm())
			s.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"callyard:demo:demo://any/4"}}`).result(t)
			f.endpoint.Updated(bus.Resources{Server: "demo", URIs: []string{"demo://any/4"}})
			said("demo://any/4") // and no notification before it
		})
	}
}

// stream opens the GET stream of a session. It returns when the front door has registered it.
func (r *legacyClient) stream(t *testing.T) (next func() string, disconnect func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	res, err := r.f.client.Do(r.f.request("GET", r.path, "", mcpwire.HeaderSessionID, r.id).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	return events(t, res), cancel
}

// withTool returns the definitions with one more tool.
func withTool(name string) schema.Definitions {
	defs := definitions
	defs.Tools = append(defs.Tools[:len(defs.Tools):len(defs.Tools)], raw(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
	return defs
}

const listTools = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`

func TestClientLearnsOfListChangesThatHappenedWhileItHadNoStream(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	g := f.another()
	s := f.enter("/mcp/demo", `{}`)
	s.send(listTools).result(t)
	_, disconnect := s.stream(t)
	disconnect()
	f.define("demo", withTool("missed"))
	f.WaitFor("the new tool", func() bool { return strings.Contains(f.ask("/mcp/demo", "tools/list", "", "").result(t), "missed") })
	next, _ := s.stream(t)
	if got := next(); !strings.Contains(got, mcpwire.NotifyToolsChanged) {
		t.Errorf("%s", got)
	}

	// Another front door does not know which lists the client has read.
	moved := &legacyClient{g, s.path, s.id}
	next, disconnect = moved.stream(t)
	for _, want := range []string{mcpwire.NotifyToolsChanged, mcpwire.NotifyResourcesChanged, mcpwire.NotifyPromptsChanged} {
		if got := next(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	disconnect()

	// A client that knows the current lists gets no notification until the next change.
	if got := moved.send(listTools).result(t); !strings.Contains(got, "missed") {
		t.Fatal(got)
	}
	next, _ = moved.stream(t)
	defs := withTool("missed")
	defs.Prompts = nil
	f.define("demo", defs)
	if got := next(); !strings.Contains(got, mcpwire.NotifyPromptsChanged) {
		t.Errorf("%s", got)
	}
}
