package hostile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Honest is a group of callers that continue to call during an attack.
type Honest struct {
	stop context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex
	took   []time.Duration
	faults []error
	failed int
}

// KeepCalling starts lanes callers that run call, each with a pause after each call, until
// [Honest.Stop].
func KeepCalling(ctx context.Context, lanes int, pause time.Duration, call func(ctx context.Context) error) *Honest {
	ctx, stop := context.WithCancel(ctx)
	h := &Honest{stop: stop}
	for range lanes {
		h.wait.Go(func() {
			for rest(ctx, pause) {
				began := time.Now()
				err := call(ctx)
				if ctx.Err() != nil {
					return
				}
				h.mu.Lock()
				h.took = append(h.took, time.Since(began))
				if err != nil {
					h.failed++
					if len(h.faults) < 5 {
						h.faults = append(h.faults, err)
					}
				}
				h.mu.Unlock()
			}
		})
	}
	return h
}

// Figures are the times of honest calls.
type Figures struct {
	Calls, Failed  int
	P50, P99, Most time.Duration
	Faults         []error // the first few
}

// String returns a line of a report.
func (f Figures) String() string {
	return fmt.Sprintf("%d calls, %d failed, p50 %s, p99 %s, most %s", f.Calls, f.Failed, f.P50.Round(10*time.Microsecond), f.P99.Round(10*time.Microsecond), f.Most.Round(10*time.Microsecond))
}

// Stop ends the callers and returns their figures.
func (h *Honest) Stop() Figures {
	h.stop()
	h.wait.Wait()
	f := Figures{Calls: len(h.took), Failed: h.failed, Faults: h.faults}
	if len(h.took) == 0 {
		return f
	}
	slices.Sort(h.took)
	at := func(share float64) time.Duration { return h.took[min(int(share*float64(len(h.took))), len(h.took)-1)] }
	f.P50, f.P99, f.Most = at(0.5), at(0.99), h.took[len(h.took)-1]
	return f
}

// Calls returns the number of calls that have ended so far.
func (h *Honest) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.took)
}
