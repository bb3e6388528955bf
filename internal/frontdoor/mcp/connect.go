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

// If the user must open a URL to connect to the server before the call, the call does not start.
// The client receives the URL in the form that its revision supports: input requests (URL
// elicitation) from 2026-07-28 on, a dedicated error in 2025-11-25, and text in all others.

const (
	// connectID is the prefix of the IDs of the input requests.
	connectID = "connect"
	// connectEvery is the interval at which a front door checks whether the user has connected.
	connectEvery = 2 * time.Second
	// maxPages limits the number of URLs of one server that a client is asked to open.
	maxPages = 8
)

// page is a URL to open, as in URL elicitation.
type page struct {
	Mode    string `json:"mode"`
	ID      string `json:"elicitationId,omitempty"` // only in revision 2025-11-25
	URL     string `json:"url"`
	Message string `json:"message"`
}

// pagesOf returns the URLs that must be opened before the call, or nil for any other kind of
// error. Servers of revision 2025-11-25 have an error code for that.
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

// opensPages reports whether the client can be asked to open a URL.
func (x *exchange) opensPages() bool { return capable(x.capabilities(), "elicitation", "url") }

// asksInResults reports whether the result of the request may ask for input.
func (x *exchange) asksInResults() bool {
	switch x.msg.method {
	case schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt:
		return x.modern
	}
	return false
}

// failed answers a call that failed.
func (r *requests) failed(x *exchange, call *schema.Call, err error) ([]byte, *fault) {
	e := schema.AsError(err)
	// Do not send a client that has opened the URLs there again: clients retry at once, and would
	// loop.
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

// pageFault returns the error that asks a client of revision 2025-11-25 to open URLs. It returns
// nil if the client uses another revision or cannot open URLs.
func (x *exchange) pageFault(e *schema.Error) *fault {
	pages := pagesOf(e)
	if pages == nil || x.modern || x.session == nil || x.session.version < mcpwire.LegacyNewest || !x.opensPages() {
		return nil
	}
	if e.RPC != nil { // the server's error data
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

// ownPages converts a server's error that asks its client to open URLs into a Callyard error,
// because its code exists only in revision 2025-11-25. Other errors are returned unchanged.
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

// connected continues a call whose client was asked to open URLs. refused is set if its user did
// not open them. An accepted request only means that the URL was opened, so the front door waits
// until the user has connected.
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

// waitConnected waits until the principal has connected to the server. It returns false if that
// does not happen in time.
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
