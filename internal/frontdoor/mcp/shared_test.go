package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/pkg/schema"
)

// share makes an endpoint share its sessions over its own connection, as a front door does.
func (f *fabric) share(endpoint *Endpoint, name string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	table, err := sessiontable.Open(ctx, f.NATS.Connect(f.t, name), endpoint.SessionChanged)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(table.Close)
	endpoint.ShareSessions(table)
}

// another returns a second front door on the same fabric.
func (f *fabric) another() *fabric {
	f.t.Helper()
	g := f.serving(f.endpoint.o)
	g.share(g.endpoint, "another")
	return g
}

const pinging = `{"jsonrpc":"2.0","id":5,"method":"ping"}`

func TestSessionContinuesAtAnotherFrontDoorUntilEnded(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	g := f.another()
	s := f.enter("/mcp/demo", `{"elicitation":{"form":{}}}`)
	name := f.endpoint.sessions.all()[0].name
	if a := s.send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"notice"}}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	moved := &legacyClient{g, s.path, s.id}
	if got := moved.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`).result(t); !strings.Contains(got, "content") {
		t.Errorf("%s", got)
	}
	c := f.Worker.Last()
	if !c.Hears || c.Session != name || string(c.Extra) != `{"_meta":{"`+mcpwire.MetaClientCapabilities+`":{"elicitation":{"form":{}}},"`+mcpwire.MetaLogLevel+`":"notice"}}` {
		t.Errorf("the revived session is another one: hears %v, %q, want %q; %s", c.Hears, c.Session, name, c.Extra)
	}
	// A setting made at one front door is effective at the other.
	if a := moved.send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	f.WaitFor("the level that was set elsewhere", func() bool {
		s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`)
		return strings.Contains(string(f.Worker.Last().Extra), `"error"`)
	})
	// Another path, and an ID that does not exist.
	for _, other := range []*legacyClient{{g, "/mcp", s.id}, {g, s.path, strings.Repeat("A", idLength)}, {g, s.path, "x/y"}} {
		if a := other.send(pinging); a.status != 404 {
			t.Errorf("%s at %s: %d %s", other.id, other.path, a.status, a.body)
		}
	}
	if a := f.send(f.request("DELETE", s.path, "", mcpwire.HeaderSessionID, s.id)); a.status != 204 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.send(pinging); a.status != 404 {
		t.Errorf("it goes on where it was ended: %d", a.status)
	}
	f.WaitFor("the end at the other front door", func() bool { return len(g.endpoint.sessions.all()) == 0 })
	if a := moved.send(pinging); a.status != 404 {
		t.Errorf("it goes on at the other front door: %d", a.status)
	}
}

func TestApprovalIsNotTakenForACallAtAnotherFrontDoor(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	g := f.another()
	before := f.Worker.Count()
	s := f.enter("/mcp/risky", canForms)
	moved := &legacyClient{g, s.path, s.id}
	_, question := s.asked(t, `"name":"echo","arguments":{"a":1}`)
	next, other := moved.asked(t, `"name":"echo","arguments":{"a":2}`)
	if getString(question, "method") != "elicitation/create" || getString(other, "method") != "elicitation/create" {
		t.Fatalf("%s, %s", question, other)
	}
	// A load balancer sends the answer to the other front door, which asked something else.
	answer := `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"confirm":true}}}`
	if a := moved.send(fmt.Sprintf(answer, get(question, "id"))); a.status != 202 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := moved.send(fmt.Sprintf(strings.ReplaceAll(answer, "true", "false"), get(other, "id"))); a.status != 202 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := next(); !strings.Contains(got, "rejected") || f.Worker.Count() != before {
		t.Errorf("%s, %d runs", got, f.Worker.Count()-before)
	}
}

func TestSessionIsRevivedOnlyForItsPrincipal(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	id := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, c := range []struct {
		principal string
		tenant    schema.TenantID
		status    int
	}{{"somebody else", "", 404}, {"local", "red", 404}, {"local", "", 200}} {
		if _, err := f.endpoint.sessions.table.Put(t.Context(), c.tenant, sessiontable.Key(id), sessiontable.Session{Principal: c.principal, Version: mcpwire.LegacyNewest, Name: "n"}); err != nil {
			t.Fatal(err)
		}
		if a := (&legacyClient{f, "/mcp", id}).send(pinging); a.status != c.status {
			t.Errorf("of %q in %q: %d %s", c.principal, c.tenant, a.status, a.body)
		}
	}
}

func TestASessionThatEndsWhileItIsRevivedStaysEnded(t *testing.T) {
	f := openFabric(t, nil)
	id := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	f.endpoint.SessionChanged(sessiontable.Key(id), 1, true)
	sess, bad := f.endpoint.sessions.revive(id, sessiontable.Session{Principal: "local"}, 1)
	if sess != nil || bad == nil || bad.status != http.StatusNotFound || len(f.endpoint.sessions.all()) != 0 {
		t.Errorf("%+v %+v", sess, bad)
	}
}

func TestSessionWithLargeCapabilitiesIsNotShared(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	g := f.another()
	s := f.enter("/mcp/demo", fmt.Sprintf(`{"experimental":{"x":%q}}`, strings.Repeat("x", maxSharedBytes)))
	if a := s.send(pinging); a.status != 200 {
		t.Errorf("%d", a.status)
	}
	if a := (&legacyClient{g, s.path, s.id}).send(pinging); a.status != 404 {
		t.Errorf("%d", a.status)
	}
	if said := f.Logged.String(); !strings.Contains(said, "too large to share") {
		t.Errorf("the log does not say so: %s", said)
	}
}

func TestManySessionsThatAreNotSharedAreOneLineOfTheLog(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	const filling = maxSharedBytes - 100
	var last *legacyClient
	for range (4<<20)/filling + 10 { // more than the share of one principal
		last = f.enter("/mcp/demo", fmt.Sprintf(`{"experimental":{"x":%q}}`, strings.Repeat("x", filling)))
	}
	if a := last.send(pinging); a.status != 200 {
		t.Errorf("a session beyond the share: %d %s", a.status, a.body)
	}
	if said := f.Logged.String(); strings.Count(said, "are not shared with other front doors") != 1 || !strings.Contains(said, sessiontable.ErrShare.Error()) {
		t.Errorf("the log has %d lines:\n%.2000s", strings.Count(said, "are not shared with other front doors"), said)
	}
}
