package dispatch

import (
	"sync/atomic"
	"time"
)

// atomicTime is a point in time that can be read and set concurrently.
type atomicTime struct{ ns atomic.Int64 }

func (t *atomicTime) set(now time.Time) { t.ns.Store(now.UnixNano()) }
func (t *atomicTime) get() time.Time    { return time.Unix(0, t.ns.Load()) }

// atomicCount is a counter that can be changed concurrently.
type atomicCount struct{ n atomic.Int64 }

func (c *atomicCount) add(d int64) int64 { return c.n.Add(d) }
func (c *atomicCount) get() int64        { return c.n.Load() }
