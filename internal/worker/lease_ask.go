package worker

import (
	"encoding/json"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// lease answers a request for a lease.
func (c control) lease(f *bus.CallFrame) ([]byte, error) {
	var q bus.LeaseRequest
	if err := json.Unmarshal(f.Payload, &q); err != nil || q.ID == "" {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The request for a lease cannot be read.")
	}
	h := c.w.servers.find(f.Server)
	if h == nil || h.leases == nil {
		return nil, schema.Errorf(schema.KindServerFailed, "Worker %s does not lease processes of the server %q.", c.w.id, f.Server)
	}
	switch f.Method {
	case bus.MethodOpenLease:
		return nil, h.leases.take(&q)
	case bus.MethodCloseLease:
		h.leases.give(q.ID)
		return nil, nil
	}
	read := h.leases.digest
	if f.Method == bus.MethodLeaseSnapshot {
		read = h.leases.snapshot
	}
	sum, err := read(q.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sum)
}
