package dispatch

import (
	"sync/atomic"
	"time"
)

// atomicTime is a point in time that many goroutines read and set.
type atomicTime struct{ ns atomic.Int64 }

func (t *atomicTime) set(now time.Time) { t.ns.Store(now.UnixNano()) }
func (t *atomicTime) get() time.Time    { return time.Unix(0, t.ns.Load()) }

// atomicCount is a number that many goroutines change.
type atomicCount struct{ n atomic.Int64 }

func (c *atomicCount) add(d int64) int64 { return c.n.Add(d) }
func (c *atomicCount) get() int64        { return c.n.Load() }
