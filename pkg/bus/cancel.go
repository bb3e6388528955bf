package bus

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// longestID is longer than any call id.
const longestID = 256

// CancelCall asks all routers to cancel the call id. Routers that do not have the call
// ignore the request and do not respond.
func (c *Conn) CancelCall(id schema.CallID) error {
	if id == "" || len(id) > longestID {
		return fmt.Errorf("canceling a call: an id must have 1 to %d bytes, not %d", longestID, len(id))
	}
	if err := c.nc.Publish(subjectCancel, []byte(id)); err != nil {
		return fmt.Errorf("canceling call %s: %w", id, err)
	}
	return nil
}

// WatchCancels calls f with the id of each call to cancel, one at a time. f must not block.
func (c *Conn) WatchCancels(f func(id schema.CallID)) (*Watch, error) {
	return c.listen("for cancelled calls", subjectCancel, func(m *nats.Msg) {
		if len(m.Data) > 0 && len(m.Data) <= longestID {
			f(schema.CallID(string(m.Data)))
		}
	})
}
