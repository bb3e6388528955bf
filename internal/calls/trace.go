package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// traceTimeout bounds the lookup of a trace, so that no caller waits long for it.
const traceTimeout = time.Second

// TraceID returns the id of the call's trace as 32 hex digits, or "" if the call was not traced
// or not sampled, or its trace is unknown. A held call is in the trace of its run, which only its
// execution record contains. The trace of a call in a batch is in its record only.
func TraceID(ctx context.Context, c *Calls, s *Status) string {
	switch {
	case s.RecordOnly:
		return s.trace.String()
	case s.approval != nil:
		asked := schema.Trace{Parent: s.approval.Trace}
		if c.o.Records == nil || telemetry.SampledID(asked) == ([16]byte{}) {
			return "" // the run is sampled only if the request was
		}
		ctx, cancel := context.WithTimeout(ctx, traceTimeout)
		defer cancel()
		rec, err := c.o.Records.Get(ctx, schema.OnlyTenant(s.Tenant), s.ID)
		if err != nil {
			return ""
		}
		return rec.Trace.String()
	case s.call != nil && s.Batch == "" && c.o.Traced:
		// The call's spans are children of the request that stored it.
		return records.TraceID(telemetry.SampledID(s.call.Trace)).String()
	}
	return ""
}
