package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// rateController limits the rate of batch calls of a router while single calls follow each other,
// so that single calls take about as long as without batches. Slots and the call limit ensure that
// a single call finds its server free. The rate controller protects the machine: on few cores the
// work for a batch slows down all other work.
//
// It uses the time that Callyard adds to a single call, without the time of the server itself. It
// learns the normal added time while there are no batches, or otherwise at the minimum rate. If
// that was wrong, and single calls remain slow with almost no batch calls, it learns again.
//
// Batch calls are released in bursts, because most of the cost of a few of them occurs once: a
// synced write, a message, a wake-up.
type rateController struct {
	mu    sync.Mutex
	until time.Time // end of the time for which the last single call is remembered
	added [rateWindow]time.Duration
	heard int     // single calls since they began to arrive
	base  float64 // median added time without batches, in nanoseconds
	tail  float64 // likewise, the second largest added time of a window
	rate  float64 // batch calls per second; 0 means unlimited
	poor  int     // consecutive windows with the minimum rate and slow calls
	probe int     // windows at the minimum rate until base is known

	burst  float64   // calls that may be released now
	filled time.Time // time at which burst was last refilled
	sent   int       // batch calls counted from since on
	since  time.Time
	usual  float64 // batch calls per second without a limit
}

const (
	// rateFor is the time that a single call is remembered. If single calls are rarer than that,
	// batches run unpaced.
	rateFor = time.Second
	// rateWindow is the number of single calls that are evaluated together. Windows overlap by half.
	rateWindow = 64
	// rateSlower is the factor by which the added time of nine of ten single calls may exceed the
	// normal one, and rateTail that for the second largest added time of a window.
	rateSlower = 2.0
	rateTail   = 1.5
	// rateLeast is the minimum rate. rateStart is the first rate when single calls begin to arrive,
	// as a share of the previous rate of batches.
	rateLeast = 250.0
	rateStart = 0.25
	rateGrow  = 1.03
	// ratePoor is the number of windows within which the minimum rate must have helped.
	ratePoor    = 200
	rateProbe   = 4 // windows
	rateCorrect = 0.1
	rateBurst   = 16
	// rateCounts is the period over which the usual rate is measured.
	rateCounts = 250 * time.Millisecond
)

// met records the time that was added to a single call.
func (p *rateController) met(now time.Time, added time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.until) {
		p.heard, p.rate, p.poor, p.probe = 0, 0, 0, 0
	}
	p.until = now.Add(rateFor)
	p.added[p.heard%rateWindow] = added
	if p.heard++; p.heard >= rateWindow && p.heard%(rateWindow/2) == 0 {
		p.look(now)
	}
}

// look adjusts the rate after a window of single calls.
func (p *rateController) look(now time.Time) {
	window := p.added
	slices.Sort(window[:])
	median, most, tail := float64(window[rateWindow/2]), float64(window[rateWindow*9/10]), float64(window[rateWindow-2])
	alone := now.Sub(p.since) > 2*rateCounts
	if alone {
		if p.base == 0 || median < p.base {
			p.base = median
		}
		if p.tail == 0 {
			p.tail = tail
		}
		p.base += rateCorrect * (median - p.base)
		p.tail += rateCorrect * (tail - p.tail)
		p.rate, p.usual = 0, 0
		return
	}
	if p.base == 0 {
		p.rate = rateLeast
		if p.probe++; p.probe < rateProbe {
			return
		}
		p.base, p.tail, p.rate = median, tail, max(rateLeast, p.usual*rateStart)
	}
	p.base = min(p.base, median)
	slow := max(most/(rateSlower*p.base), tail/(rateTail*p.tail))
	switch {
	case slow <= 1:
		p.poor = 0
		if p.rate > 0 {
			p.rate *= rateGrow
		}
	case p.rate == 0:
		p.rate = max(rateLeast, p.usual*rateStart)
	case p.rate > rateLeast:
		p.rate = max(rateLeast, p.rate*max(0.5, min(0.95, 1/slow)))
	default:
		if p.poor++; p.poor >= ratePoor {
			p.base, p.tail, p.poor = median, tail, 0 // batches are not the cause of the slowness
		}
	}
}

// measure records a single call that has ended. It skips internal requests, because the worker's
// own time is unknown for them.
func (p *rateController) measure(a *attempt, f *bus.ReplyFrame) {
	tool := a.call.Method == "" || a.call.Method == schema.MethodCallTool
	if tool && f.Kind == bus.ReplyResult && kindOf(a.call) == interactive {
		now := time.Now()
		p.met(now, now.Sub(a.sent)-f.Took)
	}
}

// next counts one batch call and returns the time to wait before it.
func (p *rateController) next(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	if counted := now.Sub(p.since); counted >= rateCounts {
		if counted < 2*rateCounts && p.rate == 0 {
			p.usual = float64(p.sent) / counted.Seconds()
		}
		p.sent, p.since = 0, now
	}
	if p.rate == 0 || now.After(p.until) {
		return 0
	}
	p.burst = min(rateBurst, p.burst+p.rate*now.Sub(p.filled).Seconds())
	p.filled = now
	if p.burst--; p.burst >= 0 {
		return 0
	}
	return time.Duration((rateBurst - p.burst) / p.rate * float64(time.Second))
}

// pace returns the current rate; 0 means unlimited.
func (p *rateController) pace(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.until) {
		return 0
	}
	return p.rate
}

// Pace waits until another batch call may begin, or ctx ends. It slows down batches while single
// calls follow each other.
func (r *Router) Pace(ctx context.Context) {
	if r.limits.Unpaced {
		return
	}
	if wait := r.rate.next(time.Now()); wait > 0 {
		sleep(ctx, nil, wait)
	}
}

// BatchPace returns the number of batch calls that may currently begin per second; 0 means
// unlimited. If it is not 0, writers of batch records should combine several calls in one write.
func (r *Router) BatchPace() float64 {
	if r.limits.Unpaced {
		return 0
	}
	return r.rate.pace(time.Now())
}
