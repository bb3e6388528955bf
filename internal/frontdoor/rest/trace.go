package rest

import (
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// beginSpan begins the span of a request, below that of its caller. Pages, probes and
// metrics have none: they are asked for all the time and tell nothing. The path is
// not noted, nor is the query: tokens and arguments stand in them.
func (a *API) beginSpan(x *exchange, r *http.Request) {
	if open(r.URL.Path) || r.URL.Path == "/metrics" || r.URL.Path == "/version" {
		return
	}
	x.span = a.o.Traces.Begin(traceOf(r), telemetry.Server, method(r))
	x.span.Text(telemetry.KeyHTTPMethod, method(r))
	if t := x.span.Trace(); t.Parent != "" {
		x.set("Traceparent", t.Parent)
	}
}

// method is the method of a request, of those that there are.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// endSpan ends the span once the request is answered.
func (x *exchange) endSpan(r *http.Request) {
	if x.span == nil {
		return
	}
	// The pattern is of the router: it is one of few, and begins with the method.
	if _, route, found := strings.Cut(r.Pattern, " "); found {
		x.span.Rename(method(r) + " " + route)
		x.span.Text(telemetry.KeyHTTPRoute, route)
	}
	x.span.Answered(x.status)
	x.span.End()
}

// note says which call the request is about.
func (x *exchange) note(call *schema.Call) {
	x.span.Text(telemetry.KeyCall, call.ID)
	x.span.Text(telemetry.KeyServer, call.Server)
	x.span.Text(telemetry.KeyTool, call.Tool)
}

// outcome says how the call of the request ended, where it did; a call that is held or
// accepted has not ended.
func (x *exchange) outcome(out *calls.Outcome, err error) {
	if err != nil || out.Result != nil {
		x.span.Outcome(out.Result, err)
	}
}

// confirmed says which call a confirmation ran, and how it ended.
func (x *exchange) confirmed(c *calls.Confirmed, err error) {
	if x.span == nil || c.Denied || c.Replayed {
		return
	}
	x.span.Text(telemetry.KeyCall, c.CallID)
	x.span.Text(telemetry.KeyApproval, c.ApprovalID)
	x.span.Outcome(c.Result, err)
}

// traceID is the id of the trace that the request is part of, "" for none.
func traceID(x *exchange, r *http.Request) string {
	t := x.span.Trace()
	if t.Parent == "" {
		t = traceOf(r)
	}
	return t.ID()
}
