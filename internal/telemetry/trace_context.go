package telemetry

import (
	"context"
	"encoding/hex"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	parentLength = 55 // version-traceid-parentid-flags
	hexDigits    = "0123456789abcdef"
)

// contextOf parses a W3C trace context. ok is false if it is invalid.
func contextOf(t schema.Trace) (c trace.SpanContext, ok bool) {
	p := t.Parent
	if len(p) != parentLength || p[2] != '-' || p[35] != '-' || p[52] != '-' || p[:2] == "ff" || !lowerHex(p[:2]) || !lowerHex(p[53:]) {
		return c, false
	}
	id, err := trace.TraceIDFromHex(p[3:35])
	if err != nil {
		return c, false
	}
	span, err := trace.SpanIDFromHex(p[36:52])
	if err != nil {
		return c, false
	}
	var flags [1]byte
	if _, err := hex.Decode(flags[:], []byte(p[53:])); err != nil {
		return c, false
	}
	config := trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]), Remote: true}
	if t.State != "" {
		// An invalid tracestate is dropped, as the standard requires.
		config.TraceState, _ = trace.ParseTraceState(t.State)
	}
	return trace.NewSpanContext(config), true
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// SampledID returns the trace id of a trace context, or zero if it is empty, invalid or not sampled:
// in these cases no spans are kept. It does not allocate.
func SampledID(t schema.Trace) [16]byte {
	if t.Parent == "" {
		return [16]byte{}
	}
	c, sound := contextOf(schema.Trace{Parent: t.Parent})
	if !sound || !c.IsSampled() {
		return [16]byte{}
	}
	return c.TraceID()
}

// traceOf formats a trace context.
func traceOf(c trace.SpanContext) schema.Trace {
	if !c.IsValid() {
		return schema.Trace{}
	}
	id, span := c.TraceID(), c.SpanID()
	b := append(make([]byte, 0, parentLength), "00-"...)
	b = append(hex.AppendEncode(b, id[:]), '-')
	b = append(hex.AppendEncode(b, span[:]), '-')
	flags := byte(c.TraceFlags())
	b = append(b, hexDigits[flags>>4], hexDigits[flags&15])
	return schema.Trace{Parent: string(b), State: c.TraceState().String()}
}

// remote returns ctx with the parent of new spans.
func remote(ctx context.Context, parent schema.Trace) context.Context {
	if c, ok := contextOf(parent); ok {
		return trace.ContextWithRemoteSpanContext(ctx, c)
	}
	return ctx
}

// sampled returns true with the given probability.
func sampled(share float64) bool { return share >= 1 || share > 0 && rand.Float64() < share }
