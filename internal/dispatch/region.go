package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// isRemote says that the worker runs in another region. One that says nothing is near
// to everybody, and so is everybody to a router that was told nothing.
func (o *Options) isRemote(w *schema.Worker) bool {
	there := w.Labels[schema.RegionLabel]
	return o.Region != "" && there != "" && there != o.Region
}

func (l *lane) isRemote() bool {
	host := l.host.Load()
	return host != nil && host.remote.Load()
}

// choice is the best of the lanes that it was shown: one of this region while there is one,
// else one of another region; of those the one that costs least.
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
