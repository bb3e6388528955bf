package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/launch/adapt"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

// stopTimeout limits the time to end a server that was removed over the API.
const stopTimeout = 10 * time.Second

// servers holds the servers of a worker. The worker's lock guards its maps.
type servers struct {
	w       *Worker
	held    map[schema.ServerID]*held
	coming  map[schema.ServerID]*startingServer // servers that replace held ones once they are ready
	leaving sync.WaitGroup                      // one per server that is starting as a replacement or draining
}

// open starts a server. It takes no calls before it is held. changed is called after each change of
// its state.
func (v *servers) open(s Served, added bool, changed func()) *held {
	w := v.w
	s.Session.Traces = w.o.Traces
	h := &held{served: s, added: added}
	if s.Sandbox != nil {
		h.sandboxed = openSandboxed(w, &h.served, changed)
	}
	if s.Sandbox == nil || !s.Sandbox.Only {
		if s.Adapt != nil {
			s.Session.Client = adapt.Client(s.Adapt(w.log))
		}
		if s.Asks {
			s.Session.Declares = []byte(allAsked)
		}
		s.Session.Updated = w.updated(s.Session.Spec.ID)
		h.pool = session.Open(s.Session, w.launcher, w.log, changed)
		if s.Entry.Auth != nil && s.Entry.Auth.Mode == config.AuthUser {
			h.personal = openPersonal(w, &s)
		}
		if s.Asks && s.Adapt == nil {
			h.asking = openAsking(w, &s)
		}
	}
	if h.pool != nil || s.Leases != nil && s.Leases.Sandbox != nil {
		h.leases = openLeases(w, &h.served, h.pool)
	}
	return h
}

// holdLocked opens a server and holds it.
func (v *servers) holdLocked(s Served, added bool) {
	v.held[s.Session.Spec.ID] = v.open(s, added, v.w.announcer.change)
}

// find returns a held server, or nil.
func (v *servers) find(id schema.ServerID) *held {
	v.w.mu.RLock()
	defer v.w.mu.RUnlock()
	return v.held[id]
}

// startingServer is a server that is starting to replace a held one.
type startingServer struct {
	next    *held
	changed chan struct{}
	cancel  context.CancelFunc
}

// apply is [Worker.Apply].
func (v *servers) apply(servers []Served) {
	w := v.w
	w.mu.Lock()
	if w.draining {
		w.mu.Unlock()
		return
	}
	wanted := make(map[schema.ServerID]bool, len(servers))
	var gone []schema.ServerID
	for _, s := range servers {
		id := s.Session.Spec.ID
		wanted[id] = true
		old := v.held[id]
		switch {
		case old == nil:
			w.log.Info("a server was added", "server", id)
			v.holdLocked(s, false)
		case old.added:
			w.log.Warn("a server of the servers file has the name of one that was added over the API; the added one keeps running", "server", id)
		default:
			v.changeLocked(old, s)
		}
	}
	for id, h := range v.held {
		if !wanted[id] && !h.added {
			w.log.Info("a server was removed; it finishes its calls", "server", id)
			v.dropArrivalLocked(id)
			delete(v.held, id)
			v.retireLocked(id, h)
			gone = append(gone, id)
		}
	}
	w.mu.Unlock()
	for _, id := range gone {
		w.listener.Withdraw(id)
	}
	w.announcer.change()
}

// changeLocked replaces a server if its entry has changed.
func (v *servers) changeLocked(old *held, s Served) {
	w := v.w
	id := s.Session.Spec.ID
	if a := v.coming[id]; a != nil {
		if sameDefinition(&a.next.served, &s) {
			return
		}
		v.dropArrivalLocked(id)
	}
	if sameDefinition(&old.served, &s) {
		return
	}
	w.log.Info("a server was changed", "server", id)
	v.replaceLocked(old, s)
}

// sameDefinition reports whether two entries define the same server. The keys of attached programs do not
// count, because they are applied separately.
func sameDefinition(a, b *Served) bool {
	x, y := a.Entry, b.Entry
	x.Where, y.Where = "", ""
	if x.Attach != nil && y.Attach != nil {
		x.Attach, y.Attach = nil, nil
	}
	return reflect.DeepEqual(x, y)
}

// restart replaces a server with a new start of itself, without failing calls. The error is of
// KindNotFound if the worker does not hold it.
func (v *servers) restart(id schema.ServerID) error {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	old := v.held[id]
	switch {
	case old == nil:
		return schema.Errorf(schema.KindNotFound, "Worker %s does not run server %q.", w.id, id)
	case w.draining:
		return schema.Errorf(schema.KindUnavailable, "Worker %s is shutting down.", w.id)
	case v.coming[id] == nil: // otherwise it is already being replaced
		w.log.Info("a server is being restarted", "server", id)
		v.replaceLocked(old, old.served)
	}
	return nil
}

