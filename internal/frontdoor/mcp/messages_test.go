package mcp

import (
	"errors"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
)

// The answers to a server whose question is not forwarded.
const (
	refusedUndeclared = `{"error":{"code":-32601,"message":"The client did not declare the capability for this request."}}`
	refusedUnanswered = `{"error":{"code":-32603,"message":"The client did not answer: it disconnected, it does not read events, or the call has ended."}}`
	refusedTooMany    = `{"error":{"code":-32603,"message":"Too many requests to the client are open."}}`
)

// told returns an answer that the worker receives.
func told(seq uint64, number int64, object string) frontdoortest.Told {
	return frontdoortest.Told{Seq: seq, Number: number, Object: object}
}

// hangingCall starts a call that hangs. It returns the messages of its client and the address of its
// replies.
func (r *legacyClient) hangingCall() (next func() string, to bus.ReplyTo, seq uint64) {
	r.f.t.Helper()
	res := make(chan func() string, 1)
	go func() {
		got, err := r.f.client.Do(r.request(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"hang"}}`))
		if err != nil {
			r.f.t.Errorf("%v", err)
			close(res)
			return
		}
		r.f.t.Cleanup(func() { _ = got.Body.Close() })
		res <- events(r.f.t.(*testing.T), got)
	}()
	<-r.f.Worker.Asked
	to, seq = r.f.Worker.Hanging()
	var read func() string
	return func() string {
		if read == nil {
			if read = <-res; read == nil {
				r.f.t.FailNow()
			}
		}
		return read()
	}, to, seq
}

func (f *fabric) ends(to bus.ReplyTo, seq uint64) {
	f.Worker.Result(to, seq, `{"content":[],"over":1.0}`)
}

func TestServerRequestDuringACallRoundTrips(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{"elicitation":{}}`)
	next, to, seq := s.hangingCall()
	if c := f.Worker.Last(); !c.Hears || c.Session == "" || c.Session == s.id {
		t.Errorf("the call says hears %v, session %q", c.Hears, c.Session)
	}
	question := `{"method":"elicitation/create","params":{"message":"Who?",  "big":9007199254740993}}`
	if !f.Worker.Listener.Said(to, seq, 7, []byte(question)) {
		t.Fatal("the question was not sent")
	}
	heard := []byte(next())
	if getString(heard, "method") != "elicitation/create" || string(get(heard, "params")) != `{"message":"Who?",  "big":9007199254740993}` {
		t.Fatalf("%s", heard)
	}
	if a := s.send(`{"jsonrpc":"2.0","id":` + string(get(heard, "id")) + `,"error":null,"result":{"action":"accept","n":1.0}}`); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got, want := <-f.Worker.Told, told(seq, 7, `{"result":{"action":"accept","n":1.0}}`); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A request without a declared capability is not forwarded. Log messages are, even if the client
	// has not set a level.
	f.Worker.Listener.Said(to, seq, 8, []byte(`{"method":"sampling/createMessage","params":{}}`))
	if got := <-f.Worker.Told; got.Number != 8 || got.Object != refusedUndeclared {
		t.Errorf("%+v", got)
	}
	f.Worker.Listener.Said(to, seq, 0, []byte(`{"method":"notifications/message","params":{"level":"info","data":1}}`))
	if got := next(); !strings.Contains(got, `"params":{"level":"info","data":1}`) {
		t.Error(got)
	}
	f.ends(to, seq)
	if got := next(); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

func TestQuestionIsWithdrawnWhenTheServerCancelsIt(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{"roots":{},"elicitation":{}}`)
	next, to, seq := s.hangingCall()
	f.asks(to, seq, 1, `{"id":1,"method":"elicitation/create","params":{}}`)
	first := []byte(next())
	f.asks(to, seq, 2, `{"id":2,"method":"roots/list","params":{}}`)
	second := []byte(next())
	f.asks(to, seq, 0, `{"method":"notifications/cancelled","params":{"requestId":1}}`)
	withdrawn(t, next, first)
	s.send(`{"jsonrpc":"2.0","id":` + string(get(second, "id")) + `,"result":{"roots":[]}}`)
	for got := <-f.Worker.Told; got.Number != 2; got = <-f.Worker.Told { // the worker ignores the answer to the first
		if got.Number != 1 {
			t.Errorf("%+v", got)
		}
	}
	f.ends(to, seq)
	if got := next(); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

// Servers read the roots of their client once per conversation.
func TestChangedRootsBeginNewConversationsWithServersThatAsk(t *testing.T) {
	f := openAsking(t)
	s := f.enter("/mcp", `{"roots":{"listChanged":true}}`)
	called := func(tool string) string {
		t.Helper()
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`).result(t)
		return f.Worker.Last().Session
	}
	elsewhere := format.MCPName("two words", "echo")
	asks, other := called("demo__echo"), called(elsewhere)
	if again := called("demo__echo"); again != asks {
		t.Errorf("session %q, and then %q", asks, again)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if again := called("demo__echo"); again == asks || again == "" {
		t.Errorf("session %q, also with other roots", again)
	}
	if again := called(elsewhere); again != other || other == "" {
		t.Errorf("a server that does not ask: session %q, and then %q", other, again)
	}
}

