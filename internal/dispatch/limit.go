package dispatch

import (
	"slices"
	"time"
)

// callLimit is an adaptive concurrency limit. It limits the bulk calls of one lane while
// interactive calls use it too. Slots alone are not enough: most servers process one call at a
// time, so an interactive call would wait at the server for, say, 60 bulk calls before it.
//
// It begins with few bulk calls in flight, measures their duration, and raises the limit as long
// as that does not make them much slower. A server that processes many calls at once, or mostly
// waits for others, soon gets as many as without a limit.
type callLimit struct {
	until   time.Time // end of the time for which the last interactive call is remembered
	limit   float64   // limit of bulk calls in flight until then; 0 means not learned yet
	least   float64
	base    float64                         // approximate median duration with few calls in flight, in nanoseconds
	current float64                         // approximate current median duration
	samples [limitSamples / 2]time.Duration // the last half of the samples
	sampled int
	from    time.Time // calls sent before this time are not sampled
	learned time.Time
	since   int                                    // calls that ended since the limit was lowered
	cut     struct{ limit, current, last float64 } // a series of reductions: limit at its start, largest median, last limit
	steady  bool                                   // after a reduction to above the minimum: the limit grows slowly
}

const (
	// limitFor is the time that an interactive call is remembered.
	limitFor = time.Second
	// limitKept is the time after which the limit is learned again.
	limitKept = time.Minute
	// limitSamples is the number of calls measured at the minimum limit, which is one call per
	// limitLeast slots.
	limitSamples = 16
	limitLeast   = 32
	// limitSlower is the factor by which bulk calls may become slower than at the minimum.
	limitSlower  = 1.7
	limitStart   = 0.25 // growth of the limit with each call at first
	limitBackOff = 0.75
	// limitPatience is the number of calls after which a lower limit has an effect. limitHelp is
	// the factor by which a series of reductions must have reduced the duration.
	limitPatience = 40
	limitHelp     = 0.9
	limitCorrect  = 0.05
	limitStep     = 1.02 // step of the median estimate
)

// met records that an interactive call is sent to the lane.
func (c *callLimit) met(now time.Time, slots int) {
	if now.After(c.until) && (c.limit == 0 || now.Sub(c.learned) > limitKept) {
		c.learn(now, slots)
	}
	c.until = now.Add(limitFor)
}

// learn starts again with the minimum limit.
func (c *callLimit) learn(now time.Time, slots int) {
	least := float64(max(1, slots/limitLeast))
	*c = callLimit{until: c.until, limit: least, least: least, from: now, learned: now}
}

// allows reports whether another bulk call may be in flight.
func (c *callLimit) allows(now time.Time, bulk int) bool {
	return float64(bulk) < c.limit || c.limit == 0 || now.After(c.until)
}

// ended records the duration of a bulk call. bulk is the number of bulk calls now in flight.
func (c *callLimit) ended(now time.Time, took time.Duration, bulk, slots int) {
	if c.limit == 0 || now.After(c.until) {
		return
	}
	if now.Sub(c.learned) > limitKept {
		c.learn(now, slots)
	}
	if c.sampled < limitSamples {
		c.sample(now, took, bulk)
		return
	}
	// Medians are robust against single calls that the machine delayed.
	if float64(took) > c.current {
		c.current *= limitStep
	} else {
		c.current /= limitStep
	}
	// Correct a base that was learned at a bad moment: quickly at the minimum limit, otherwise
	// only downwards and slowly, because the short ones of many calls end first.
	if c.limit < c.least+1 {
		c.base += limitCorrect * (c.current - c.base)
	} else if c.current < c.base {
		c.base += limitCorrect / 5 * (c.current - c.base)
	}
	c.since++
	switch {
	case c.current > limitSlower*c.base:
		if c.since >= limitPatience { // the last reduction has taken effect
			c.lower()
		}
	case float64(bulk+1) < c.limit: // the limit is not reached, so there is no reason to raise it
	case c.steady:
		c.limit = min(c.limit+1/c.limit, float64(slots))
	default:
		c.limit = min(c.limit+limitStart, float64(slots)) // not faster than the median estimate adapts
	}
}

// lower reduces the limit. If half as many calls were as slow as all of them, the other calls in
// flight are not the cause, so the base is raised instead.
func (c *callLimit) lower() {
	c.since = 0
	if c.limit > c.cut.last*3/2 {
		c.cut.limit, c.cut.current = c.limit, 0 // it had grown, so this is a new series
	}
	c.cut.current = max(c.cut.current, c.current)
	if c.limit < c.cut.limit/2 && c.current > limitHelp*c.cut.current {
		c.base, c.steady = c.current, false
		return
	}
	c.limit = max(c.least, c.limit*limitBackOff)
	c.cut.last, c.steady = c.limit, c.limit > c.least
}

func (c *callLimit) sample(now time.Time, took time.Duration, bulk int) {
	if float64(bulk) > c.limit {
		c.from = now // earlier calls are still ending
		return
	}
	if now.Add(-took).Before(c.from) {
		return
	}
	c.samples[c.sampled%len(c.samples)] = took // the first half is overwritten: the server was still busy then
	if c.sampled++; c.sampled == limitSamples {
		slices.Sort(c.samples[:])
		c.base, c.learned = float64(c.samples[len(c.samples)/2]), now
		c.current = c.base
	}
}
