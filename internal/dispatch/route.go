package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// route is the router's state of one server: the workers that offer it, and the calls that wait
// for a slot.
type route struct {
	server schema.ServerID
	limits *Options

	mu      sync.Mutex
	lanes   []*lane
	waiting queue
	todo    todo
	pace    average // duration of a call, over all workers

	unready string // see anyLane; never changed
}

// lane holds one worker's slots for one server. Its fields are protected by the route's lock.
type lane struct {
	route    *route
	worker   schema.WorkerID
	host     atomic.Pointer[worker] // nil if unknown; read without the route's lock
	slots    int                    // this router's share
	inFlight int
	bulk     int         // bulk calls among inFlight
	ahead    unsentAsync // asynchronous calls that are placed here and have no slot
	pace     average
	limit    callLimit
	lastUsed time.Time
	closed   bool // draining, failed or gone: accepts no calls
	internal bool // of an internal request
}

// average is an exponentially weighted moving average of durations.
type average float64

const (
	averageWeight = 0.2
	// paceFloor prevents a worker that answers in microseconds from getting every call while
	// the others idle.
	paceFloor = float64(50 * time.Microsecond)
	// paceFades is the half-life of the measured pace of an unused worker. Without it a worker
	// that was slow once would never be tried again.
	paceFades = 15 * time.Second
)

func (a *average) add(d time.Duration) {
	if *a == 0 {
		*a = average(d)
		return
	}
	*a += averageWeight * (average(d) - *a)
}

// cost returns the approximate duration of another call on the lane.
func (l *lane) cost(now time.Time) float64 {
	pace := float64(l.pace)
	if pace == 0 {
		pace = float64(l.route.pace) // a new worker: assume an average one
	}
	if idle := now.Sub(l.lastUsed); l.inFlight == 0 && idle > paceFades {
		pace /= float64(int64(1) << min(int64(idle/paceFades), 20))
	}
	cost := max(pace, paceFloor) * float64(l.inFlight+l.ahead.n+1)
	if host := l.host.Load(); host != nil {
		// The worker's calls for other servers. With many servers that each have few calls,
		// these are most of its work.
		cost += paceFloor * float64(host.owed.get())
	}
	return cost
}

// reserved returns the number of slots that bulk calls leave free for interactive calls.
func reserved(slots int) int {
	if slots <= 1 {
		return 0
	}
	return max(1, slots/16)
}

// hasSpace reports whether the lane accepts another call of the kind.
func (l *lane) hasSpace(now time.Time, k kind) bool {
	if l.closed || l.inFlight >= l.slots {
		return false
	}
	return k != bulk || l.bulk < l.slots-reserved(l.slots) && l.limit.allows(now, l.bulk)
}

// take takes a slot.
func (l *lane) take(now time.Time, k kind) {
	l.inFlight++
	if k == bulk {
		l.bulk++
	} else {
		l.limit.met(now, l.slots)
	}
	l.lastUsed = now
}

// pickLocked returns the best lane with a free slot for the kind, or nil.
func (r *route) pickLocked(now time.Time, avoid map[schema.WorkerID]bool, k kind) *lane {
	var best choice
	for _, l := range r.lanes {
		if l.hasSpace(now, k) && !avoid[l.worker] {
			best.show(l, now)
		}
	}
	return best.lane
}

// anyLane returns a separate lane for a call that any worker may take. unready is the reason why no
// known worker takes it, or "".
func (r *route) anyLane(unready string) *lane {
	return &lane{route: &route{server: r.server, limits: r.limits, unready: unready}, worker: anyWorker, inFlight: 1, bulk: 1, slots: 1}
}

// release frees a slot of l and gives it to the next waiting call. took, if positive, updates the
// measured pace of the worker.
func (l *lane) release(took time.Duration, k kind) {
	r := l.route
	r.mu.Lock()
	l.inFlight--
	if k == bulk {
		l.bulk--
		if took > 0 {
			l.limit.ended(time.Now(), took, l.bulk, l.slots)
		}
	}
	if took > 0 {
		l.pace.add(took)
		r.pace.add(took)
	}
	r.giveLocked()
	r.unlock()
}

// set creates or changes the lane of a worker. host is the router's record of the worker, or nil.
// The caller must call settle afterwards.
func (r *route) set(id schema.WorkerID, host *worker, slots int, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		if l.worker == id {
			l.host.Store(host)
			l.slots, l.closed = slots, !open
			if l.closed {
				r.evictLocked(l)
			}
			r.giveLocked()
			return
		}
	}
	if open {
		l := &lane{route: r, worker: id, slots: slots}
		l.host.Store(host)
		r.lanes = append(r.lanes, l)
		r.giveLocked()
	}
}

// settle does the work that set and drop decided on.
func (r *route) settle() {
	r.mu.Lock()
	r.unlock()
}

// closeLane sends no calls to the worker until its next announcement.
func (r *route) closeLane(worker schema.WorkerID) {
	r.mu.Lock()
	defer r.unlock()
	for _, l := range r.lanes {
		if l.worker == worker && !l.closed {
			l.closed = true
			r.evictLocked(l)
			if host := l.host.Load(); host != nil {
				host.stale.Store(true)
			}
		}
	}
}

// drop removes the worker. Calls in flight there keep their lane. The caller must call settle
// afterwards.
func (r *route) drop(worker schema.WorkerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range r.lanes {
		if l.worker == worker {
			l.closed = true
			r.evictLocked(l)
			r.lanes = append(r.lanes[:i:i], r.lanes[i+1:]...)
			return
		}
	}
}

// Load is the number of waiting and running calls of one server at this router.
type Load struct {
	Waiting, InFlight, Slots int
	// Bulk is the number of bulk calls among the waiting ones.
	Bulk int
	// Oldest is the time that the first interactive call has waited.
	Oldest time.Duration
}

func (r *route) load() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	load := Load{Waiting: r.waiting.len(), Bulk: r.waiting.kinds[bulk].n + r.waiting.ready}
	if since := r.waiting.oldest(); !since.IsZero() {
		load.Oldest = time.Since(since)
	}
	for _, l := range r.lanes {
		load.InFlight += l.inFlight
		if !l.closed {
			load.Slots += l.slots
		}
	}
	return load
}
