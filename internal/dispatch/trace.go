package dispatch

import (
	"context"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// traced calls try within a span, from the choice of the worker to the end of the attempt.
func (r *Router) traced(ctx context.Context, call *schema.Call, l *lane, n int, stop <-chan struct{}) (*schema.Result, next, error) {
	if r.limits.Traces == nil {
		return r.try(ctx, call, l, n, stop)
	}
	span := r.limits.Traces.Begin(call.Trace, telemetry.Producer, "send "+string(call.Server))
	defer span.End()
	span.Text(telemetry.KeySystem, telemetry.NATS)
	span.Text(telemetry.KeyStep, "send")
	span.Text(telemetry.KeyStepType, "send")
	span.Text(telemetry.KeyDestination, string(call.Server))
	span.Text(telemetry.KeyCall, string(call.ID))
	span.Text(telemetry.KeyWorker, string(l.worker))
	span.Number(telemetry.KeyAttempt, n)
	below := *call
	below.Trace = span.Trace()
	res, next, err := r.try(ctx, &below, l, n, stop)
	span.Outcome(res, err)
	return res, next, err
}
