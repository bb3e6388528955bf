package worker

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// arrival is a server that starts in order to replace one that is held.
type arrival struct {
	next    *held
	changed chan struct{}
	cancel  context.CancelFunc
}

// Apply makes servers those of the servers file: added ones start, removed ones finish
// their calls and end, changed ones are replaced. A changed server takes calls once it is
// ready, and the old one finishes those that it has; one whose new entry does not start
// goes on as it was, see [Worker.Pending]. Where the entry raises the risk level, or the
// old server is not ready, it is replaced at once. Servers that came over the API are left
// alone. It returns before the servers are ready; two of them must not run at once.
func (w *Worker) Apply(servers []Served) {
	w.mu.Lock()
	if w.draining {
		w.mu.Unlock()
		return
	}
	wanted := make(map[string]bool, len(servers))
	var gone []string
	for _, s := range servers {
		id := s.Session.Spec.ID
		wanted[id] = true
		old := w.held[id]
		switch {
		case old == nil:
			w.log.Info("a server was added", "server", id)
			w.holdLocked(s, false)
		case old.added:
			w.log.Warn("a server of the servers file has the name of one that was added over the API, which goes on", "server", id)
		default:
			w.changeLocked(old, s)
		}
	}
	for id, h := range w.held {
		if !wanted[id] && !h.added {
			w.log.Info("a server was removed; it finishes its calls", "server", id)
			w.dropArrivalLocked(id)
			delete(w.held, id)
			w.retireLocked(id, h)
			gone = append(gone, id)
		}
	}
	w.mu.Unlock()
	for _, id := range gone {
		w.listener.Withdraw(id)
	}
	w.change()
}

// changeLocked replaces a server by what its entry says now, where that differs.
func (w *Worker) changeLocked(old *held, s Served) {
	id := s.Session.Spec.ID
	if a := w.coming[id]; a != nil {
		if same(&a.next.served, &s) {
			return
		}
		w.dropArrivalLocked(id)
	}
	if same(&old.served, &s) {
		return
	}
	w.log.Info("a server was changed", "server", id)
	w.replaceLocked(old, s)
}

// same reports whether two entries make the same server.
func same(a, b *Served) bool {
	x, y := a.Entry, b.Entry
	x.Where, y.Where = "", ""
	return reflect.DeepEqual(x, y)
}

// Restart replaces a server by a new start of itself, without failing calls. The error
// is of KindNotFound where the worker does not hold it.
func (w *Worker) Restart(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.held[id]
	switch {
	case old == nil:
		return schema.Errorf(schema.KindNotFound, "Worker %s does not hold server %q.", w.id, id)
	case w.draining:
		return schema.Errorf(schema.KindUnavailable, "Worker %s is about to stop.", w.id)
	case w.coming[id] == nil: // else it is being replaced already
		w.log.Info("a server is started again", "server", id)
		w.replaceLocked(old, old.served)
	}
	return nil
}

// Pending says which entries of the servers file are not in force yet because their
// servers have not started, one sentence each.
func (w *Worker) Pending() []string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var found []string
	for _, id := range slices.Sorted(maps.Keys(w.coming)) {
		if s := w.coming[id].next.snapshot(); s.State != schema.StateStarting {
			found = append(found, fmt.Sprintf("server %q goes on as it was, because its changed entry does not start: %s", id, s.Error))
		}
	}
	return found
}

func (w *Worker) replaceLocked(old *held, s Served) {
	id := s.Session.Spec.ID
	a := &arrival{changed: make(chan struct{}, 1)}
	a.next = w.openServer(s, old.added, func() {
		select {
		case a.changed <- struct{}{}:
		default:
		}
		w.change()
	})
	if s.Risk > old.served.Risk || old.snapshot().State != schema.StateInitialized {
		w.held[id] = a.next
		w.retireLocked(id, old)
		return
	}
	ctx, cancel := context.WithCancel(w.life)
	a.cancel = cancel
	w.coming[id] = a
	w.leaving.Go(func() { w.arrive(ctx, id, old, a) })
}

// arrive puts a server in the place of the old one as soon as it is ready.
func (w *Worker) arrive(ctx context.Context, id string, old *held, a *arrival) {
	for {
		w.mu.Lock()
		switch {
		case ctx.Err() != nil: // nobody wants it any more
			w.mu.Unlock()
			w.end(id, a.next)
			return
		case a.next.ready() || old.snapshot().State != schema.StateInitialized:
			delete(w.coming, id)
			a.cancel()
			w.held[id] = a.next
			w.retireLocked(id, old)
			w.mu.Unlock()
			w.change()
			return
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-a.changed:
		}
	}
}

// ready reports whether the server takes calls and has said what it offers.
func (h *held) ready() bool {
	if h.snapshot().State != schema.StateInitialized {
		return false
	}
	_, digest := h.definitions()
	return digest != ""
}

// dropArrivalLocked gives up what was to replace a server.
func (w *Worker) dropArrivalLocked(id string) {
	if a := w.coming[id]; a != nil {
		delete(w.coming, id)
		a.cancel()
	}
}

// retireLocked lets a server that is held no longer finish its calls, and ends it.
func (w *Worker) retireLocked(id string, h *held) {
	w.leaving.Go(func() {
		w.forget(id)
		h.taking.Wait() // who has found it is still handing its call over
		w.end(id, h)
	})
}

// forget drops what was counted of a server's sessions, for the next of its name counts
// again.
func (w *Worker) forget(id string) {
	w.announcing.Lock()
	defer w.announcing.Unlock()
	delete(w.restarts, id)
	delete(w.noise, id)
	w.o.Metrics.ForgetServer(id)
}

// end closes a server once its calls are over, at the latest when the worker ends.
func (w *Worker) end(id string, h *held) {
	if err := h.close(w.life); err != nil {
		w.log.Warn("closing a server", "server", id, "error", err)
	}
}
