package admission

import (
	"context"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// admitTraced is admit as a span.
func (g *Gate) admitTraced(ctx context.Context, call *schema.Call) (admitted, error) {
	if g.traces == nil {
		return g.admit(ctx, call)
	}
	span := g.traces.Begin(call.Trace, telemetry.Internal, "admit")
	defer span.End()
	span.Text(telemetry.KeyCall, call.ID)
	a, err := g.admit(ctx, call)
	switch {
	case err != nil:
		span.Text(telemetry.KeyAdmitted, "refused")
		span.Outcome(nil, err)
	case a.held != nil:
		span.Text(telemetry.KeyAdmitted, "held")
		span.Text(telemetry.KeyApproval, a.held.Approval.ID)
	case a.durable != nil:
		span.Text(telemetry.KeyAdmitted, "stored")
	default:
		span.Text(telemetry.KeyAdmitted, "run")
	}
	return a, err
}
