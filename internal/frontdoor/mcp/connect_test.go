package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	connectAt = "https://callyard.example/connect?server=demo"
	theirPage = "https://server.example/sign-in"
	opened    = `{"connect1":{"action":"accept"}}`
)

// personal is a fabric whose users must open a URL before their calls run.
type personal struct {
	*fabric
	connected atomic.Bool
	looked    chan struct{} // receives a value when the front door checks the connection
}

func openPersonal(t *testing.T, change func(*Options)) *personal {
	t.Helper()
	p := &personal{looked: make(chan struct{}, 100)}
	own := script
	own.Call = func(w *frontdoortest.Worker, f *bus.CallFrame, to bus.ReplyTo) bool {
		if p.connected.Load() {
			return answerCall(w, f, to)
		}
		e := required()
		if f.Tool == "rpc" { // servers of revision 2025-11-25 have a dedicated error for that
			e = schema.Errorf(schema.KindProtocol, "The server answered with an error")
			e.RPC = &schema.RPCError{Code: -32042, Message: "Sign in first.", Data: raw(`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"` + theirPage + `","message":"Sign in"}]}`)}
		}
		w.Listener.Error(to, f.Seq, e, f.Tool == "rpc", 0)
		return true
	}
	p.fabric = openScripted(t, frontdoortest.Options{Script: own}, func(o *Options) {
		o.Connected = func(context.Context, *schema.Principal, schema.ServerID) error {
			select {
			case p.looked <- struct{}{}:
			default:
			}
			if p.connected.Load() {
				return nil
			}
			return required()
		}
		if change != nil {
			change(o)
		}
	})
	return p
}

func required() *schema.Error {
	e := schema.Errorf(schema.KindConnectRequired, "Server %q requires your own credential; connect at %s. The call did not start.", "demo", connectAt)
	e.ConnectURL = connectAt
	return e
}

// sent calls a tool, and returns the URL that the client must open, and the requestState.
func (p *personal) sent(tool string) (url, state string) {
	p.t.Helper()
	got := []byte(p.callAs(canURLs, "/mcp/demo", tool, `{"a":1.0}`, "").result(p.t))
	request := get(get(got, "inputRequests"), "connect1")
	params := get(request, "params")
	state = getString(got, "requestState")
	if getString(got, "resultType") != "input_required" || getString(request, "method") != mcpwire.MethodElicit || getString(params, "mode") != "url" || getString(params, "message") == "" || get(params, "elicitationId") != nil || state == "" {
		p.t.Fatalf("%s", got)
	}
	return getString(params, "url"), state
}

// back sends the call again with the answers of the client's user.
func (p *personal) back(tool, state, responses string) <-chan answer {
	p.t.Helper()
	members := fmt.Sprintf(`"name":%q,"arguments":{"a":1.0},"inputResponses":%s,"requestState":%q`, tool, responses, state)
	r := p.request("POST", "/mcp/demo", modernBody("tools/call", members, canURLs, ""), modernHeaders("tools/call", tool)...)
	done := make(chan answer, 1)
	go func() { done <- p.send(r) }()
	return done
}

func TestCallContinuesAfterUserConnectsAtTheURL(t *testing.T) {
	p := openPersonal(t, nil)
	url, state := p.sent("echo")
	if url != connectAt {
		t.Errorf("%s", url)
	}
	// Opening the URL does not mean that the user has connected.
	waiting := p.back("echo", state, opened)
	<-p.looked
	p.connected.Store(true)
	if got := (<-waiting).result(t); !strings.Contains(got, `"got":{"a":1.0}`) || strings.Contains(got, "connect1") {
		t.Error(got)
	}
	if last := p.Worker.Last(); strings.Contains(string(last.Extra), "connect1") || strings.Contains(string(last.Extra), "requestState") {
		t.Errorf("the server got %s", last.Extra)
	}
}

func TestClientThatDeclinesToConnectIsNotAskedAgain(t *testing.T) {
	p := openPersonal(t, nil)
	_, state := p.sent("echo")
	before := p.Worker.Count()
	for _, action := range []string{"decline", "cancel"} {
		got := (<-p.back("echo", state, `{"connect1":{"action":"`+action+`"}}`)).result(t)
		if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"kind":"connect-required"`) || p.Worker.Count() != before {
			t.Errorf("%s: %s", action, got)
		}
	}
	if got := (<-p.back("echo", state, `{}`)).result(t); !strings.Contains(got, `"input_required"`) {
		t.Errorf("without an answer: %s", got)
	}
}

// Clients retry at once. If a credential exists but is not accepted, a client would loop.
func TestClientIsNotAskedToConnectTwiceInARow(t *testing.T) {
	p := openPersonal(t, func(o *Options) { o.Connected = nil })
	_, state := p.sent("echo")
	if got := (<-p.back("echo", state, opened)).result(t); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"connect_url":"`+connectAt+`"`) {
		t.Error(got)
	}
}

