package dispatch

import (
	"slices"
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// listeners holds the callbacks for canceled calls. It is safe for concurrent use.
type listeners struct {
	mu  sync.RWMutex
	all map[*func(id schema.CallID)]struct{}
}

func (l *listeners) add(f func(id schema.CallID)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[*func(schema.CallID)]struct{})
	}
	key := &f
	l.all[key] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, key)
	}
}

func (l *listeners) notify(id schema.CallID) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for f := range l.all {
		(*f)(id)
	}
}

// OnCancel calls f with the id of each call that is canceled with [Router.Cancel], here or at
// another router, including calls that have not reached a router yet. f must not block. After stop
// returns, f is not called again.
func (r *Router) OnCancel(f func(id schema.CallID)) (stop func()) { return r.listeners.add(f) }

// Cancel ends the call id here, or sends the cancellation to the other routers. A call that was
// not sent ends with [schema.KindCanceled]; for one that was sent see [Router.Do]. Cancel does not
// report whether another router had the call. It returns KindUnavailable if NATS cannot be
// reached.
func (r *Router) Cancel(id schema.CallID) error {
	if r.flights.cancel(id) {
		return nil
	}
	if err := r.conn.CancelCall(id); err != nil {
		return schema.Errorf(schema.KindUnavailable, "The call could not be canceled because NATS cannot be reached: %w", err)
	}
	return nil
}

// canceled handles the cancellation of a call at some router.
func (r *Router) canceled(id schema.CallID) {
	r.flights.cancel(id)
	r.listeners.notify(id)
}

// cancel asks the worker of the attempt to stop the call that was sent as seq. If the call was sent to
// any worker, it asks all that are known to have the server. Only the worker with the call knows the
// number.
func (a *attempt) cancel(seq uint64) {
	if a.lane.worker != anyWorker {
		a.client.Cancel(a.lane.worker, seq)
		return
	}
	for _, id := range a.router.workersOf(a.call.Server) {
		a.client.Cancel(id, seq)
	}
}

// workersOf returns the live workers that have the server.
func (r *Router) workersOf(server schema.ServerID) (ids []schema.WorkerID) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for id, w := range r.workers {
		if slices.ContainsFunc(w.announced.Servers, func(s schema.Server) bool { return s.ID == server }) {
			ids = append(ids, id)
		}
	}
	return ids
}
