package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// isRemote reports whether the worker runs in another region. It is false if the worker or this
// router has no region.
func (o *Options) isRemote(w *schema.Worker) bool {
	there := w.Labels[schema.RegionLabel]
	return o.Region != "" && there != "" && there != o.Region
}

func (l *lane) isRemote() bool {
	host := l.host.Load()
	return host != nil && host.remote.Load()
}

// choice is the best of the lanes shown to it: the one with the lowest cost, with lanes of this
// region preferred over those of others.
type choice struct {
	lane   *lane
	remote bool
	cost   float64
}

func (c *choice) show(l *lane, now time.Time) {
	remote := l.isRemote()
	if c.lane != nil && remote && !c.remote {
		return
	}
	if cost := l.cost(now); c.lane == nil || c.remote && !remote || cost < c.cost {
		c.lane, c.remote, c.cost = l, remote, cost
	}
}
