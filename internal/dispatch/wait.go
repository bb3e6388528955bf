package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// acquire returns a lane with a slot taken. A call that finds none free waits:
// an interactive one if the wait is likely to be short enough, a bulk one until
// ctx ends. stop ends the wait as ctx does. Workers in avoid are not used.
func (r *route) acquire(ctx context.Context, call *schema.Call, avoid map[schema.WorkerID]bool, stop <-chan struct{}) (*lane, error) {
	now := time.Now()
	k := kindOf(call)
	r.mu.Lock()
	if r.waiting.kinds[k].n == 0 || len(avoid) > 0 {
		if l := r.pickLocked(now, avoid, k); l != nil {
			l.take(now, k)
			r.mu.Unlock()
			return l, nil
		}
	}
	open := r.hasOpenLocked(avoid)
	if err := r.mayWaitLocked(call, avoid, open); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	w := &waiter{got: make(chan *lane, 1), avoid: avoid, since: now}
	r.waiting.push(call, w, r.limits.weights())
	r.mu.Unlock()

	var late <-chan time.Time
	wait := r.limits.MaxWait
	if k == interactive {
		if !open {
			wait = min(wait, r.limits.WorkerWait)
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case l := <-w.got:
		return l, nil
	case <-ctx.Done():
		return r.stopWaiting(w, errWaitEnded())
	case <-stop:
		return r.stopWaiting(w, errWaitEnded())
	case <-late:
		if !open {
			return r.stopWaiting(w, errNoWorker)
		}
		return r.stopWaiting(w, r.fullError(wait))
	}
}

// natsAnswers is how long NATS may take to answer before a call goes to whoever hears it.
const natsAnswers = time.Second

// anybody returns a lane to whoever hears the call. NATS must answer first: a server that is
// frozen takes the call, never says that nobody heard it, and may deliver it much later.
func (r *Router) anybody(ctx context.Context, rt *route, call *schema.Call) (*lane, error) {
	l := rt.anybody(r.unready(call.Server))
	if call.Chosen != nil {
		return nil, l.route.fullError(0)
	}
	asking, cancel := context.WithTimeout(ctx, natsAnswers)
	defer cancel()
	if err := r.conn.Flush(asking); err != nil {
		if ctx.Err() != nil {
			return nil, errWaitEnded()
		}
		e := schema.Errorf(schema.KindUnavailable, "NATS does not respond; the call did not start. Try again later.")
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, e
	}
	return l, nil
}

func errWaitEnded() *schema.Error {
	return schema.Errorf(schema.KindCanceled, "The call was canceled while it waited for a worker; it did not start.").RetryableAfter(0)
}

// stopWaiting takes the waiter out of the queue. A slot that was given in the
// same moment is used rather than given back.
func (r *route) stopWaiting(w *waiter, err error) (*lane, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case l := <-w.got:
		return l, nil
	default:
	}
	r.waiting.remove(w)
	return nil, err
}

func (r *route) hasOpenLocked(avoid map[schema.WorkerID]bool) bool {
	for _, l := range r.lanes {
		if !l.closed && !avoid[l.worker] {
			return true
		}
	}
	return false
}

// mayWaitLocked refuses a wait that would end in a refusal anyway. What a
// principal has waiting is held against itself first: a full queue still takes
// the calls of one that has less than its part in it.
func (r *route) mayWaitLocked(call *schema.Call, avoid map[schema.WorkerID]bool, open bool) error {
	if !open && len(avoid) > 0 {
		return errNoOther
	}
	if call.Bulk {
		return nil
	}
	c, slots := &r.waiting.kinds[interactive], r.slotsLocked()
	if c.n < r.limits.MaxQueue && expected(c.n, slots, r.pace) <= r.limits.MaxWait {
		return nil
	}
	by := r.limits.weights()
	key := by.key(call)
	turns, own := c.before(key, by)
	if c.n >= r.limits.MaxQueue && c.crowded(key, r.limits.MaxQueue, by) && (own >= r.limits.MaxQueue/(len(c.lines)+1) || c.n >= 2*r.limits.MaxQueue) {
		return r.fullErrorLocked(0)
	}
	if wait := expected(turns, slots, r.pace); wait > r.limits.MaxWait {
		return r.fullErrorLocked(wait)
	}
	return nil
}

