package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pacer holds back the batches of a router while single calls come one after the
// other, so far that these take about as long as without batches. Slots and courtesy
// see to it that a single call finds its server free; the pacer sees to the machine:
// on few cores the work for a batch is in the way of everybody's.
//
// It goes by the time that Callyard adds to a single call: what the server itself
// took says nothing. How much that is without batches it learns when there are
// none, or else with the least of them. Where it was wrong, and single calls stay slow
// with hardly a batch in their way, it learns anew.
//
// Calls of batches leave in bunches, as most of what a few of them cost they cost
// once: a write that is synced, a message, a wake-up.
type pacer struct {
	mu    sync.Mutex
	until time.Time // single calls came until shortly before
	added [pacerWindow]time.Duration
	heard int     // single calls since they began to come
	base  float64 // what is added without batches: the median, in nanoseconds
	tail  float64 // likewise, the slowest but one of each window
	rate  float64 // calls of batches a second; 0: as many as there are
	poor  int     // looks in a row that found the least rate and slow calls
	probe int     // looks at the least rate until the base is known

	bunch  float64   // calls that may leave now
	filled time.Time // when that was last counted
	sent   int       // calls of batches since counted
	since  time.Time
	usual  float64 // calls of batches a second, as they come
}

const (
	// pacerFor is how long a single call is remembered. Where they come more rarely
	// than that batches go on as they like.
	pacerFor = time.Second
	// pacerWindow single calls are looked at together, twice each.
	pacerWindow = 64
	// pacerSlower is how much more than usual may be added to nine of ten, and
	// pacerTail to the slowest but one of a window.
	pacerSlower = 2.0
	pacerTail   = 1.5
	// pacerLeast is the least rate, and the first one when single calls begin to come
	// is a share of what batches did before.
	pacerLeast = 250.0
	pacerStart = 0.25
	pacerGrow  = 1.03
	// pacerPoor looks at the least rate must have helped.
	pacerPoor  = 200
	pacerProbe = 4 // looks
	pacerMend  = 0.1
	pacerBunch = 16
	// pacerCounts is over how long the usual rate is counted.
	pacerCounts = 250 * time.Millisecond
)

// met takes in how much was added to a single call that has ended.
func (p *pacer) met(now time.Time, added time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.until) {
		p.heard, p.rate, p.poor, p.probe = 0, 0, 0, 0
	}
	p.until = now.Add(pacerFor)
	p.added[p.heard%pacerWindow] = added
	if p.heard++; p.heard >= pacerWindow && p.heard%(pacerWindow/2) == 0 {
		p.look(now)
	}
}

// look sets the rate by the last single calls.
func (p *pacer) look(now time.Time) {
	window := p.added
	slices.Sort(window[:])
	median, most, tail := float64(window[pacerWindow/2]), float64(window[pacerWindow*9/10]), float64(window[pacerWindow-2])
	alone := now.Sub(p.since) > 2*pacerCounts
	if alone {
		if p.base == 0 || median < p.base {
			p.base = median
		}
		if p.tail == 0 {
			p.tail = tail
		}
		p.base += pacerMend * (median - p.base)
		p.tail += pacerMend * (tail - p.tail)
		p.rate, p.usual = 0, 0
		return
	}
	if p.base == 0 {
		p.rate = pacerLeast
		if p.probe++; p.probe < pacerProbe {
			return
		}
		p.base, p.tail, p.rate = median, tail, max(pacerLeast, p.usual*pacerStart)
	}
	p.base = min(p.base, median)
	slow := max(most/(pacerSlower*p.base), tail/(pacerTail*p.tail))
	switch {
	case slow <= 1:
		p.poor = 0
		if p.rate > 0 {
			p.rate *= pacerGrow
		}
	case p.rate == 0:
		p.rate = max(pacerLeast, p.usual*pacerStart)
	case p.rate > pacerLeast:
		p.rate = max(pacerLeast, p.rate*max(0.5, min(0.95, 1/slow)))
	default:
		if p.poor++; p.poor >= pacerPoor {
			p.base, p.tail, p.poor = median, tail, 0 // it is not the batches that make them slow
		}
	}
}

// next takes one call of a batch in and returns how long it is to wait first.
func (p *pacer) next(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	if counted := now.Sub(p.since); counted >= pacerCounts {
		if counted < 2*pacerCounts && p.rate == 0 {
			p.usual = float64(p.sent) / counted.Seconds()
		}
		p.sent, p.since = 0, now
	}
	if p.rate == 0 || now.After(p.until) {
		return 0
	}
	p.bunch = min(pacerBunch, p.bunch+p.rate*now.Sub(p.filled).Seconds())
	p.filled = now
	if p.bunch--; p.bunch >= 0 {
		return 0
	}
	return time.Duration((pacerBunch - p.bunch) / p.rate * float64(time.Second))
}

// pace is the rate of the moment.
func (p *pacer) pace(now time.Time) float64 {
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
	if r.limits.Headlong {
		return
	}
	wait := r.pacer.next(time.Now())
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
	if r.limits.Headlong {
		return 0
	}
	return r.pacer.pace(time.Now())
}
