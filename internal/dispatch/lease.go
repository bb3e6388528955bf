package dispatch

import (
	"context"

	"github.com/callyard/callyard/pkg/schema"
)

// leased runs a call on the worker of its lease, and nowhere else. It takes no slot: the
// lease is one. It is sent once, because what it needs is there alone.
func (r *Router) leased(ctx context.Context, call *schema.Call, fl *flight) (*schema.Result, error) {
	host := r.worker(call.Lease.Worker)
	if host == nil {
		return nil, schema.Errorf(schema.KindServerFailed, "The worker of the lease, %s, is gone, so the call did not start.", call.Lease.Worker).WithCall(call.ID)
	}
	l := &lane{route: &route{server: call.Server, limits: &r.limits}, worker: call.Lease.Worker, inFlight: 1, slots: 1}
	l.host.Store(host)
	res, _, err := r.traced(ctx, call, l, 1, fl.stop)
	if err != nil {
		return nil, schema.AsError(err).WithCall(call.ID)
	}
	return res, nil
}
