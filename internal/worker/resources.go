package worker

import (
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// wantFor is how long somebody who wanted to hear of a resource is believed to want
// it; front doors say it again several times meanwhile.
const wantFor = 90 * time.Second

// want has changes of resources told that somebody wants to hear of.
func (w *Worker) want(r bus.Resources) {
	if h := w.servers.find(r.Server); h != nil && h.pool != nil && h.personal == nil { // a person's resources are not those of the shared session
		h.pool.Watch(r.URIs, time.Now().Add(wantFor))
	}
}

// updated returns what tells all front doors that resources of the server changed.
func (w *Worker) updated(server schema.ServerID) func(uris []string) {
	return func(uris []string) {
		if err := w.o.Conn.ResourcesUpdated(bus.Resources{Server: server, URIs: uris}); err != nil {
			w.log.Debug("a resource update could not be published", "error", err)
		}
	}
}
