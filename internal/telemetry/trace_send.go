package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// queueSpans limits the number of waiting spans, about 2 MB. sendSpans is the number of spans
	// in one export, and sendEvery the longest time that a span waits for a batch.
	queueSpans = 4096
	sendSpans  = 512
	sendEvery  = 2 * time.Second
)

// Reasons of dropped spans; see [Metrics.SpansDropped].
const (
	droppedFull   = "full"   // the queue was full
	droppedFailed = "failed" // the export failed
)

// sender is the SDK's batch processor. It also counts the spans that the SDK drops silently. Ending a
// span never blocks: a span is dropped and counted if the queue is full or if it cannot be exported
// in time.
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

// OnEnd queues or drops a span. It never blocks.
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

// Shutdown exports waiting spans until ctx ends, and returns when no export is in progress.
func (s *sender) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.exporter.cancel)
	defer stop()
	defer s.exporter.cancel()
	// The SDK's Shutdown would return when ctx ends while its export still runs.
	return s.SpanProcessor.Shutdown(context.WithoutCancel(ctx))
}

// exporter counts and logs failed exports. The processor does not call it concurrently.
type exporter struct {
	sdktrace.SpanExporter
	metrics *Metrics
	log     *slog.Logger
	unsent  atomic.Int64    // waiting spans and spans being exported
	ctx     context.Context // of all exports
	cancel  context.CancelFunc
	down    bool
}

// ExportSpans exports spans. It counts and logs a failure itself and hides it from the SDK, which
// would log each one.
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
