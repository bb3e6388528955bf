// Package backoff says how long to wait before the next attempt at what failed.
//
// It owns one rule: the delay doubles with each failure up to a maximum, and a random part
// is taken off, so that callers that failed together do not retry together. A [Policy]
// holds no state and starts no timer: the caller counts its failures and waits, in addition
// to whatever else ends its wait.
//
// It refuses to know when to give up, and what is worth another attempt. The
// libraries for this (github.com/cenkalti/backoff) keep state for each use, spread
// the delay beyond the maximum as well, and run the attempts themselves; our callers
// count failures under locks of their own and promise a maximum.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Policy is an exponential backoff. Policies are values, safe for concurrent use.
type Policy struct {
	First time.Duration // after the first failure
	Max   time.Duration // no delay is longer
	// Jitter is the share of a delay that chance may take off, from 0 (none of it)
	// to 1.
	Jitter float64
}

// Delay is how long to wait after failures in a row, counted from 0: before it lies
// one attempt that failed, and Delay(0) is First without its random part.
func (p Policy) Delay(failures int) time.Duration {
	d := min(p.First, p.Max)
	for range min(failures, 63) { // more doublings overflow any First
		if d >= p.Max-d { // doubled, it would reach the maximum, or overflow
			d = p.Max
			break
		}
		d *= 2
	}
	return d - time.Duration(rand.Float64()*p.Jitter*float64(d))
}
