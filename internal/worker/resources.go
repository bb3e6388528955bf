package worker

import (
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// wantFor is how long a front door's interest in a resource lasts. Front doors repeat it several
// times within that time.
const wantFor = 90 * time.Second

// want watches the resources that a front door is interested in.
func (w *Worker) want(r bus.Resources) {
	if h := w.servers.find(r.Server); h != nil && h.pool != nil && h.personal == nil { // the shared session does not have a person's resources
		h.pool.Watch(r.URIs, time.Now().Add(wantFor))
	}
}

// updated returns a function that notifies all front doors of changed resources of the server.
func (w *Worker) updated(server schema.ServerID) func(uris []string) {
	return func(uris []string) {
		if err := w.o.Conn.ResourcesUpdated(bus.Resources{Server: server, URIs: uris}); err != nil {
			w.log.Debug("a resource update could not be published", "error", err)
		}
	}
}
