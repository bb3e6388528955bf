package mcp

import (
	"net/http"
	"strconv"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// traced reports whether a method gets a span. Long-lived streams get none.
func traced(method string) bool {
	switch method {
	case schema.MethodCallTool, schema.MethodReadResource, schema.MethodGetPrompt, schema.MethodComplete,
		mcpwire.MethodListTools, mcpwire.MethodListResources, mcpwire.MethodListResourceTemplates, mcpwire.MethodListPrompts, mcpwire.MethodDiscover, mcpwire.MethodInitialize, mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		return true
	}
	return false
}

// beginSpan begins the span of a request. Its parent comes from _meta, or else from the HTTP
// headers. The spans of its calls are children of this span.
func (ep *Endpoint) beginSpan(x *exchange, r *http.Request) {
	if !x.msg.request() || !traced(x.msg.method) {
		return
	}
	parent := x.meta.trace
	if parent.Parent == "" {
		parent = schema.Trace{Parent: r.Header.Get("Traceparent"), State: r.Header.Get("Tracestate")}
		if len(parent.State) > maxTraceState {
			parent.State = ""
		}
	}
	x.span = ep.o.Traces.Begin(parent, telemetry.Server, x.msg.method)
	x.span.Text(telemetry.KeyMCPMethod, x.msg.method)
	x.span.Text(telemetry.KeyHTTPMethod, http.MethodPost)
	x.span.Text(telemetry.KeyTransport, "tcp")
	x.span.Text(telemetry.KeyRequestID, string(x.msg.id))
	if x.modern {
		x.span.Text(telemetry.KeyMCPVersion, mcpwire.Modern)
	}
	x.meta.trace = x.span.Trace()
	if x.meta.trace.Parent != "" {
		x.res.w.Header()["Traceparent"] = []string{x.meta.trace.Parent}
	}
}

// note adds the call to the span.
func (x *exchange) note(call *schema.Call) {
	if x.span == nil {
		return
	}
	x.span.Text(telemetry.KeyCall, string(call.ID))
	x.span.Text(telemetry.KeyServer, string(call.Server))
	if call.Method == "" {
		x.span.Rename(schema.MethodCallTool + " " + call.Tool)
		x.span.Text(telemetry.KeyOperation, telemetry.ExecuteTool)
		x.span.Text(telemetry.KeyTool, call.Tool)
	}
	if x.session != nil {
		x.span.Text(telemetry.KeyMCPVersion, x.session.version)
	}
}

// outcome adds the outcome of the call to the span, if it has ended. A call that is held or
// accepted has not.
func (x *exchange) outcome(out *calls.Outcome, err error) {
	if err != nil || out.Result != nil {
		x.span.Outcome(out.Result, err)
	}
}

// failed adds the error that answers the request to the span.
func (x *exchange) failed(e *fault) {
	if x.span == nil {
		return
	}
	code := strconv.FormatInt(e.Code, 10)
	x.span.Text(telemetry.KeyRPCStatus, code)
	x.span.Fail(code)
}

func (x *exchange) endSpan() {
	if x.span == nil {
		return
	}
	x.span.Answered(x.res.statusSent())
	x.span.End()
}
