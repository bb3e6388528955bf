package admission

import (
	"context"
	"errors"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// admitTraced is admit as a span.
func (g *Gate) admitTraced(ctx context.Context, call *schema.Call) (*risk.Cache, error) {
	if g.traces == nil {
		return g.admit(ctx, call)
	}
	span := g.traces.Begin(call.Trace, telemetry.Internal, "admit")
	defer span.End()
	span.Text(telemetry.KeyCall, call.ID)
	keep, err := g.admit(ctx, call)
	var held *HeldError
	switch {
	case err == nil:
		span.Text(telemetry.KeyAdmitted, "run")
	case errors.As(err, &held):
		span.Text(telemetry.KeyAdmitted, "held")
		span.Text(telemetry.KeyApproval, held.Approval.ID)
	case errors.Is(err, ErrDurable):
		span.Text(telemetry.KeyAdmitted, "stored")
	default:
		span.Text(telemetry.KeyAdmitted, "refused")
		span.Outcome(nil, err)
	}
	return keep, err
}
