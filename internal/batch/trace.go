package batch

import (
	"errors"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// span begins the span of a call on its way here, nil where there are none. That of a
// single call stands below the request that had it stored; those of a batch, of which
// only a share is sampled, are traces of their own that link to it.
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
	case err != nil || res != nil: // else it is left to the next owner
		span.Outcome(res, err)
	}
	span.End()
}