func TestOpenQuestionIsWithdrawnWhenTheCallEnds(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{"roots":{}}`)
	next, to, seq := s.hangingCall()
	f.Worker.Listener.Said(to, seq, 1, []byte(`{"method":"roots/list"}`))
	question := []byte(next())
	if !strings.Contains(string(question), `"roots/list","params":{}`) {
		t.Fatalf("%s", question)
	}
	f.ends(to, seq)
	withdrawn(t, next, question)
	if got := next(); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
	if got := <-f.Worker.Told; got.Object != refusedUnanswered {
		t.Errorf("%+v", got)
	}
}

func TestLogMessagesReachASessionThatSetALevelBeforeTheResult(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp/demo", `{}`)
	if a := s.send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`); a.fault(t).Code != mcpwire.CodeInvalidParams {
		t.Errorf("%s", a.body)
	}
	if got := s.send(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"notice"}}`).result(t); got != `{}` {
		t.Error(got)
	}
	next, to, seq := s.hangingCall()
	if got := string(f.Worker.Last().Extra); got != `{"_meta":{"`+mcpwire.MetaLogLevel+`":"notice"}}` {
		t.Error(got)
	}
	f.Worker.Listener.Said(to, seq, 0, []byte(`{"method":"notifications/message","params":{"level":"error", "data":1.0}}`))
	f.ends(to, seq)
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error", "data":1.0}}`; got != want {
		t.Error(got)
	}
	if got := next(); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

func TestALogLevelInTheMetaOfARequestIsForThatRequestAlone(t *testing.T) {
	f := openFabric(t, nil)
	meta := `"` + mcpwire.MetaLogLevel + `":"warning"`
	req := f.request("POST", "/mcp/demo", modernBody("tools/call", `"name":"hang"`, `{}`, meta), modernHeaders("tools/call", "hang")...)
	got := make(chan func() string, 1)
	go func() {
		res, err := f.client.Do(req)
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		got <- events(t, res)
	}()
	<-f.Worker.Asked
	c := f.Worker.Last()
	if !c.Hears || c.Session != "" || string(c.Extra) != `{"_meta":{"`+mcpwire.MetaLogLevel+`":"warning"}}` {
		t.Errorf("hears %v, session %q, %s", c.Hears, c.Session, c.Extra)
	}
	to, _ := f.Worker.Hanging()
	f.Worker.Listener.Said(to, c.Seq, 1, []byte(`{"method":"roots/list"}`))
	if got := <-f.Worker.Told; got.Object != refusedUndeclared {
		t.Errorf("%+v", got)
	}
	for _, level := range []string{"info", "loud", "error"} {
		f.Worker.Listener.Said(to, c.Seq, 0, []byte(`{"method":"notifications/message","params":{"level":"`+level+`"}}`))
	}
	f.ends(to, c.Seq)
	next := <-got
	if next == nil {
		t.FailNow()
	}
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}`; got != want {
		t.Error(got)
	}
	if got := next(); !strings.Contains(got, `"over":1.0`) {
		t.Error(got)
	}
}

func TestCallOfClientWithoutUsableCapabilitiesHasNoSession(t *testing.T) {
	f := openFabric(t, nil)
	f.enter("/mcp/demo", `{}`).send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`)
	if c := f.Worker.Last(); c.Hears || c.Session != "" || len(c.Extra) != 0 {
		t.Errorf("legacy: %v %q %s", c.Hears, c.Session, c.Extra)
	}
	f.callAs(`{"elicitation":{}}`, "/mcp/demo", "echo", `{}`, "")
	if c := f.Worker.Last(); c.Hears || c.Session != "" {
		t.Errorf("modern: %v %q", c.Hears, c.Session)
	}
}

func TestSubscriberGetsResourceUpdatesUntilItUnsubscribes(t *testing.T) {
	wanted := make(chan bus.Resources, 10)
	f := openFabric(t, func(o *Options) {
		o.Want = func(r bus.Resources) error {
			wanted <- r
			return errors.New("nobody is there") // an error that the client need not know
		}
	})
	s := f.enter("/mcp", `{}`)
	res, err := f.client.Do(f.request("GET", "/mcp", "", mcpwire.HeaderSessionID, s.id))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	next := events(t, res)
	if a := s.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"other://one"}}`); a.fault(t).Code != mcpwire.CodeNoResource {
		t.Errorf("%s", a.body)
	}
	if got := s.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"callyard:demo:demo://any/2"}}`).result(t); got != `{}` {
		t.Error(got)
	}
	want := <-wanted
	if len(want.URIs) != 1 || want.URIs[0] != "demo://any/2" || want.Server == "" {
		t.Errorf("%+v", want)
	}
	f.endpoint.subscriptions.announceAll() // as the periodic announcement does
	if again := <-wanted; again.Server != want.Server || len(again.URIs) != 1 {
		t.Errorf("%+v", again)
	}
	f.endpoint.Updated(bus.Resources{Server: "another", URIs: []string{"demo://any/2"}})
	f.endpoint.Updated(bus.Resources{Server: want.Server, URIs: []string{"demo://any/1", "demo://any/2"}})
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"callyard:demo:demo://any/2"}}`; got != want {
		t.Error(got)
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"callyard:demo:demo://any/2"}}`).result(t)
	f.endpoint.Updated(want)
	s.send(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"callyard:demo:demo://any/3"}}`).result(t)
	f.endpoint.Updated(bus.Resources{Server: want.Server, URIs: []string{"demo://any/3"}})
	if got := next(); !strings.Contains(got, `"callyard:demo:demo://any/3"`) {
		t.Error(got)
	}
}
