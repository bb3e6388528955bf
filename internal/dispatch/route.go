package dispatch

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// route is everything the router knows about one server: the workers that have
// it, and the calls that wait for a slot.
type route struct {
	server string
	limits *Options

	mu      sync.Mutex
	lanes   []*lane
	waiting list.List // of *waiter
	pace    average   // time for one call, over all workers
	known   bool      // the server was announced at least once
}

// lane is one worker's slots for one server. Its fields are guarded by the
// route's lock.
type lane struct {
	route    *route
	worker   string
	slots    int // this router's share
	inFlight int
	pace     average
	lastUsed time.Time
	closed   bool // draining, failed or gone: nothing new
}

// waiter is a call that waits for a slot.
type waiter struct {
	got   chan *lane // buffered, so that the giver never waits
	avoid map[string]bool
}

// average is an exponentially weighted moving average of durations.
type average float64

const (
	averageWeight = 0.2
	// paceFloor keeps a worker that answers in microseconds from drawing every
	// call while its neighbours idle.
	paceFloor = float64(50 * time.Microsecond)
	// paceFades is how soon an unused worker's bad record is forgotten by half:
	// without it a worker that was slow once would never be tried again.
	paceFades = 15 * time.Second
)

func (a *average) add(d time.Duration) {
	if *a == 0 {
		*a = average(d)
		return
	}
	*a += averageWeight * (average(d) - *a)
}

// cost is how long one more call would take on the lane, roughly.
func (l *lane) cost(now time.Time) float64 {
	pace := float64(l.pace)
	if pace == 0 {
		pace = float64(l.route.pace) // new here: as good as the others
	}
	if idle := now.Sub(l.lastUsed); l.inFlight == 0 && idle > paceFades {
		pace /= float64(int64(1) << min(int64(idle/paceFades), 20))
	}
	return max(pace, paceFloor) * float64(l.inFlight+1)
}

// pickLocked returns the best lane with a free slot, or nil.
func (r *route) pickLocked(now time.Time, avoid map[string]bool) *lane {
	var best *lane
	var bestCost float64
	for _, l := range r.lanes {
		if l.closed || l.inFlight >= l.slots || avoid[l.worker] {
			continue
		}
		if c := l.cost(now); best == nil || c < bestCost {
			best, bestCost = l, c
		}
	}
	return best
}

// acquire returns a lane with a slot taken, waiting for one if the wait is
// likely to be short enough. Workers in avoid are not used.
func (r *route) acquire(ctx context.Context, avoid map[string]bool) (*lane, error) {
	now := time.Now()
	r.mu.Lock()
	if r.waiting.Len() == 0 || len(avoid) > 0 {
		if l := r.pickLocked(now, avoid); l != nil {
			l.inFlight++
			l.lastUsed = now
			r.mu.Unlock()
			return l, nil
		}
	}
	if err := r.mayWaitLocked(avoid); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	w := &waiter{got: make(chan *lane, 1), avoid: avoid}
	e := r.waiting.PushBack(w)
	wait, open := r.limits.MaxWait, r.hasOpenLocked(avoid)
	if !open {
		wait = min(wait, r.limits.WorkerWait)
	}
	r.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case l := <-w.got:
		return l, nil
	case <-ctx.Done():
		return r.stopWaiting(w, e, schema.Errorf(schema.KindCanceled, "The call was cancelled while it waited for a worker; it did not start."))
	case <-timer.C:
		if !open {
			return r.stopWaiting(w, e, errNoWorker)
		}
		return r.stopWaiting(w, e, r.fullError(wait))
	}
}

// anybody returns a lane of its own for a call that goes to whoever hears it.
func (r *route) anybody() *lane {
	return &lane{route: &route{server: r.server, limits: r.limits}, worker: anyWorker, inFlight: 1, slots: 1}
}

// stopWaiting takes the waiter out of the queue. A slot that was given in the
// same moment is used rather than given back.
func (r *route) stopWaiting(w *waiter, e *list.Element, err error) (*lane, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case l := <-w.got:
		return l, nil
	default:
	}
	r.waiting.Remove(e)
	return nil, err
}

