package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// drainTime is what calls get that still run when the measuring is over.
	drainTime = 30 * time.Second
	// errorPause keeps a target that refuses everything from being asked in a
	// loop without any waiting.
	errorPause = 2 * time.Millisecond
	// maxFailures is how many different sentences are kept for each lane.
	maxFailures = 8

	latencyUnit = 100 * time.Nanosecond
	maxLatency  = 2 * time.Minute
)

const (
	warming int32 = iota
	measuring
	over
)

var errDrain = fmt.Errorf("no answer within %s after the measurement", drainTime)

// gauge makes measurements, one at a time, and keeps its histograms for the next.
type gauge struct {
	lanes []*laneRecord
}

// laneRecord is what one lane saw. It belongs to the goroutine of the lane.
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

// measure puts a closed loop of c lanes on the target. Calls that end while the
// measuring lasts count; failures count until all lanes are at rest.
func (g *gauge) measure(ctx context.Context, t Target, size, c int, warmup, duration time.Duration) (Sample, error) {
	for len(g.lanes) < c {
		g.lanes = append(g.lanes, newLaneRecord())
	}
	records := g.lanes[:c]
	for _, r := range records {
		r.reset()
	}
	// What the last measurement left in the generator's heap is not for this one
	// to clean up.
	runtime.GC()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		phase atomic.Int32
		lanes sync.WaitGroup
	)
	for n, record := range records {
		lane, err := t.Dial(ctx, n, size)
		if err != nil {
			record.failure(err)
			continue
		}
		lanes.Go(func() {
			drive(ctx, lane, record, &phase)
			_ = lane.Close() // its errors say nothing about the calls
		})
	}
	m := meter{roots: t.PIDs()}
	m.find()
	wait(ctx, warmup)
	before, from := m.read(), time.Now()
	phase.Store(measuring)
	wait(ctx, duration)
	phase.Store(over)
	window, after := time.Since(from), m.read()

	late := time.AfterFunc(drainTime, func() { cancel(errDrain) })
	lanes.Wait()
	late.Stop()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, errDrain) {
		return Sample{}, err
	}
	return newSample(records, window, m.between(before, after)), nil
}

// drive calls until the measuring is over.
func drive(ctx context.Context, lane Lane, record *laneRecord, phase *atomic.Int32) {
	began := time.Now()
	for phase.Load() != over && ctx.Err() == nil {
		err := lane.Call()
		ended := time.Now()
		now := phase.Load()
		switch {
		case err != nil:
			if now != warming {
				record.failure(err)
			}
			wait(ctx, errorPause)
			ended = time.Now()
		case now == measuring:
			record.success(ended.Sub(began))
		}
		began = ended
	}
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
