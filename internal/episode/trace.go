package episode

import (
	"context"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// spans are those of an episode, if there are traces. Its methods are called one after the other.
type spans struct {
	traces *telemetry.Traces
	whole  *telemetry.Span
	at     schema.Trace // where calls stand: below the episode, or below the step that runs
}

// begin begins the span of the episode, below the trace of the request that begins it. That of
// a replay of the labelled calls is below the step that needs their state. Without spans the
// trace of the request is passed on.
func (s *spans) begin(ctx context.Context, ep *Episode) {
	s.traces, s.at = ep.m.o.Traces, telemetry.Carried(ctx)
	name := "episode "
	if ep.oracle {
		name = "replay "
	}
	if s.whole = s.traces.Begin(s.at, telemetry.Internal, name+ep.env.name); s.whole == nil {
		return
	}
	s.at = s.whole.Trace()
	s.whole.Text(telemetry.KeyEnvironment, ep.env.name)
	s.whole.Text(telemetry.KeyEpisode, ep.key)
	s.whole.Text(telemetry.KeyTask, ep.task.ID)
}

// end ends the span of the episode. It is called once, with ep.mu held.
func (s *spans) end(ep *Episode, outcome, reason string) {
	s.whole.Text(telemetry.KeyOutcome, outcome)
	s.whole.Number(telemetry.KeySteps, ep.steps)
	if outcome == "masked" {
		s.whole.Text(telemetry.KeyMasked, reason)
		s.whole.Fail(reason)
	}
	s.whole.End()
}

// step begins the span of a step, which calls of the step stand below; the function that it
// returns ends it with what the step showed. A request of another trace than that of the episode
// is linked.
func (s *spans) step(ctx context.Context, ep *Episode) (end func(o **Observation)) {
	asked, before := telemetry.Carried(ctx), s.at
	if s.traces == nil {
		if asked.Parent != "" {
			s.at = asked
		}
		return func(**Observation) { s.at = before }
	}
	span := s.traces.Begin(before, telemetry.Internal, "step")
	if asked.ID() != before.ID() {
		span.Link(asked)
	}
	s.at = span.Trace()
	return func(shown **Observation) {
		defer span.End()
		s.at = before
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
func (s *spans) below(ctx context.Context) context.Context { return telemetry.CarryTrace(ctx, s.at) }
