package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// traceWithin bounds the question for the trace of a call, which nobody is to wait for.
const traceWithin = time.Second

// TraceID returns the id of the trace that has the spans of the call, 32 hex digits, or ""
// where there is none, it was not sampled, or it is not known. A call that was held has the trace in
// which it ran, which only its execution record tells; that of a call of a batch is in
// its record only.
func TraceID(ctx context.Context, c *Calls, s *Status) string {
	switch {
	case s.RecordOnly:
		return s.trace.String()
	case s.approval != nil:
		asked := schema.Trace{Parent: s.approval.Trace}
		if c.o.Records == nil || telemetry.SampledID(asked) == ([16]byte{}) {
			return "" // the run is sampled if the request was
		}
		ctx, cancel := context.WithTimeout(ctx, traceWithin)
		defer cancel()
		rec, err := c.o.Records.Get(ctx, schema.OnlyTenant(s.Tenant), s.ID)
		if err != nil {
			return ""
		}
		return rec.Trace.String()
	case s.call != nil && s.Batch == "" && c.o.Traced:
		// It runs below the request that had it stored.
		return records.TraceID(telemetry.SampledID(s.call.Trace)).String()
	}
	return ""
}
