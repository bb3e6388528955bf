package worker

import (
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// begin starts the span of a call that arrived. The worker must have traces.
func (w *Worker) begin(f *bus.CallFrame) *telemetry.Span {
	span := w.o.Traces.Begin(schema.Trace{Parent: f.TraceParent, State: f.TraceState}, telemetry.Consumer, "process "+string(f.Server))
	span.Text(telemetry.KeySystem, telemetry.NATS)
	span.Text(telemetry.KeyStep, "process")
	span.Text(telemetry.KeyStepType, "process")
	span.Text(telemetry.KeyDestination, string(f.Server))
	span.Text(telemetry.KeyCall, string(f.ID))
	span.Text(telemetry.KeyApproval, string(f.Approval))
	span.Text(telemetry.KeyWorker, string(w.id))
	return span
}

// endSpan ends the span of a call with its outcome.
func (j *job) endSpan(out session.Outcome) {
	switch {
	case out.Err != nil:
		j.span.Outcome(nil, out.Err)
	case out.ToolError:
		j.span.ToolFailed()
	}
	j.span.End()
}
