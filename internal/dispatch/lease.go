package dispatch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/pkg/schema"
)

// leasedPauses is the backoff before a call is sent again that its worker was too busy to start.
var leasedPauses = backoff.Policy{First: 2 * time.Millisecond, Max: 200 * time.Millisecond, Jitter: retryJitter}

// leased runs a call on the worker of its lease only. It takes no slot, because the lease is one.
// A call that may have started is not sent again, because its state exists only there. While the
// worker is too busy to start the call, the call waits up to its timeout.
func (r *Router) leased(ctx context.Context, call *schema.Call, fl *flight) (*schema.Result, error) {
	patience := call.Timeout
	if patience <= 0 {
		patience = r.limits.CallTimeout
	}
	deadline := time.Now().Add(patience)
	for n := 1; ; n++ {
		host := r.worker(call.Lease.Worker)
		if host == nil {
			return nil, errWorkerGone(call)
		}
		l := &lane{route: &route{server: call.Server, limits: &r.limits}, worker: call.Lease.Worker, inFlight: 1, slots: 1}
		l.host.Store(host)
		res, next, err := r.traced(ctx, call, l, n, fl.stop)
		if err == nil {
			return res, nil
		}
		failed := schema.AsError(err)
		if next == tryAny && failed.Kind == schema.KindUnavailable { // the worker no longer listens
			return nil, errWorkerGone(call)
		}
		wait := leasedPauses.Delay(n)
		if next != tryOther || failed.Kind != schema.KindUnavailable || time.Now().Add(wait).After(deadline) {
			return nil, failed.WithCall(call.ID)
		}
		if !sleep(ctx, fl.stop, wait) {
			return nil, errWaitEnded().WithCall(call.ID)
		}
	}
}

// errWorkerGone returns the error for a lease whose worker is gone, with all leased state.
func errWorkerGone(call *schema.Call) *schema.Error {
	return schema.Errorf(schema.KindServerFailed, "The worker of the lease, %s, is gone, so the call did not start.", call.Lease.Worker).WithCall(call.ID)
}
