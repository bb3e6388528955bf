package dispatch

import (
	"sync/atomic"
	"time"
)

// clock converts times of this process to integers, which can be read and set concurrently. They are
// those of the monotonic clock: if somebody sets the clock of the machine, no worker becomes silent
// and no answer overdue.
type clock struct{ began time.Time }

// of returns the nanoseconds from the start of the clock to a time. It is never 0.
func (c clock) of(t time.Time) int64 { return int64(max(t.Sub(c.began), 1)) }

func (c clock) now() int64 { return c.of(time.Now()) }

// atomicCount is a counter that can be changed concurrently.
type atomicCount struct{ n atomic.Int64 }

func (c *atomicCount) add(d int64) int64 { return c.n.Add(d) }
func (c *atomicCount) get() int64        { return c.n.Load() }
