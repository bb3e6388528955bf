// Package backoff computes the delay before the next attempt at an operation that failed, and reads the
// delay that a server asks for.
//
// The delay doubles with each failure up to a maximum. A random part is subtracted, so that callers
// that failed together do not retry together. A [Policy] holds no state and starts no timer: the
// caller counts its failures and waits, so that it can also wait for other events.
//
// It does not decide when to give up or which errors to retry. The libraries for this
// (github.com/cenkalti/backoff) keep state for each use, spread the delay beyond the maximum as
// well, and run the attempts themselves. Our callers count failures under their own locks and
// guarantee a maximum.
package backoff

import (
	"math/rand/v2"
	"time"
)

// Policy is an exponential backoff. Policies are values, safe for concurrent use.
type Policy struct {
	First time.Duration // after the first failure
	Max   time.Duration // the maximum delay
	// Jitter is the maximum share of a delay that is randomly subtracted, from 0 (nothing) to 1.
	Jitter float64
}

// Delay returns the delay after a number of consecutive failures, counted from 0: after the first
// failed attempt, failures is 0 and the delay is First without its random part.
func (p Policy) Delay(failures int) time.Duration {
	d := min(p.First, p.Max)
	for range min(failures, 63) { // more doublings overflow any First
		if d >= p.Max-d { // doubling would reach the maximum, or overflow
			d = p.Max
			break
		}
		d *= 2
	}
	return d - time.Duration(rand.Float64()*p.Jitter*float64(d))
}
