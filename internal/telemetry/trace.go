package telemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/callyard/callyard/pkg/schema"
)

// Traces makes the spans of a process and sends them off. A nil *Traces makes
// none: that is how a process stands where no traces are wanted, and all that a
// call pays for it is the question whether it is nil. It is safe for concurrent
// use.
//
// Where a span stands in its trace travels in [schema.Trace], with the call: in
// memory, over the bus, in the ledger and to the MCP server.
type Traces struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	sender   *sender
	share    float64
}

// Span is one piece of work in a trace. All methods of a nil *Span do nothing.
// It is ended once; what is said of it after that is lost.
type Span struct{ span trace.Span }

// Kind says how a span stands to those around it.
type Kind int

// The kinds of spans; see https://opentelemetry.io/docs/concepts/signals/traces.
const (
	Internal Kind = Kind(trace.SpanKindInternal)
	Server   Kind = Kind(trace.SpanKindServer)
	Client   Kind = Kind(trace.SpanKindClient)
	Producer Kind = Kind(trace.SpanKindProducer)
	Consumer Kind = Kind(trace.SpanKindConsumer)
)

// Begin begins a span below parent; one that is empty or unsound begins a new
// trace. The parent says whether the span is sampled, without one the ratio does.
// The name must come from few: no ids, no arguments.
func (t *Traces) Begin(parent schema.Trace, kind Kind, name string) *Span {
	if t == nil {
		return nil
	}
	return t.begin(remote(context.Background(), parent), kind, name)
}

// Follow begins a span of work that was asked for in another request: the span
// links to that one, asked, and is sampled if that one was. It stands below parent,
// or, where that is empty, begins a trace of its own.
func (t *Traces) Follow(parent, asked schema.Trace, name string) *Span {
	if t == nil {
		return nil
	}
	return t.follow(parent, asked, name, 1)
}

// Share is [Traces.Follow] for one of many calls that were asked for at once: of
// them only the configured share is sampled. It begins a trace of its own.
func (t *Traces) Share(asked schema.Trace, name string) *Span {
	if t == nil {
		return nil
	}
	return t.follow(schema.Trace{}, asked, name, t.share)
}

func (t *Traces) begin(ctx context.Context, kind Kind, name string, o ...trace.SpanStartOption) *Span {
	_, s := t.tracer.Start(ctx, name, append(o, trace.WithSpanKind(trace.SpanKind(kind)))...)
	return &Span{s}
}

func (t *Traces) follow(parent, asked schema.Trace, name string, share float64) *Span {
	ctx := remote(context.Background(), parent)
	link, linked := contextOf(asked)
	if !linked {
		return t.begin(ctx, Internal, name)
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = context.WithValue(ctx, wanted{}, link.IsSampled() && chance(share))
	}
	return t.begin(ctx, Internal, name, trace.WithLinks(trace.Link{SpanContext: link}))
}

// Trace is where the span stands, to be the parent of others; empty for none.
func (s *Span) Trace() schema.Trace {
	if s == nil {
		return schema.Trace{}
	}
	return traceOf(s.span.SpanContext())
}

// Text notes a text of the span. Arguments, results, secrets and what callers made
// up without a bound must not come here.
func (s *Span) Text(key Key, value string) {
	if s != nil && value != "" && s.span.IsRecording() {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Number notes a number of the span.
func (s *Span) Number(key Key, value int) {
	if s != nil && s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Rename gives the span the name that is known only now.
func (s *Span) Rename(name string) {
	if s != nil && s.span.IsRecording() {
		s.span.SetName(name)
	}
}

// Link notes another span that this one goes back to.
func (s *Span) Link(to schema.Trace) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	if c, ok := contextOf(to); ok {
		s.span.AddLink(trace.Link{SpanContext: c})
	}
}

// Fail marks the span as failed. kind is of few: the kind of an error, never its
// sentence, which may tell what only the caller is to know.
func (s *Span) Fail(kind string) {
	if s != nil && s.span.IsRecording() {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String(string(keyError), kind))
	}
}

// Outcome notes how a call ended: nothing for a result, toolFailed for one that is
// the tool's own error, else the kind of the error.
func (s *Span) Outcome(res *schema.Result, err error) {
	switch {
	case s == nil:
	case err != nil:
		s.Fail(string(schema.KindOf(err)))
	case res != nil && res.ToolError:
		s.Fail(toolFailed)
	}
}

// ToolFailed marks the span as one whose tool answered with its own error.
func (s *Span) ToolFailed() { s.Fail(toolFailed) }

// Answered notes the status of an HTTP answer; those from 500 on are failures.
func (s *Span) Answered(status int) {
	if s == nil {
		return
	}
	s.Number(keyStatus, status)
	if status >= 500 {
		s.Fail(strconv.Itoa(status))
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

type carried struct{}

// Carry returns a context for work below the span; ctx itself if there is no span.
func (s *Span) Carry(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, carried{}, s.Trace())
}

// stateMost bounds the tracestate of a request, as the standard allows.
const stateMost = 512

// CarryTrace is [Span.Carry] for the trace context of a request without a span here; ctx itself
// for one that is empty or not sound.
func CarryTrace(ctx context.Context, t schema.Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	if _, sound := contextOf(t); !sound {
		return ctx
	}
	if len(t.State) > stateMost {
		t.State = ""
	}
	return context.WithValue(ctx, carried{}, t)
}

// Carried is where the span of [Span.Carry] stands; empty for none. It is to be asked
// only where there are traces.
func Carried(ctx context.Context) schema.Trace {
	t, _ := ctx.Value(carried{}).(schema.Trace)
	return t
}
