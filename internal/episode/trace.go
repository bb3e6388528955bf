package episode

import (
	"context"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// spans holds the spans of an episode, if tracing is on. It is not safe for concurrent use.
type spans struct {
	traces *telemetry.Traces
	whole  *telemetry.Span
	at     schema.Trace // parent of calls: the episode, or the running step
}

// begin starts the span of the episode, as a child of the request that begins it. The span of a
// replay of the labelled calls is a child of the step that needs the state. Without tracing, the
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

// step starts the span of a step, which becomes the parent of the step's calls. The returned
// function ends it with the step's observation. If the request belongs to another trace than the
// episode, the span links to it.
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

// below returns ctx with the running step as the parent.
func (s *spans) below(ctx context.Context) context.Context { return telemetry.CarryTrace(ctx, s.at) }
