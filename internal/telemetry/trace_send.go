package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// queueSpans is the number of spans that may wait to be sent: some 2 MB. sendSpans is
	// the number sent at once, sendEvery how long a span waits for others at most.
	queueSpans = 4096
	sendSpans  = 512
	sendEvery  = 2 * time.Second
)

// Why spans were dropped; see [Metrics.SpansDropped].
const (
	droppedFull   = "full"   // the queue was
	droppedFailed = "failed" // they could not be sent
)

// sender is the SDK's batch processor, and counts what the SDK drops without a word.
// Who ends a span never waits: what finds the queue full is dropped and counted, and so
// is what cannot be sent within its time.
type sender struct {
	sdktrace.SpanProcessor
	exporter *exporter
	space    int64
}

func newSender(e sdktrace.SpanExporter, timeout, every time.Duration, queue int, m *Metrics, log *slog.Logger) *sender {
	s := &sender{exporter: &exporter{SpanExporter: e, metrics: m, log: log}, space: int64(queue + sendSpans)}
	s.exporter.ctx, s.exporter.cancel = context.WithCancel(context.Background())
	s.SpanProcessor = sdktrace.NewBatchSpanProcessor(s.exporter, sdktrace.WithMaxQueueSize(queue+sendSpans),
		sdktrace.WithMaxExportBatchSize(sendSpans), sdktrace.WithBatchTimeout(every), sdktrace.WithExportTimeout(timeout))
	return s
}

// OnEnd queues a span, or drops it. It never waits.
func (s *sender) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if s.exporter.unsent.Add(1) > s.space {
		s.exporter.unsent.Add(-1)
		s.exporter.metrics.SpansDropped(droppedFull, 1)
		return
	}
	s.SpanProcessor.OnEnd(span)
}

// Shutdown sends what waits, until ctx ends, and returns when nothing is being sent
// any more.
func (s *sender) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.exporter.cancel)
	defer stop()
	defer s.exporter.cancel()
	// The SDK's own return leaves its sending to itself when ctx ends.
	return s.SpanProcessor.Shutdown(context.WithoutCancel(ctx))
}

// exporter counts and tells of what an exporter cannot send. The processor calls it
// once at a time.
type exporter struct {
	sdktrace.SpanExporter
	metrics *Metrics
	log     *slog.Logger
	unsent  atomic.Int64    // spans that wait or are being sent
	ctx     context.Context // of all that is sent
	cancel  context.CancelFunc
	down    bool
}

// ExportSpans sends spans. A failure is told and counted here, and is none for the SDK,
// which would tell of each.
func (e *exporter) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	defer e.unsent.Add(-int64(len(batch)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, batch)
	if err != nil {
		e.metrics.SpansDropped(droppedFailed, len(batch))
	}
	switch {
	case err != nil && !e.down:
		e.log.Warn("traces cannot be sent and are dropped; callyard_trace_spans_dropped_total counts them", "error", err)
	case err == nil && e.down:
		e.log.Info("traces are being sent again")
	}
	e.down = err != nil
	return nil
}
