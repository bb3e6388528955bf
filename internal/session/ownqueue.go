package session

import (
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// ownWaiter is a call that waits for one of its caller's own sessions.
type ownWaiter struct {
	key string
	got chan grant // has a buffer of one
}

// grant is the result for a waiter: a session, an error or, without both, a place in which to
// open a session.
type grant struct {
	one *Owned
	err error
}

// Take returns one of the caller's own sessions, for exclusive use until it is returned with
// [Own.Release]. If all of the caller's sessions are in use, or the limit of sessions is reached,
// it waits for up to 30 s. ctx limits the wait and the opening. The error is a *schema.Error of a
// call that did not start.
func (o *Own) Take(ctx context.Context, c Caller) (*Owned, error) {
	key := c.key()
	one, err := o.place(ctx, key)
	if err != nil {
		return nil, err
	}
	if one == nil {
		one, err = o.begin(ctx, c)
		o.opened(ctx, key, err)
		if err != nil {
			return nil, err
		}
	}
	one.setLevel(ctx, c.Level)
	if ctx.Err() != nil {
		o.Release(one, false)
		return nil, o.refusal("The session with the server %q was not ready in time; the call did not start.", o.cfg.Spec.ID)
	}
	return one, nil
}

// place returns a free session of the caller, or nil if the caller has a place in which to open
// one.
func (o *Own) place(ctx context.Context, key string) (*Owned, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, o.closing()
	}
	if one := o.freeLocked(key); one != nil {
		o.mu.Unlock()
		return one, nil
	}
	if o.callers[key] == nil {
		if old, ok := o.reserveLocked(key); ok {
			o.mu.Unlock()
			o.end(old)
			return nil, nil // a place without a session
		}
	}
	w := &ownWaiter{key: key, got: make(chan grant, 1)}
	o.waiting = append(o.waiting, w)
	o.mu.Unlock()
	return o.await(ctx, w)
}

// await waits for the grant of the waiter.
func (o *Own) await(ctx context.Context, w *ownWaiter) (*Owned, error) {
	late := time.NewTimer(o.wait)
	defer late.Stop()
	more := time.NewTicker(o.grow)
	defer more.Stop()
	for {
		select {
		case g := <-w.got:
			return g.one, g.err
		case now := <-more.C:
			o.grown(w, now)
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		o.mu.Lock()
		i := slices.Index(o.waiting, w)
		if i >= 0 {
			o.waiting = slices.Delete(o.waiting, i, i+1)
		}
		o.mu.Unlock()
		if i < 0 { // it was granted at the same moment
			g := <-w.got
			return g.one, g.err
		}
		return nil, o.refusal("All sessions of server %q for this caller, or for all callers (%d), stayed in use; the call did not start. Try again later.",
			o.cfg.Spec.ID, maxOwn)
	}
}

// grown gives the first waiter of a caller a place for one more session, if none was opened
// within o.grow.
func (o *Own) grown(w *ownWaiter, now time.Time) {
	o.mu.Lock()
	first := slices.IndexFunc(o.waiting, func(other *ownWaiter) bool { return other.key == w.key })
	p := o.callers[w.key]
	if first < 0 || o.waiting[first] != w || p != nil && (p.opening || now.Sub(p.grown) < o.grow) {
		o.mu.Unlock()
		return
	}
	old, ok := o.reserveLocked(w.key)
	if ok {
		o.grantLocked(first, grant{})
	}
	o.mu.Unlock()
	o.end(old)
}

// freeLocked takes a free session of the caller. It returns nil if there is none.
func (o *Own) freeLocked(key string) *Owned {
	for i := len(o.idle) - 1; i >= 0; i-- {
		if c := o.idle[i]; c.key == key && c.s.cause() == nil {
			o.idle = slices.Delete(o.idle, i, i+1)
			return c
		}
	}
	return nil
}

// reserveLocked reserves a place for one more session of the caller. It returns false if there is
// none. old is an unused session that was evicted for it, which the caller must end.
func (o *Own) reserveLocked(key string) (old *Owned, ok bool) {
	switch {
	case o.open < maxOwn:
	case len(o.idle) > 0:
		old = o.idle[0]
		o.idle = slices.Delete(o.idle, 0, 1)
		// The new session takes its place at once.
		o.open--
		o.lessLocked(old.key)
	default:
		return nil, false
	}
	o.open++
	p := o.callers[key]
	if p == nil {
		p = &places{}
		o.callers[key] = p
	}
	p.open, p.opening = p.open+1, true
	return old, true
}

func (o *Own) lessLocked(key string) {
	if p := o.callers[key]; p != nil {
		if p.open--; p.open <= 0 {
			delete(o.callers, key)
		}
	}
}

// end closes a session whose place has been given away already.
func (o *Own) end(old *Owned) {
	if old != nil {
		old.Close()
	}
}

// opened records the result of opening a session. If the server refused it, the waiting calls of
// the same caller get the same error: they would otherwise try one after the other.
func (o *Own) opened(ctx context.Context, key string, err error) {
	o.mu.Lock()
	if p := o.callers[key]; p != nil {
		p.opening, p.grown = false, time.Now()
	}
	for i := 0; err != nil && ctx.Err() == nil && i < len(o.waiting); {
		if o.waiting[i].key == key {
			o.grantLocked(i, grant{err: err})
		} else {
			i++
		}
	}
	o.mu.Unlock()
	if err != nil {
		o.sessionClosed(key)
	}
}

// grantLocked hands a grant to the waiter at index i.
func (o *Own) grantLocked(i int, g grant) {
	w := o.waiting[i]
	o.waiting = slices.Delete(o.waiting, i, i+1)
	w.got <- g
}

// keep passes a returned session to a waiting call of its caller, or keeps it for later. It
// returns false if the session must be closed, because it is unusable or its place goes to a
// caller that has no session.
func (o *Own) keep(one *Owned) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || one.s.cause() != nil || one.s.asks.remaining() > 0 {
		return false
	}
	several := o.callers[one.key] != nil && o.callers[one.key].open > 1
	mine := slices.IndexFunc(o.waiting, func(w *ownWaiter) bool { return w.key == one.key })
	needy := -1
	if o.open >= maxOwn {
		needy = slices.IndexFunc(o.waiting, func(w *ownWaiter) bool { return o.callers[w.key] == nil })
	}
	switch {
	case needy >= 0 && (mine < 0 || several || needy < mine):
		return false // gone gives the place to that caller
	case mine >= 0:
		o.grantLocked(mine, grant{one: one})
	default:
		one.since = time.Now()
		o.idle = append(o.idle, one)
	}
	return true
}

// sessionClosed records that a session of the caller is closed, and gives its place to the first waiting
// caller that has none.
func (o *Own) sessionClosed(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	o.lessLocked(key)
	if o.closed || o.open >= maxOwn {
		return
	}
	if i := slices.IndexFunc(o.waiting, func(w *ownWaiter) bool { return o.callers[w.key] == nil }); i >= 0 {
		_, _ = o.reserveLocked(o.waiting[i].key) // a place is free: none is evicted
		o.grantLocked(i, grant{})
	}
}

func (o *Own) refuseAllLocked() {
	for len(o.waiting) > 0 {
		o.grantLocked(0, grant{err: o.closing()})
	}
}

func (o *Own) closing() error {
	return o.refusal("The sessions of the server %q are being closed; send the call again.", o.cfg.Spec.ID)
}

func (o *Own) refusal(format string, args ...any) error {
	return schema.Errorf(schema.KindUnavailable, format, args...).RetryableAfter(time.Second)
}
