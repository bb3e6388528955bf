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

// Traces creates and exports the spans of a process. A nil *Traces creates none: a process without
// traces has a nil *Traces, and a call pays only for the nil check. It is safe for concurrent use.
//
// [schema.Trace] carries the position in a trace with the call: in memory, over the bus, in the
// ledger and to the MCP server.
type Traces struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	sender   *sender
	share    float64
}

// Span is one operation in a trace. All methods of a nil *Span do nothing. End it once; later changes
// are lost.
type Span struct{ span trace.Span }

// Kind is the relation of a span to its neighbors.
type Kind int

// Span kinds; see https://opentelemetry.io/docs/concepts/signals/traces.
const (
	Internal Kind = Kind(trace.SpanKindInternal)
	Server   Kind = Kind(trace.SpanKindServer)
	Client   Kind = Kind(trace.SpanKindClient)
	Producer Kind = Kind(trace.SpanKindProducer)
	Consumer Kind = Kind(trace.SpanKindConsumer)
)

// Begin starts a span below parent. An empty or invalid parent starts a new trace. The parent decides
// whether the span is sampled; without one, the ratio decides. The name must come from a small set:
// no ids and no arguments.
func (t *Traces) Begin(parent schema.Trace, kind Kind, name string) *Span {
	if t == nil {
		return nil
	}
	return t.begin(remote(context.Background(), parent), kind, name)
}

// Follow starts a span for work that another request asked for. The span links to that request,
// asked, and is sampled if that request was. It is below parent, or starts a new trace if parent is
// empty.
func (t *Traces) Follow(parent, asked schema.Trace, name string) *Span {
	if t == nil {
		return nil
	}
	return t.follow(parent, asked, name, 1)
}

// Share is [Traces.Follow] for one of many calls of one request, of which only the configured share
// is sampled. It starts a new trace.
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
		ctx = context.WithValue(ctx, wanted{}, link.IsSampled() && sampled(share))
	}
	return t.begin(ctx, Internal, name, trace.WithLinks(trace.Link{SpanContext: link}))
}

// Trace returns the position of the span, for use as a parent. It is empty for a nil span.
func (s *Span) Trace() schema.Trace {
	if s == nil {
		return schema.Trace{}
	}
	return traceOf(s.span.SpanContext())
}

// Text sets a string attribute. Do not pass arguments, results, secrets or unlimited texts of
// callers.
func (s *Span) Text(key Key, value string) {
	if s != nil && value != "" && s.span.IsRecording() {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Number sets an integer attribute.
func (s *Span) Number(key Key, value int) {
	if s != nil && s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Rename sets the name of the span after its start.
func (s *Span) Rename(name string) {
	if s != nil && s.span.IsRecording() {
		s.span.SetName(name)
	}
}

// Link links the span to another one.
func (s *Span) Link(to schema.Trace) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	if c, ok := contextOf(to); ok {
		s.span.AddLink(trace.Link{SpanContext: c})
	}
}

// Fail marks the span as failed. kind is one of a small set: the kind of an error, never its
// sentence, which may be meant for the caller only.
func (s *Span) Fail(kind string) {
	if s != nil && s.span.IsRecording() {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String(string(keyError), kind))
	}
}

// Outcome records the end of a call: nothing for a result, toolFailed for an error of the tool,
// otherwise the kind of the error.
func (s *Span) Outcome(res *schema.Result, err error) {
	switch {
	case s == nil:
	case err != nil:
		s.Fail(string(schema.KindOf(err)))
	case res != nil && res.ToolError:
		s.Fail(toolFailed)
	}
}

// ToolFailed marks the span as one whose tool returned an error.
func (s *Span) ToolFailed() { s.Fail(toolFailed) }

// Answered records the status of an HTTP response. Status 500 and above is a failure.
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

// Carry returns a context for work below the span, or ctx itself for a nil span.
func (s *Span) Carry(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, carried{}, s.Trace())
}

// stateMost limits the tracestate of a request, as the W3C standard allows.
const stateMost = 512

// CarryTrace is [Span.Carry] for the trace context of a request without a local span. It returns ctx
// itself if the trace context is empty or invalid.
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

// Carried returns the position of the span of [Span.Carry], or an empty one. Call it only if traces
// are enabled.
func Carried(ctx context.Context) schema.Trace {
	t, _ := ctx.Value(carried{}).(schema.Trace)
	return t
}
