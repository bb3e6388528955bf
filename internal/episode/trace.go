package episode

import (
	"context"

	"github.com/callyard/callyard/internal/telemetry"
)

// trace begins the span of the episode, below the trace of the request that begins it. That of
// a replay of the labelled calls is below the step that needs their state. Without spans the
// trace of the request is passed on.
func (ep *Episode) trace(ctx context.Context) {
	ep.at = telemetry.Carried(ctx)
	name := "episode "
	if ep.oracle {
		name = "replay "
	}
	if ep.span = ep.m.o.Traces.Begin(ep.at, telemetry.Internal, name+ep.env.name); ep.span == nil {
		return
	}
	ep.at = ep.span.Trace()
	ep.span.Text(telemetry.KeyEnvironment, ep.env.name)
	ep.span.Text(telemetry.KeyEpisode, ep.key)
	ep.span.Text(telemetry.KeyTask, ep.task.ID)
}

// traced ends the span of the episode. It is called once, with ep.mu held.
func (ep *Episode) traced(outcome, reason string) {
	ep.span.Text(telemetry.KeyOutcome, outcome)
	ep.span.Number(telemetry.KeySteps, ep.steps)
	if outcome == "masked" {
		ep.span.Text(telemetry.KeyMasked, reason)
		ep.span.Fail(reason)
	}
	ep.span.End()
}

// tracedStep begins the span of a step, which calls of the step stand below; the function that it
// returns ends it with what the step showed. A request of another trace than that of the episode
// is linked. It is called with ep.stepping held.
func (ep *Episode) tracedStep(ctx context.Context) (end func(o **Observation)) {
	asked := telemetry.Carried(ctx)
	if ep.m.o.Traces == nil {
		before := ep.at
		if asked.Parent != "" {
			ep.at = asked
		}
		return func(**Observation) { ep.at = before }
	}
	whole := ep.at
	span := ep.m.o.Traces.Begin(whole, telemetry.Internal, "step")
	if asked.ID() != whole.ID() {
		span.Link(asked)
	}
	ep.at = span.Trace()
	return func(shown **Observation) {
		defer span.End()
		ep.at = whole
		o := *shown
		if o == nil {
			return
		}
		span.Text(telemetry.KeyEpisode, ep.key)
		span.Text(telemetry.KeyCall, string(o.CallID))
		if ep.table.names[o.Tool] != nil || o.Tool == ep.env.FinishTool {
			span.Text(telemetry.KeyTool, o.Tool)
		}
		switch {
		case o.Error != nil:
			span.Fail(o.Error.Type)
		case o.Masked:
			span.Fail(o.FailureKind)
		case o.ToolError:
			span.ToolFailed()
		}
	}
}

// below returns ctx for work below the step that runs.
func (ep *Episode) below(ctx context.Context) context.Context {
	return telemetry.CarryTrace(ctx, ep.at)
}
