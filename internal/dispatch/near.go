package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// isFar says that the worker runs in another region. One that says nothing is near
// to everybody, and so is everybody to a router that was told nothing.
func (o *Options) isFar(w *schema.Worker) bool {
	there := w.Labels[schema.RegionLabel]
	return o.Region != "" && there != "" && there != o.Region
}

func (l *lane) isFar() bool {
	host := l.host.Load()
	return host != nil && host.far.Load()
}

// choice is the best of the lanes that it was shown: a near one while there is one,
// else a far one; of those the one that costs least.
type choice struct {
	lane *lane
	far  bool
	cost float64
}

func (c *choice) show(l *lane, now time.Time) {
	far := l.isFar()
	if c.lane != nil && far && !c.far {
		return
	}
	if cost := l.cost(now); c.lane == nil || c.far && !far || cost < c.cost {
		c.lane, c.far, c.cost = l, far, cost
	}
}
