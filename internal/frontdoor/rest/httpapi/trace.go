package httpapi

import (
	"net/http"
	"strings"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Method returns the method of a request, or "_OTHER" if it is not a standard one.
func Method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// EndSpan ends the span after the request was answered.
func (x *Exchange) EndSpan(r *http.Request) {
	if x.Span == nil {
		return
	}
	// The pattern comes from the router: there are few, and each begins with the method.
	if _, route, found := strings.Cut(r.Pattern, " "); found {
		x.Span.Rename(Method(r) + " " + route)
		x.Span.Text(telemetry.KeyHTTPRoute, route)
	}
	x.Span.Answered(x.Status)
	x.Span.End()
}

// TraceID returns the trace ID of the request, or "" if there is none.
func TraceID(x *Exchange, r *http.Request) string {
	t := x.Span.Trace()
	if t.Parent == "" {
		t = TraceOf(r)
	}
	return t.ID()
}

// Trace returns the trace context for a call of the request: a child of the request's span or, if
// tracing is off, the W3C trace context of the request, which is echoed if it is valid.
func (x *Exchange) Trace(r *http.Request) schema.Trace {
	if x.Span != nil {
		return x.Span.Trace()
	}
	t := TraceOf(r)
	if t.Parent != "" {
		x.Set("Traceparent", t.Parent)
	}
	return t
}

// Limits of the trace context that is forwarded with a call.
const (
	traceParentLength = 55
	maxTraceState     = 512
)

// TraceOf returns the W3C trace context of a request. It is empty if it is invalid.
func TraceOf(r *http.Request) (t schema.Trace) {
	parent := r.Header["Traceparent"]
	if len(parent) != 1 || !soundTraceParent(parent[0]) {
		return t
	}
	t.Parent = parent[0]
	if state := r.Header["Tracestate"]; len(state) > 0 {
		if joined := strings.Join(state, ","); len(joined) <= maxTraceState {
			t.State = joined
		}
	}
	return t
}

// soundTraceParent reports whether the text is version-traceid-parentid-flags in lowercase hex,
// with neither ID all zero.
func soundTraceParent(text string) bool {
	if len(text) != traceParentLength || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return false
	}
	trace, span := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		trace = trace || i > 2 && i < 35 && c != '0'
		span = span || i > 35 && i < 52 && c != '0'
	}
	return trace && span
}
