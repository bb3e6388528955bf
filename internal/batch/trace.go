package batch

import (
	"errors"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// span begins the span of a call, or returns nil if there are no traces. The span of a single call
// is a child of the request that stored it. Calls of batches, of which only a share is sampled,
// have separate traces that link to their batch's request.
func (l *lease) span(it *item) *telemetry.Span {
	t := l.o.Traces
	if t == nil || it.rec.Method == methodRefused {
		return nil
	}
	var span *telemetry.Span
	if l.m.Kind == journal.Batch {
		span = t.Share(schema.Trace{Parent: l.m.Trace}, "run batch call")
		span.Text(telemetry.KeyBatch, string(l.m.ID))
	} else {
		span = t.Begin(it.rec.Trace, telemetry.Internal, "run stored call")
	}
	span.Text(telemetry.KeyCall, string(it.call.ID))
	span.Text(telemetry.KeyServer, string(it.call.Server))
	span.Text(telemetry.KeyTool, it.call.Tool)
	it.call.Trace = span.Trace()
	return span
}

func endSpan(span *telemetry.Span, res *schema.Result, err error) {
	switch {
	case errors.Is(err, errHeld):
		span.Text(telemetry.KeyAdmitted, "held")
	case err != nil || res != nil: // otherwise the next owner continues it
		span.Outcome(res, err)
	}
	span.End()
}
