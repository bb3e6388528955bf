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
	watchLook   = 15 * time.Second // at what has run out
	watchSettle = 50 * time.Millisecond
	watchAsk    = 10 * time.Second // for the answer to a subscription
	mostWatched = 1000             // resources of one server
)

// subscriptions are the resources of a server whose changes somebody wants to hear of.
type subscriptions struct {
	pool    *Pool
	wake    chan struct{} // holds a word when there is something to do; nil before the first, guarded by pool.mu
	mu      sync.Mutex
	until   map[string]time.Time
	changed map[string]bool // not told yet

	// Of the one goroutine that subscribes.
	on   *session
	done map[string]bool
}

// Watch has [Config].Updated called for changes of these resources until the given time,
// where the server reports them. Call it again to extend the time. One session subscribes
// for all subscribers; no session is started for it.
func (p *Pool) Watch(uris []string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.cfg.Updated == nil {
		return
	}
	w := &p.subscriptions
	first := w.wake == nil
	if first {
		w.wake, w.changed = make(chan struct{}, 1), make(map[string]bool)
	}
	w.mu.Lock()
	if first {
		w.until = make(map[string]time.Time)
	}
	fresh := false
	for _, uri := range uris {
		_, known := w.until[uri]
		if !known && len(w.until) >= mostWatched {
			continue
		}
		w.until[uri], fresh = until, fresh || !known
	}
	w.mu.Unlock()
	if first {
		p.work.Go(w.run) // before Close waits: the pool is not closing
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

// wakeLocked looks after the subscriptions, if there are any. The caller holds pool.mu.
func (w *subscriptions) wakeLocked() {
	if w.wake != nil {
		w.rouse()
	}
}

// updated notes that the server told of a change.
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

// run is the goroutine that subscribes and tells of changes. Many changes of one resource
// are told as one.
func (w *subscriptions) run() {
	p := w.pool
	tick := time.NewTicker(watchLook)
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
		var told []string
		for uri := range w.changed {
			told = append(told, uri)
		}
		clear(w.changed)
		w.mu.Unlock()
		if len(told) > 0 {
			slices.Sort(told)
			p.cfg.Updated(told)
		}
		w.subscribeAll(time.Now())
	}
}

// subscribeAll brings the subscriptions of one session in line with what is wanted.
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
		w.on, w.done = s, make(map[string]bool) // those of a lost session are lost with it
	}
	var add, end []string
	w.mu.Lock()
	for uri, until := range w.until {
		switch {
		case now.After(until):
			delete(w.until, uri)
			if w.done[uri] {
				end = append(end, uri)
			}
		case !w.done[uri]:
			add = append(add, uri)
		}
	}
	w.mu.Unlock()
	if s == nil || s.about.Capabilities == nil || s.about.Capabilities.Resources == nil || !s.about.Capabilities.Resources.Subscribe {
		return
	}
	for _, uri := range end {
		delete(w.done, uri)
		w.subscribing(s, func(ctx context.Context) error { return s.cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}) })
	}
	for _, uri := range add {
		w.done[uri] = true // also where the server refuses: asking again would not help
		w.subscribing(s, func(ctx context.Context) error { return s.cs.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}) })
	}
}

// subscribing sends what changes a subscription. In the modern era its answer is a
// stream, which ends with the session.
func (w *subscriptions) subscribing(s *session, do func(context.Context) error) {
	p := w.pool
	ctx, cancel := context.WithTimeout(p.ctx, watchAsk)
	run := func() {
		defer cancel()
		if err := do(ctx); err != nil && p.ctx.Err() == nil {
			p.log.Debug("the server sends no updates of a resource", "error", p.plain(err))
		}
	}
	if s.modern() {
		p.work.Go(run)
		return
	}
	run()
}
