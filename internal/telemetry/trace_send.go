package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// queueSpans is how many spans may wait to be sent: some 2 MB. sendSpans is how
	// many are sent at once, sendEvery how long the first of them waits for others.
	queueSpans = 4096
	sendSpans  = 512
	sendEvery  = 2 * time.Second
)

// Why spans were dropped; see [Metrics.SpansDropped].
const (
	droppedFull   = "full"   // the queue was
	droppedFailed = "failed" // they could not be sent
)

// sender sends ended spans off in the background. Who ends a span never waits: what
// finds the queue full is dropped and counted, and so is what cannot be sent within
// its time. It is a span processor of the SDK.
type sender struct {
	exporter sdktrace.SpanExporter
	timeout  time.Duration
	every    time.Duration
	metrics  *Metrics
	log      *slog.Logger

	queue chan sdktrace.ReadOnlySpan
	stop  chan struct{}
	once  sync.Once
	last  sync.Once
	ended error // of last
	done  chan struct{}
	ctx   context.Context // of all that is sent
	cut   context.CancelFunc
	down  bool // of the one goroutine
}

func newSender(e sdktrace.SpanExporter, timeout, every time.Duration, room int, m *Metrics, log *slog.Logger) *sender {
	s := &sender{
		exporter: e, timeout: timeout, every: every, metrics: m, log: log,
		queue: make(chan sdktrace.ReadOnlySpan, room), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.ctx, s.cut = context.WithCancel(context.Background())
	go s.run()
	return s
}

// OnStart does nothing.
func (s *sender) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a span, or drops it. It never waits.
func (s *sender) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	select {
	case s.queue <- span:
	default:
		s.metrics.SpansDropped(droppedFull, 1)
	}
}

// ForceFlush does nothing: Shutdown sends what is there.
func (s *sender) ForceFlush(context.Context) error { return nil }

// Shutdown sends what waits, until ctx ends, and returns when nothing is being sent
// any more.
func (s *sender) Shutdown(ctx context.Context) error {
	s.once.Do(func() { close(s.stop) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cut()
		<-s.done
	}
	s.cut()
	s.last.Do(func() { s.ended = s.exporter.Shutdown(context.WithoutCancel(ctx)) }) // it has nothing to wait for any more
	return s.ended
}

func (s *sender) run() {
	defer close(s.done)
	batch := make([]sdktrace.ReadOnlySpan, 0, sendSpans)
	due := time.NewTimer(s.every)
	due.Stop()
	for {
		select {
		case span := <-s.queue:
			if batch = append(batch, span); len(batch) == 1 {
				due.Reset(s.every)
			}
			if len(batch) < sendSpans {
				continue
			}
		case <-due.C:
		case <-s.stop:
			s.rest(batch)
			return
		}
		due.Stop()
		s.send(batch)
		clear(batch)
		batch = batch[:0]
	}
}

// rest sends what is left.
func (s *sender) rest(batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case span := <-s.queue:
			if batch = append(batch, span); len(batch) < sendSpans {
				continue
			}
			s.send(batch)
			batch = batch[:0]
			continue
		default:
		}
		s.send(batch)
		return
	}
}

func (s *sender) send(batch []sdktrace.ReadOnlySpan) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	err := s.exporter.ExportSpans(ctx, batch)
	if err != nil {
		s.metrics.SpansDropped(droppedFailed, len(batch))
	}
	switch {
	case err != nil && !s.down:
		s.log.Warn("traces cannot be sent and are dropped; callyard_trace_spans_dropped_total counts them", "error", err)
	case err == nil && s.down:
		s.log.Info("traces are sent again")
	}
	s.down = err != nil
}
