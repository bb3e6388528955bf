package session

import (
	"strconv"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// trace begins the span of a call that is about to be sent, and makes it the parent of spans of
// the server. The caller holds the lock of s.
func (r *Running) trace(s *session) {
	if r.span != nil {
		return // sent a second time: nothing was sent the first time
	}
	req := *r.req // do not change the caller's request
	method := req.method()
	name := method
	if method == schema.MethodCallTool {
		name += " " + req.Name
	}
	span := s.pool.cfg.Traces.Begin(req.Trace, telemetry.Client, name)
	span.Text(telemetry.KeyMCPMethod, method)
	if s.about != nil {
		span.Text(telemetry.KeyMCPVersion, s.about.ProtocolVersion)
	}
	span.Text(telemetry.KeyRequestID, strconv.FormatInt(r.id, 10))
	if method == schema.MethodCallTool {
		span.Text(telemetry.KeyOperation, telemetry.ExecuteTool)
		span.Text(telemetry.KeyTool, req.Name)
	}
	transport := "tcp"
	if s.child != nil {
		transport = "pipe"
	}
	span.Text(telemetry.KeyTransport, transport)
	span.Text(telemetry.KeyServer, string(s.pool.cfg.Spec.ID))
	span.Text(telemetry.KeyCall, string(req.CallID))
	req.Trace = span.Trace()
	r.req, r.span = &req, span
}

func endSpan(span *telemetry.Span, o *Outcome) {
	switch {
	case o.Err != nil:
		if o.Err.RPC != nil {
			span.Text(telemetry.KeyRPCStatus, strconv.FormatInt(o.Err.RPC.Code, 10))
		}
		span.Outcome(nil, o.Err)
	case o.ToolError:
		span.ToolFailed()
	}
	span.End()
}
