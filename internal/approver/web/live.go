package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxStreams limits the number of open pages with live updates, and maxStreamsEach those of one
	// person.
	maxStreams     = 1000
	maxStreamsEach = 50
	heartbeat      = 15 * time.Second
	// settleFor delays an update, so that concurrent changes reload a page only once.
	settleFor = 250 * time.Millisecond
)

// pageUpdates notifies open pages of changes of their tenant: people must not learn when others
// request and decide calls. The pages load the changes themselves.
type pageUpdates struct {
	access  *access
	ready   func() error
	beat    time.Duration
	stop    func()
	slots   *limiters.Slots[schema.PrincipalID]
	mu      sync.Mutex
	streams map[chan struct{}]schema.TenantID
	done    chan struct{}
	closed  bool
}

func newLive(l *ledger.Ledger, a *access) *pageUpdates {
	v := &pageUpdates{access: a, ready: a.o.Ready, beat: heartbeat, slots: limiters.NewSlots[schema.PrincipalID](maxStreams, maxStreamsEach), streams: make(map[chan struct{}]schema.TenantID), done: make(chan struct{})}
	v.stop = l.Watch(schema.AllTenants(), func(a *ledger.Approval) { v.notify(a.Binding.Tenant) })
	return v
}

func (v *pageUpdates) notify(tenant schema.TenantID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c, of := range v.streams {
		if !of.Is(tenant) {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // already notified
		}
	}
}

func (v *pageUpdates) open(tenant schema.TenantID) (chan struct{}, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, false
	}
	c := make(chan struct{}, 1)
	v.streams[c] = tenant
	return c, true
}

func (v *pageUpdates) leave(c chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.streams, c)
}

func (v *pageUpdates) close() {
	v.stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed {
		v.closed = true
		close(v.done)
	}
}

// serve writes the stream: an event named "changed", without content, whenever an approval changed,
// or whether decisions can be recorded.
func (v *pageUpdates) serve(w http.ResponseWriter, r *http.Request) {
	visitor := v.access.visit(w, r)
	if !visitor.known {
		problem.Write(w, schema.Errorf(schema.KindUnauthenticated, "Sign in to receive live updates."))
		return
	}
	full := schema.Errorf(schema.KindUnavailable, "Too many pages receive live updates; reload the page to update it.")
	if !v.slots.Take(visitor.who.ID()) {
		problem.Write(w, full)
		return
	}
	defer v.slots.Release(visitor.who.ID())
	changed, ok := v.open(visitor.who.Tenant)
	if !ok {
		problem.Write(w, full)
		return
	}
	defer v.leave(changed)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the request has been read, and the stream may last
	ready := v.ready() == nil                                      // before the page is told that it has the stream, and loads what is then shown
	out := sse.Writer{W: w, Within: func(int) time.Duration { return writeWithin }}
	if out.Retry(3*time.Second) != nil || r.Method == http.MethodHead {
		return
	}
	beat := time.NewTicker(v.beat)
	defer beat.Stop()
	update := func() error { return out.Event("changed", "") }
	for {
		send := out.Beat
		select {
		case <-r.Context().Done():
			return
		case <-v.done:
			return
		case <-beat.C:
			if now := v.ready() == nil; now != ready {
				ready, send = now, update
			}
		case <-changed:
			send = update
			select {
			case <-time.After(settleFor):
			case <-r.Context().Done():
				return
			case <-v.done:
				return
			}
		}
		// The stream ends with the session.
		if _, ok := v.access.session(v.access.cookie(r), false); !ok && !v.access.open() {
			return
		}
		if send() != nil {
			return
		}
	}
}
