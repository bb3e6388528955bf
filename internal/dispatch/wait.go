package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// acquire takes a slot and returns its lane. If there is no free slot, an interactive call waits if
// the wait is likely to be short enough, and a bulk call waits until ctx ends. Closing stop also
// ends the wait. Workers in avoid are not used.
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

// natsAnswers limits the wait for an answer of NATS before a call is sent to any worker.
const natsAnswers = time.Second

// anyLane returns a lane for a call to any worker. It first requires an answer from NATS: a frozen
// server accepts the call, never reports that there is no receiver, and may deliver the call much
// later.
func (r *Router) anyLane(ctx context.Context, rt *route, call *schema.Call) (*lane, error) {
	l := rt.anyLane(r.unready(call.Server))
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

// stopWaiting removes the waiter from the queue. If it got a slot at the same moment, the slot is
// used.
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

// mayWaitLocked refuses a call that would be refused after its wait anyway. It first considers the
// waiting calls of the same principal: a full queue still accepts calls of a principal that has
// less than its share of it.
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
	turns, own := c.callsAhead(key, by)
	if c.n >= r.limits.MaxQueue && c.crowded(key, r.limits.MaxQueue, by) && (own >= r.limits.MaxQueue/(len(c.lines)+1) || c.n >= 2*r.limits.MaxQueue) {
		return r.fullErrorLocked(0)
	}
	if wait := expected(turns, slots, r.pace); wait > r.limits.MaxWait {
		return r.fullErrorLocked(wait)
	}
	return nil
}

// slotsLocked returns the number of slots of the open lanes.
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

// giveLocked gives free slots and places to waiting calls. The caller must release the lock with
// unlock.
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

// pickyTries limits the calls with workers to avoid that are examined for a free slot. Those that
// cannot use it move to the end, so that all of them are examined in time.
const pickyTries = 32

// linesTried limits the principals that are examined for a place. A principal that uses all of its
// places must not block the next one.
const linesTried = 32

// nextLocked returns the next waiting call and its lane, or nil if no free slot suits any call.
func (r *route) nextLocked(now time.Time) (*waiter, *lane) {
	for _, k := range r.waiting.order() {
		c := &r.waiting.kinds[k]
		// Asynchronous calls with a place have already had their turn and go first. There may be many
		// of them, so a call that needs no place goes before them if it is its turn.
		if k == bulk && (c.at == nil || c.turn().first.async != nil) {
			if l := r.readyLocked(now); l != nil {
				return l.ahead.ready.turn().first, l
			}
		}
		for range min(c.picky.n, pickyTries) {
			w := c.picky.first // they have already waited for a slot
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
				break // it gets the next free slot
			}
			if l := r.placeLocked(now, w.async.Call.Principal.ID()); l != nil {
				return w, l
			}
			c.pass()
		}
	}
	return nil, nil
}
