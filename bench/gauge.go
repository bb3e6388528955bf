package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/callyard/callyard/internal/kit/sleep"
)

const (
	// patience limits how much longer than planned a warm-up, a measurement and the
	// calls at its end may take. If one call takes longer than the planned duration,
	// stopping on time would measure incomplete calls.
	patience = 10 * time.Second
	// errorPause prevents a busy loop if the target refuses every call.
	errorPause = 2 * time.Millisecond
	// maxFailures limits the number of different error texts for each lane.
	maxFailures = 8

	latencyUnit = 100 * time.Nanosecond
	maxLatency  = 2 * time.Minute
)

const (
	warming int32 = iota
	measuring
	over
)

var errDrain = fmt.Errorf("no answer within %s after the measurement", patience)

// gauge makes measurements, one at a time, and reuses its histograms.
type gauge struct {
	lanes []*laneRecord
}

// laneRecord is the record of one lane. It belongs to the goroutine of the lane.
type laneRecord struct {
	latencies *hdrhistogram.Histogram // in units of latencyUnit
	errors    int64
	failures  map[string]int64
}

func newLaneRecord() *laneRecord {
	return &laneRecord{latencies: hdrhistogram.New(1, int64(maxLatency/latencyUnit), 3), failures: make(map[string]int64)}
}

func (r *laneRecord) reset() {
	r.latencies.Reset()
	r.errors = 0
	clear(r.failures)
}

func (r *laneRecord) success(took time.Duration) {
	_ = r.latencies.RecordValue(int64(min(took, maxLatency) / latencyUnit)) // in range, cannot fail
}

func (r *laneRecord) failure(err error) {
	r.errors++
	text := err.Error()
	if _, known := r.failures[text]; !known && len(r.failures) >= maxFailures {
		text = "other failures"
	}
	r.failures[text]++
}

// headcount waits until each lane has ticked once.
type headcount struct {
	left atomic.Int64
	all  chan struct{}
}

func newHeadcount(lanes int) *headcount {
	h := &headcount{all: make(chan struct{})}
	h.left.Store(int64(lanes))
	return h
}

func (h *headcount) tick() {
	if h.left.Add(-1) == 0 {
		close(h.all)
	}
}

// wait waits for d, and then until every lane has ticked, but at most for patience.
func (h *headcount) wait(ctx context.Context, d time.Duration) {
	sleep.For(d, ctx.Done())
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-h.all:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// measure runs a closed loop of c lanes on the target. Calls that end during the
// measurement count; failures count until all lanes have stopped. The warm-up
// lasts until each lane has had a response, and so does the measurement.
func (g *gauge) measure(ctx context.Context, t Target, size, c int, warmup, duration time.Duration) (Sample, error) {
	for len(g.lanes) < c {
		g.lanes = append(g.lanes, newLaneRecord())
	}
	records := g.lanes[:c]
	for _, r := range records {
		r.reset()
	}
	// Collect the garbage of the last measurement, so that it does not affect this
	// one.
	runtime.GC()

	run := ctx
	ctx, cancel := context.WithCancelCause(run)
	defer cancel(nil)
	var (
		phase atomic.Int32
		lanes sync.WaitGroup
		// The lanes that have had a response at all, and one that counts.
		warm, counted = newHeadcount(c), newHeadcount(c)
	)
	for n, record := range records {
		lane, err := t.Dial(ctx, n, size)
		if err != nil {
			record.failure(err)
			warm.tick()
			counted.tick()
			continue
		}
		lanes.Go(func() {
			drive(ctx, lane, record, &phase, warm, counted)
			_ = lane.Close() // its errors are not errors of calls
		})
	}
	m := meter{roots: t.PIDs()}
	m.find()
	warm.wait(ctx, warmup)
	before, from := m.read(), time.Now()
	phase.Store(measuring)
	counted.wait(ctx, duration)
	phase.Store(over)
	window, after := time.Since(from), m.read()

	late := time.AfterFunc(patience, func() { cancel(errDrain) })
	lanes.Wait()
	late.Stop()
	if err := run.Err(); err != nil {
		return Sample{}, err
	}
	return newSample(records, window, m.between(before, after)), nil
}

// drive makes calls until the measurement has ended.
func drive(ctx context.Context, lane Lane, record *laneRecord, phase *atomic.Int32, warm, counted *headcount) {
	var isWarm, isCounted bool
	began := time.Now()
	for phase.Load() != over && ctx.Err() == nil {
		err := lane.Call()
		ended := time.Now()
		now := phase.Load()
		if !isWarm {
			isWarm = true
			warm.tick()
		}
		if now == measuring && !isCounted {
			isCounted = true
			counted.tick()
		}
		switch {
		case err != nil:
			if now != warming {
				record.failure(err)
			}
			sleep.For(errorPause, ctx.Done())
			ended = time.Now()
		case now == measuring:
			record.success(ended.Sub(began))
		}
		began = ended
	}
}