func TestDrainingFrontDoorLetsTheClientRetryElsewhere(t *testing.T) {
	p := openPersonal(t, nil)
	_, state := p.sent("echo")
	waiting := p.back("echo", state, opened)
	<-p.looked
	p.endpoint.drain()
	if got := (<-waiting).result(t); !strings.Contains(got, `"input_required"`) {
		t.Error(got)
	}
}

func TestResourceIsReadAfterItsReaderConnects(t *testing.T) {
	p := openPersonal(t, nil)
	read := func(members string) string {
		t.Helper()
		body := modernBody("resources/read", `"uri":"demo://one"`+members, canURLs, "")
		return p.send(p.request("POST", "/mcp/demo", body, modernHeaders("resources/read", "demo://one")...)).result(t)
	}
	got := []byte(read(""))
	if getString(get(get(get(got, "inputRequests"), "connect1"), "params"), "url") != connectAt {
		t.Fatalf("%s", got)
	}
	p.connected.Store(true)
	if after := read(fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, opened, getString(got, "requestState"))); strings.Contains(after, "input_required") {
		t.Error(after)
	}
	if last := p.Worker.Last(); strings.Contains(string(last.Payload), "connect1") {
		t.Errorf("the server got %s", last.Payload)
	}
}

// A server's request to open a URL is forwarded in the form of the client's revision.
func TestServersURLRequestReachesClientsOfEachRevision(t *testing.T) {
	p := openPersonal(t, nil)
	url, state := p.sent("rpc")
	if url != theirPage {
		t.Errorf("%s", url)
	}
	p.connected.Store(true)
	if e := (<-p.back("rpc", state, opened)).fault(t); e.Code != 4242 { // the call continued
		t.Errorf("%+v", e)
	}
	p.connected.Store(false)
	if got := p.callAs(canFormsOnly, "/mcp/demo", "rpc", `{}`, "").result(t); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, theirPage) {
		t.Error(got)
	}
	s := p.enter("/mcp/demo", canURLs)
	a := s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rpc"}}`)
	if e := a.fault(t); e.Code != -32042 || string(e.Data) != `{"elicitations":[{"mode":"url","elicitationId":"e1","url":"`+theirPage+`","message":"Sign in"}]}` {
		t.Errorf("%s", a.body)
	}
}

// The error code of revision 2025-11-25 is sent only to clients of that revision that can open
// URLs.
func TestURLElicitationErrorIsSentToOneRevisionOnly(t *testing.T) {
	p := openPersonal(t, nil)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`
	const read = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"demo://one"}}`
	s := p.enterAs("2025-11-25", "/mcp/demo", canURLs)
	for _, body := range []string{call, read} {
		a := s.send(body)
		e := a.fault(t)
		elicitations := string(get(e.Data, "elicitations"))
		if e.Code != -32042 || !strings.Contains(elicitations, `"url":"`+connectAt+`"`) || !strings.Contains(elicitations, `"elicitationId":`) {
			t.Errorf("%s", a.body)
		}
	}
	for version, capabilities := range map[string]string{"2025-11-25": canFormsOnly, "2025-06-18": canURLs, "2025-03-26": canURLs} {
		s := p.enterAs(version, "/mcp/demo", capabilities)
		if got := s.batch(call).result(t); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, connectAt) || !strings.Contains(got, `"kind":"connect-required"`) {
			t.Errorf("%s: %s", version, got)
		}
		if e := s.batch(read).fault(t); e.Code != -31409 || getString(e.Data, "connect_url") != connectAt {
			t.Errorf("%s: %+v", version, e)
		}
	}
	for _, capabilities := range []string{canFormsOnly, `{}`} {
		if got := p.callAs(capabilities, "/mcp/demo", "echo", `{}`, "").result(t); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, connectAt) {
			t.Error(got)
		}
	}
}

// Revision 2026-07-28 reserves the code that older servers use for an unknown resource.
func TestUnknownResourceCodeFollowsTheRevision(t *testing.T) {
	x := &exchange{modern: true}
	e := schema.Errorf(schema.KindProtocol, "The server answered with an error")
	e.RPC = &schema.RPCError{Code: -32002, Message: "Resource not found"}
	if f := x.faultOf(e); f.Code != mcpwire.CodeInvalidParams {
		t.Errorf("%+v", f)
	}
	x.modern = false
	if f := x.faultOf(e); f.Code != mcpwire.CodeNoResource {
		t.Errorf("%+v", f)
	}
}
