package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/schema"
)

// A call whose person must open an address first, to connect to the server, did not start. The
// client learns the address in the way of its revision: by input requests (URL elicitation) from
// 2026-07-28 on, by an error of its own in 2025-11-25, and by a text everywhere else.

const (
	// connectID begins the ids of the input requests.
	connectID = "connect"
	// connectEvery is how often a front door looks whether somebody has connected.
	connectEvery = 2 * time.Second
	// maxPages bounds the addresses of one server that a client is asked to open.
	maxPages = 8
)

// page is an address to open, as in URL elicitation.
type page struct {
	Mode    string `json:"mode"`
	ID      string `json:"elicitationId,omitempty"` // of revision 2025-11-25 only
	URL     string `json:"url"`
	Message string `json:"message"`
}

// pagesOf returns the addresses that have to be opened before the call, nil where an error is of
// another kind. Servers of revision 2025-11-25 have an error code for that.
func pagesOf(e *schema.Error) []page {
	switch {
	case e.Kind == schema.KindConnectRequired && e.ConnectURL != "":
		return []page{{Mode: "url", ID: cmp.Or(string(e.CallID), connectID), URL: e.ConnectURL, Message: e.Detail}}
	case e.Kind != schema.KindProtocol || e.RPC == nil || e.RPC.Code != mcpwire.CodeURLElicitation:
		return nil
	}
	var data struct {
		Elicitations []page `json:"elicitations"`
	}
	if json.Unmarshal(e.RPC.Data, &data) != nil {
		return nil
	}
	var pages []page
	for _, p := range data.Elicitations {
		if p.Mode == "url" && p.URL != "" && len(pages) < maxPages {
			pages = append(pages, page{Mode: "url", URL: p.URL, Message: cmp.Or(p.Message, e.RPC.Message)})
		}
	}
	return pages
}

// opensPages reports whether the client can be asked to open an address.
func (x *exchange) opensPages() bool { return capable(x.capabilities(), "elicitation", "url") }

// asksInResults reports whether the result of the request may ask for input.
func (x *exchange) asksInResults() bool {
	switch x.msg.method {
	case schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt:
		return x.modern
	}
	return false
}

// failed answers a call that did not succeed.
func (r *requests) failed(x *exchange, call *schema.Call, err error) ([]byte, *fault) {
	e := schema.AsError(err)
	// A client that has opened the addresses is not sent there twice in a row: clients retry at
	// once, and would go round in circles.
	if pages := pagesOf(e); pages != nil && x.asksInResults() && x.opensPages() && !x.opened {
		state := requestState{Call: call.ID, Connect: true}
		requests := []byte{'{'}
		for i, p := range pages {
			params := appendMember(appendMember(appendMember([]byte{'{'}, "mode", quote(p.Mode)), "url", quote(p.URL)), "message", quote(p.Message))
			request := append(append([]byte(`{"method":"`+mcpwire.MethodElicit+`","params":`), params...), `}}`...)
			requests = appendMember(requests, connectID+strconv.Itoa(i+1), request)
		}
		b := append(append([]byte(`{"resultType":"input_required","inputRequests":`), requests...), `},"requestState":`...)
		return append(appendQuoted(b, state.String()), '}'), nil
	}
	if call.Method == "" {
		return x.toolFault(err)
	}
	return nil, x.faultOf(err)
}

// pageFault returns the error that asks a client of revision 2025-11-25 to open addresses; nil
// where the client is of another revision, or cannot.
func (x *exchange) pageFault(e *schema.Error) *fault {
	pages := pagesOf(e)
	if pages == nil || x.modern || x.session == nil || x.session.version < mcpwire.LegacyNewest || !x.opensPages() {
		return nil
	}
	if e.RPC != nil { // the server's own
		return &fault{Code: e.RPC.Code, Message: e.RPC.Message, Data: e.RPC.Data}
	}
	data, err := json.Marshal(struct {
		errorData
		Elicitations []page `json:"elicitations"`
	}{errorDataOf(e), pages})
	if err != nil {
		return nil // strings and numbers always marshal
	}
	return &fault{Code: mcpwire.CodeURLElicitation, Message: e.Detail, Data: data}
}

// ownPages is an error of a server that asks its client to open addresses, as an error of ours:
// its code is none in other revisions than 2025-11-25. Other errors are returned as they are.
func ownPages(e *schema.Error) *schema.Error {
	pages := pagesOf(e)
	if pages == nil || e.RPC == nil {
		return e
	}
	text := strings.TrimRight(e.RPC.Message, ". ") + ". The server requires that you open this address first:"
	for _, p := range pages {
		text += " " + p.URL
	}
	own := schema.Errorf(schema.KindConnectRequired, "%s", text).WithCall(e.CallID)
	own.ConnectURL = pages[0].URL
	return own
}

// connected continues a call whose client was asked to open addresses. refused says that its user
// did not. An accepted request says only that the address is opened, so the front door waits
// until the person has connected.
func (r *requests) connected(ctx context.Context, x *exchange, server schema.ServerID, responses []byte) (refused *schema.Error) {
	asked, accepted := false, true
	each(responses, func(id string, answer []byte) {
		if strings.HasPrefix(id, connectID) {
			asked = true
			accepted = accepted && getString(answer, "action") == "accept"
		}
	})
	switch {
	case !asked: // the client is asked again
	case !accepted:
		return schema.Errorf(schema.KindConnectRequired, "The user did not open the address at which to connect to server %q. The call did not start.", server)
	default:
		x.opened = r.waitConnected(ctx, x, server)
	}
	return nil
}

// waitConnected waits until the principal has connected to the server; false where it has not in
// time.
func (r *requests) waitConnected(ctx context.Context, x *exchange, server schema.ServerID) bool {
	ready := x.ep.o.Connected
	if ready == nil {
		return true
	}
	waiting, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	defer context.AfterFunc(x.ep.leaving, cancel)()
	for {
		if schema.KindOf(ready(waiting, &x.principal, server)) != schema.KindConnectRequired {
			return waiting.Err() == nil
		}
		if !sleep.For(connectEvery, waiting.Done()) {
			return false
		}
	}
}
