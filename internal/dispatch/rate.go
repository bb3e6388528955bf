package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// rateController holds back the batches of a router while single calls come one after the
// other, so far that these take about as long as without batches. Slots and the limit
// see to it that a single call finds its server free; the rate controller sees to the machine:
// on few cores the work for a batch is in the way of everybody's.
//
// It goes by the time that Callyard adds to a single call: what the server itself
// took says nothing. How much that is without batches it learns when there are
// none, or else with the least of them. Where it was wrong, and single calls stay slow
// with hardly a batch in their way, it learns again.
//
// Calls of batches leave in bursts, as most of what a few of them cost they cost
// once: a write that is synced, a message, a wake-up.
type rateController struct {
	mu    sync.Mutex
	until time.Time // single calls came until shortly before
	added [rateWindow]time.Duration
	heard int     // single calls since they began to come
	base  float64 // what is added without batches: the median, in nanoseconds
	tail  float64 // likewise, the slowest but one of each window
	rate  float64 // calls of batches a second; 0: as many as there are
	poor  int     // looks in a row that found the least rate and slow calls
	probe int     // looks at the least rate until the base is known

	burst  float64   // calls that may leave now
	filled time.Time // when that was last counted
	sent   int       // calls of batches since counted
	since  time.Time
	usual  float64 // calls of batches a second, as they come
}

const (
	// rateFor is how long a single call is remembered. Where single calls are rarer than
	// that, batches run unpaced.
	rateFor = time.Second
	// rateWindow single calls are looked at together, twice each.
	rateWindow = 64
	// rateSlower is how much more than usual may be added to nine of ten, and
	// rateTail to the slowest but one of a window.
	rateSlower = 2.0
	rateTail   = 1.5
	// rateLeast is the least rate, and the first one when single calls begin to come
	// is a share of what batches did before.
	rateLeast = 250.0
	rateStart = 0.25
	rateGrow  = 1.03
	// ratePoor looks at the least rate must have helped.
	ratePoor    = 200
	rateProbe   = 4 // looks
	rateCorrect = 0.1
	rateBurst   = 16
	// rateCounts is the period for which the usual rate is counted.
	rateCounts = 250 * time.Millisecond
)

// met takes in how much was added to a single call that has ended.
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

// look sets the rate by the last single calls.
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
			p.base, p.tail, p.poor = median, tail, 0 // it is not the batches that make them slow
		}
	}
}

// measure takes in a single call that has ended. Of the fabric's own requests
// nobody knows how long the worker itself took.
func (p *rateController) measure(a *attempt, f *bus.ReplyFrame) {
	tool := a.call.Method == "" || a.call.Method == schema.MethodCallTool
	if tool && f.Kind == bus.ReplyResult && kindOf(a.call) == interactive {
		now := time.Now()
		p.met(now, now.Sub(a.sent)-f.Took)
	}
}

// next takes one call of a batch in and returns how long it is to wait first.
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

// pace is the rate of the moment.
func (p *rateController) pace(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.until) {
		return 0
	}
	return p.rate
}

// Pace waits until one more call of a batch may begin, or ctx ends: while single calls
// come one after the other, batches take their time.
func (r *Router) Pace(ctx context.Context) {
	if r.limits.Unpaced {
		return
	}
	wait := r.rate.next(time.Now())
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// BatchPace is how many calls of batches may begin a second at the moment; 0: as many as
// there are. Where it is not 0, whoever writes for them does well to write for several
// calls at once.
func (r *Router) BatchPace() float64 {
	if r.limits.Unpaced {
		return 0
	}
	return r.rate.pace(time.Now())
}
