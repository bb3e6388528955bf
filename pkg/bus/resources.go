package bus

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// Resources identifies resources of one server.
type Resources struct {
	Server schema.ServerID `json:"server"`
	URIs   []string        `json:"uris"`
}

// WantResources subscribes to changes of these resources at the workers of the server. The
// subscription expires after a while, so the caller must renew it.
func (c *Conn) WantResources(r Resources) error { return c.publishResources(subjectWant, &r) }

// WatchWants calls f for each [Conn.WantResources], one at a time. f must not block.
func (c *Conn) WatchWants(f func(Resources)) (*Watch, error) {
	return c.watchResources(subjectWant, f)
}

// ResourcesUpdated notifies all front doors that these resources have changed.
func (c *Conn) ResourcesUpdated(r Resources) error { return c.publishResources(subjectUpdated, &r) }

// WatchUpdates calls f for each [Conn.ResourcesUpdated], one at a time. f must not block.
func (c *Conn) WatchUpdates(f func(Resources)) (*Watch, error) {
	return c.watchResources(subjectUpdated, f)
}

func (c *Conn) publishResources(subject string, r *Resources) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = c.nc.Publish(subject+Token(r.Server), body)
	}
	if err != nil {
		return fmt.Errorf("publishing updates of resources of server %q: %w", r.Server, err)
	}
	return nil
}

func (c *Conn) watchResources(subject string, f func(Resources)) (*Watch, error) {
	return c.listen("for resource updates", subject+"*", func(m *nats.Msg) {
		var r Resources
		if err := json.Unmarshal(m.Data, &r); err != nil || Token(r.Server) != LastToken(m.Subject) {
			c.log.Error("a resource update cannot be decoded", "subject", m.Subject)
			return
		}
		f(r)
	})
}