// pending is [Worker.Pending].
func (v *servers) pending() []string {
	w := v.w
	w.mu.RLock()
	defer w.mu.RUnlock()
	var found []string
	for _, id := range slices.Sorted(maps.Keys(v.coming)) {
		if s := v.coming[id].next.snapshot(); s.State != schema.StateStarting {
			found = append(found, fmt.Sprintf("server %q continues with its previous entry, because the changed one does not start: %s", id, s.Error))
		}
	}
	return found
}

func (v *servers) replaceLocked(old *held, s Served) {
	w := v.w
	id := s.Session.Spec.ID
	a := &startingServer{changed: make(chan struct{}, 1)}
	a.next = v.open(s, old.added, func() {
		select {
		case a.changed <- struct{}{}:
		default:
		}
		w.announcer.change()
	})
	// Programs attach to the held server, so its replacement would never become ready while
	// it runs. The programs dial again within a fraction of a second.
	if s.Risk > old.served.Risk || s.Session.Attached || old.snapshot().State != schema.StateInitialized {
		v.held[id] = a.next
		v.retireLocked(id, old)
		return
	}
	ctx, cancel := context.WithCancel(w.life)
	a.cancel = cancel
	v.coming[id] = a
	v.leaving.Go(func() { v.arrive(ctx, id, old, a) })
}

// arrive replaces the old server with the new one as soon as that is ready.
func (v *servers) arrive(ctx context.Context, id schema.ServerID, old *held, a *startingServer) {
	w := v.w
	for {
		w.mu.Lock()
		switch {
		case ctx.Err() != nil: // no longer wanted
			w.mu.Unlock()
			v.end(id, a.next)
			return
		case a.next.ready() || old.snapshot().State != schema.StateInitialized:
			delete(v.coming, id)
			a.cancel()
			v.held[id] = a.next
			v.retireLocked(id, old)
			w.mu.Unlock()
			w.announcer.change()
			return
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-a.changed:
		}
	}
}

// ready reports whether the server takes calls and its definitions are known.
func (h *held) ready() bool {
	if h.snapshot().State != schema.StateInitialized {
		return false
	}
	_, digest := h.definitions()
	return digest != ""
}

// dropArrivalLocked abandons the replacement of a server.
func (v *servers) dropArrivalLocked(id schema.ServerID) {
	if a := v.coming[id]; a != nil {
		delete(v.coming, id)
		a.cancel()
	}
}

// retireLocked lets a server that is no longer held finish its calls, and ends it.
func (v *servers) retireLocked(id schema.ServerID, h *held) {
	v.leaving.Go(func() {
		v.w.announcer.forget(id)
		h.taking.Wait() // callers that found the server are still handing over their calls
		v.end(id, h)
	})
}

// end closes a server once its calls have ended, at the latest when the worker ends.
func (v *servers) end(id schema.ServerID, h *held) {
	w := v.w
	if err := h.close(w.life); err != nil {
		w.log.Warn("closing a server", "server", id, "error", err)
	}
}

// add holds a new server from the API. Adding the same server again is not an error, so that a
// front door may repeat the request.
func (v *servers) add(id schema.ServerID, entry json.RawMessage) error {
	w := v.w
	if w.o.Parse == nil {
		return schema.Errorf(schema.KindForbidden, "Worker %s does not accept servers over the API.", w.id)
	}
	s, err := w.o.Parse(id, entry)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return schema.Errorf(schema.KindUnavailable, "Worker %s is shutting down.", w.id)
	}
	if h := v.held[id]; h != nil {
		if h.added { // with another entry, it is the rest of a server that was removed
			v.changeLocked(h, s)
			return nil
		}
		return schema.Errorf(schema.KindConflict, "Server %q is in the servers file of worker %s; choose another id, or change the entry there.", id, w.id)
	}
	v.holdLocked(s, true)
	w.announcer.change()
	return nil
}

// remove ends a server that was added over the API.
func (v *servers) remove(id schema.ServerID) error {
	w := v.w
	w.mu.Lock()
	h := v.held[id]
	if h == nil {
		w.mu.Unlock()
		return nil
	}
	if !h.added {
		w.mu.Unlock()
		return schema.Errorf(schema.KindConflict, "Server %q is in the servers file of worker %s; remove it there.", id, w.id)
	}
	v.dropArrivalLocked(id)
	delete(v.held, id)
	w.mu.Unlock()
	w.listener.Withdraw(id)
	v.w.announcer.forget(id)
	w.announcer.change()
	h.taking.Wait() // callers that found the server are still handing over their calls
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := h.close(ctx); err != nil {
		return fmt.Errorf("stopping server %q: %w", id, err)
	}
	return nil
}

func (v *servers) close(ctx context.Context) {
	w := v.w
	w.mu.Lock()
	all := slices.Collect(maps.Values(v.held))
	w.mu.Unlock()
	var closing sync.WaitGroup
	for _, h := range all {
		closing.Go(func() {
			if err := h.close(ctx); err != nil {
				w.log.Warn("closing a server", "error", err)
			}
		})
	}
	closing.Wait()
}