func (r *route) hasOpenLocked(avoid map[string]bool) bool {
	for _, l := range r.lanes {
		if !l.closed && !avoid[l.worker] {
			return true
		}
	}
	return false
}

// mayWaitLocked refuses a wait that would end in a refusal anyway.
func (r *route) mayWaitLocked(avoid map[string]bool) error {
	if !r.hasOpenLocked(avoid) && len(avoid) > 0 {
		return errNoOther
	}
	if r.waiting.Len() >= r.limits.MaxQueue {
		return r.fullErrorLocked(0)
	}
	if wait := r.expectedWaitLocked(); wait > r.limits.MaxWait {
		return r.fullErrorLocked(wait)
	}
	return nil
}

// expectedWaitLocked guesses how long a call that comes now waits for a slot.
func (r *route) expectedWaitLocked() time.Duration {
	slots := 0
	for _, l := range r.lanes {
		if !l.closed {
			slots += l.slots
		}
	}
	if slots == 0 {
		return 0
	}
	return time.Duration(float64(r.pace) * float64(r.waiting.Len()) / float64(slots))
}

func (r *route) fullError(waited time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fullErrorLocked(waited)
}

func (r *route) fullErrorLocked(wait time.Duration) error {
	e := schema.Errorf(schema.KindUnavailable, "All slots for server %q are taken and %d calls wait already; the call did not start. Come back later, or add workers or sessions.", r.server, r.waiting.Len())
	if !r.hasOpenLocked(nil) {
		e = schema.Errorf(schema.KindUnavailable, "No live worker offers server %q at the moment; the call did not start. Come back later, or look at GET /workers.", r.server)
	}
	e.Retryable = true
	e.RetryAfter = max(time.Second, wait, r.expectedWaitLocked()).Round(time.Second)
	return e
}

// release gives the slot of l back and hands it to the call that waits longest.
// took, when positive, counts towards the worker's speed.
func (l *lane) release(took time.Duration) {
	r := l.route
	r.mu.Lock()
	l.inFlight--
	if took > 0 {
		l.pace.add(took)
		r.pace.add(took)
	}
	r.giveLocked()
	r.mu.Unlock()
}

// giveLocked gives free slots to waiting calls, first come, first served.
func (r *route) giveLocked() {
	if r.waiting.Len() == 0 {
		return
	}
	now := time.Now()
	for e := r.waiting.Front(); e != nil; {
		next := e.Next()
		w := e.Value.(*waiter)
		l := r.pickLocked(now, w.avoid)
		if l == nil && len(w.avoid) == 0 {
			return
		}
		if l != nil {
			l.inFlight++
			l.lastUsed = now
			r.waiting.Remove(e)
			w.got <- l
		}
		e = next
	}
}

// set makes or changes the lane of a worker.
func (r *route) set(worker string, slots int, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = true
	for _, l := range r.lanes {
		if l.worker == worker {
			l.slots, l.closed = slots, !open
			r.giveLocked()
			return
		}
	}
	if open {
		r.lanes = append(r.lanes, &lane{route: r, worker: worker, slots: slots})
		r.giveLocked()
	}
}

// closeLane takes no more calls to the worker until it announces itself again.
func (r *route) closeLane(worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		if l.worker == worker {
			l.closed = true
		}
	}
}

// drop forgets the worker. Calls that are under way there keep their lane.
func (r *route) drop(worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range r.lanes {
		if l.worker == worker {
			l.closed = true
			r.lanes = append(r.lanes[:i:i], r.lanes[i+1:]...)
			return
		}
	}
}

// Load is what waits and runs for one server, as this router sees it.
type Load struct {
	Waiting, InFlight, Slots int
}

func (r *route) load() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	load := Load{Waiting: r.waiting.Len()}
	for _, l := range r.lanes {
		load.InFlight += l.inFlight
		if !l.closed {
			load.Slots += l.slots
		}
	}
	return load
}