// slotsLocked is how many slots the open lanes have.
func (r *route) slotsLocked() int {
	slots := 0
	for _, l := range r.lanes {
		if !l.closed {
			slots += l.slots
		}
	}
	return slots
}

func (r *route) fullError(waited time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fullErrorLocked(waited)
}

func (r *route) fullErrorLocked(wait time.Duration) error {
	n := r.waiting.kinds[interactive].n
	e := schema.Errorf(schema.KindUnavailable, "All slots of server %q are in use and %d calls are waiting; the call did not start. Try again later, or add workers or sessions.", r.server, n)
	if !r.hasOpenLocked(nil) {
		e = schema.Errorf(schema.KindUnavailable, "No live worker runs server %q at the moment; the call did not start. Try again later, or check GET /workers.", r.server)
		if r.unready != "" {
			e = schema.Errorf(schema.KindUnavailable, "Server %q is not ready: %s; the call did not start. Try again later, or check GET /servers.", r.server, strings.TrimSuffix(r.unready, "."))
		}
	}
	e.Retryable = true
	e.RetryAfter = max(time.Second, wait, expected(n, r.slotsLocked(), r.pace)).Round(time.Second)
	return e
}

// giveLocked gives free slots, and places, to waiting calls. Who holds the lock
// gives it back with unlock.
func (r *route) giveLocked() {
	if r.waiting.empty() {
		return
	}
	now := time.Now()
	for {
		w, l := r.nextLocked(now)
		switch {
		case w == nil:
			return
		case w.async == nil:
			l.take(now, w.kind)
			r.waiting.served(w)
			w.got <- l
		case w.async.state == asyncReady:
			l.ahead.ready.served(w)
			r.waiting.ready--
			r.waiting.owed = 0
			l.ahead.remove(w.async)
			l.take(now, bulk)
			w.async.state = asyncLeft
			r.todo.leaving = append(r.todo.leaving, w.async)
		default:
			r.waiting.served(w)
			l.ahead.add(w.async)
			w.async.state, w.async.lane = asyncPlaced, l
			r.todo.placed = append(r.todo.placed, w.async)
		}
	}
}

// pickyTries is the number of calls that avoid workers that are looked at when a slot is
// free. Those that it does not suit go behind the others, so that all of them come up.
const pickyTries = 32

// linesTried is how many principals are looked at for a place: one that has all of its
// own must not keep the next from theirs.
const linesTried = 32

// nextLocked returns the waiting call whose turn it is and the lane for it, or
// nil where no free slot suits any.
func (r *route) nextLocked(now time.Time) (*waiter, *lane) {
	for _, k := range r.waiting.order() {
		c := &r.waiting.kinds[k]
		// Whoever has a place had its turn. A call that needs none, and whose turn it is,
		// goes before those: they may be many.
		if k == bulk && (c.at == nil || c.turn().first.async != nil) {
			if l := r.readyLocked(now); l != nil {
				return l.ahead.ready.turn().first, l
			}
		}
		for range min(c.picky.n, pickyTries) {
			w := c.picky.first // they waited for a slot before
			if l := r.pickLocked(now, w.avoid, k); l != nil {
				return w, l
			}
			c.picky.remove(w)
			c.picky.push(w)
		}
		for range min(c.tries(), linesTried) {
			w := c.turn().first
			if w.async == nil {
				if l := r.pickLocked(now, nil, k); l != nil {
					return w, l
				}
				break // the next free slot is its
			}
			if l := r.placeLocked(now, w.async.Call.Principal.ID()); l != nil {
				return w, l
			}
			c.pass()
		}
	}
	return nil, nil
}
