package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/sleep"
)

const (
	watchInterval = 15 * time.Second // interval of the check for expired subscriptions
	watchSettle   = 50 * time.Millisecond
	watchTimeout  = 10 * time.Second // timeout of a subscription request
	maxWatched    = 1000             // resources per server
	// maxSubscribing limits the subscription requests in flight. A server that leaves some of them
	// without an answer does not delay the others, nor the reports of changes.
	maxSubscribing = 16
)

// subscriptions holds the resources of a server that have subscribers.
type subscriptions struct {
	pool    *Pool
	wake    chan struct{} // signaled when there is work; nil before the first Watch, guarded by pool.mu
	mu      sync.Mutex
	until   map[string]time.Time
	changed map[string]bool // changes that were not reported yet
	busy    map[string]bool // resources with a subscription request in flight, in the legacy era

	// Owned by the subscribing goroutine.
	on   *session
	done map[string]bool
}

// Watch subscribes to these resources until the given time, and calls [Config].Updated for their
// changes if the server reports them. Call it again to extend the time. One session subscribes for
// all subscribers. Watch starts no session.
func (p *Pool) Watch(uris []string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.cfg.Updated == nil {
		return
	}
	w := &p.subscriptions
	first := w.wake == nil
	if first {
		w.wake, w.changed, w.busy = make(chan struct{}, 1), make(map[string]bool), make(map[string]bool)
	}
	w.mu.Lock()
	if first {
		w.until = make(map[string]time.Time)
	}
	fresh := false
	for _, uri := range uris {
		_, known := w.until[uri]
		if !known && len(w.until) >= maxWatched {
			continue
		}
		w.until[uri], fresh = until, fresh || !known
	}
	w.mu.Unlock()
	if first {
		p.work.Go(w.run) // The pool is not closing here, so Close does not wait for p.work yet.
	}
	if fresh {
		w.rouse()
	}
}

func (w *subscriptions) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wakeLocked wakes the subscribing goroutine, if there is one. The caller holds pool.mu.
func (w *subscriptions) wakeLocked() {
	if w.wake != nil {
		w.rouse()
	}
}

// updated records that the server reported a change.
func (w *subscriptions) updated(uri string) {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	if w.wake == nil {
		return
	}
	w.mu.Lock()
	_, wanted := w.until[uri]
	if wanted {
		w.changed[uri] = true
	}
	w.mu.Unlock()
	if wanted {
		w.rouse()
	}
}

// run is the goroutine that subscribes and reports changes. Several changes of one resource are
// reported as one.
func (w *subscriptions) run() {
	p := w.pool
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		case <-w.wake:
		}
		if !sleep.For(watchSettle, p.ctx.Done()) {
			return
		}
		w.mu.Lock()
		var uris []string
		for uri := range w.changed {
			uris = append(uris, uri)
		}
		clear(w.changed)
		w.mu.Unlock()
		if len(uris) > 0 {
			slices.Sort(uris)
			p.cfg.Updated(uris)
		}
		w.subscribeAll(time.Now())
	}
}

// subscribeAll subscribes and unsubscribes one session so that it matches the wanted resources.
func (w *subscriptions) subscribeAll(now time.Time) {
	p := w.pool
	p.mu.Lock()
	var s *session
	if len(p.live) > 0 {
		s = p.live[0]
	}
	if slices.Contains(p.live, w.on) {
		s = w.on
	}
	p.mu.Unlock()
	if s != w.on {
		w.on, w.done = s, make(map[string]bool) // subscriptions of a lost session end with it
	}
	var add, end []string
	w.mu.Lock()
	for uri, until := range w.until {
		switch {
		case w.busy[uri]: // its end wakes this goroutine
		case now.After(until):
			delete(w.until, uri)
			if w.done[uri] {
				end = append(end, uri)
			}
		case !w.done[uri] && len(w.busy)+len(add) < maxSubscribing:
			add = append(add, uri)
		}
	}
	w.mu.Unlock()
	if s == nil || s.about.Capabilities == nil || s.about.Capabilities.Resources == nil || !s.about.Capabilities.Resources.Subscribe {
		return
	}
	for _, uri := range end {
		delete(w.done, uri)
		w.subscribing(s, uri, func(ctx context.Context) error { return s.cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) })
	}
	for _, uri := range add {
		w.done[uri] = true // even if the server refuses: asking again would not help
		w.subscribing(s, uri, func(ctx context.Context) error { return s.cs.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}) })
	}
}

// subscribing sends a subscribe or unsubscribe request. In the modern era its answer is a stream,
// which ends with the session.
func (w *subscriptions) subscribing(s *session, uri string, do func(context.Context) error) {
	p := w.pool
	if !s.modern() {
		w.mu.Lock()
		w.busy[uri] = true
		w.mu.Unlock()
	}
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, watchTimeout)
		defer cancel()
		if err := do(ctx); err != nil && p.ctx.Err() == nil {
			p.log.Debug("the server sends no updates of a resource", "error", p.plain(err))
		}
		w.mu.Lock()
		busy := w.busy[uri]
		delete(w.busy, uri)
		w.mu.Unlock()
		if busy {
			w.rouse() // for requests that waited
		}
	})
}
