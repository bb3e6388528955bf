package dispatch

import (
	"slices"
	"time"
)

// callLimit is an adaptive concurrency limit: it holds back the bulk calls of one lane while interactive calls go there
// too. Slots alone do not do that: most servers work on one call at a time, and a
// call that goes to one with 60 others before it waits for them there.
//
// It begins with few bulk calls in flight, learns how long they take then, and
// lets more in as long as that does not make them slower by much. A server that
// works on many at once, or mostly waits for others, soon gets as many as ever.
type callLimit struct {
	until   time.Time // somebody waited for a call here not long before
	limit   float64   // bulk calls in flight meanwhile; 0: nothing learned
	least   float64
	base    float64                         // of a call with few in flight, in nanoseconds, about the median
	current float64                         // of one now
	samples [limitSamples / 2]time.Duration // the last half of those taken
	sampled int
	from    time.Time // what was sent before says nothing of the least
	learned time.Time
	since   int                                    // calls that ended since the limit was lowered
	cut     struct{ limit, current, last float64 } // a series of cuts: at its beginning, the slowest, the last
	steady  bool                                   // it was lowered, and not to the least: it grows slowly
}

const (
	// limitFor is how long an interactive call is remembered.
	limitFor = time.Second
	// limitKept is how long what was learned holds.
	limitKept = time.Minute
	// limitSamples are taken with the least in flight: one in limitLeast
	// slots.
	limitSamples = 16
	limitLeast   = 32
	// limitSlower is how much slower than that bulk calls may become.
	limitSlower  = 1.7
	limitStart   = 0.25 // by which the limit grows with each call at first
	limitBackOff = 0.75
	// limitPatience is after how many calls a lower limit shows, and
	// limitHelp what it must have changed.
	limitPatience = 40
	limitHelp     = 0.9
	limitCorrect  = 0.05
	limitStep     = 1.02 // by which the median is followed
)

// met notes that an interactive call goes to the lane.
func (c *callLimit) met(now time.Time, slots int) {
	if now.After(c.until) && (c.limit == 0 || now.Sub(c.learned) > limitKept) {
		c.learn(now, slots)
	}
	c.until = now.Add(limitFor)
}

// learn begins again with the least in flight.
func (c *callLimit) learn(now time.Time, slots int) {
	least := float64(max(1, slots/limitLeast))
	*c = callLimit{until: c.until, limit: least, least: least, from: now, learned: now}
}

// allows says whether one more bulk call may be in flight.
func (c *callLimit) allows(now time.Time, bulk int) bool {
	return float64(bulk) < c.limit || c.limit == 0 || now.After(c.until)
}

// ended takes in how long a bulk call took; bulk are now in flight.
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
	// Medians: one call that the machine held up says nothing.
	if float64(took) > c.current {
		c.current *= limitStep
	} else {
		c.current /= limitStep
	}
	// What was learned at a bad moment is corrected: quickly with the least in flight,
	// else downwards and slowly, as the short ones of many calls end first.
	if c.limit < c.least+1 {
		c.base += limitCorrect * (c.current - c.base)
	} else if c.current < c.base {
		c.base += limitCorrect / 5 * (c.current - c.base)
	}
	c.since++
	switch {
	case c.current > limitSlower*c.base:
		if c.since >= limitPatience { // the last cut shows by now
			c.lower()
		}
	case float64(bulk+1) < c.limit: // it is not what holds them back
	case c.steady:
		c.limit = min(c.limit+1/c.limit, float64(slots))
	default:
		c.limit = min(c.limit+limitStart, float64(slots)) // no faster than the median is followed
	}
}

// lower lets fewer in. When half as many were as slow as all had been, it is not
// the others in flight that make calls slow.
func (c *callLimit) lower() {
	c.since = 0
	if c.limit > c.cut.last*3/2 {
		c.cut.limit, c.cut.current = c.limit, 0 // it had grown: another series of cuts
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
		c.from = now // those from before are still ending
		return
	}
	if now.Add(-took).Before(c.from) {
		return
	}
	c.samples[c.sampled%len(c.samples)] = took // the first are from when it was still busy
	if c.sampled++; c.sampled == limitSamples {
		slices.Sort(c.samples[:])
		c.base, c.learned = float64(c.samples[len(c.samples)/2]), now
		c.current = c.base
	}
}
