package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// route is everything the router knows about one server: the workers that have
// it, and the calls that wait for a slot.
type route struct {
	server schema.ServerID
	limits *Options

	mu      sync.Mutex
	lanes   []*lane
	waiting queue
	todo    todo
	pace    average // time for one call, over all workers

	unready string // see anybody; never changed
}

// lane is one worker's slots for one server. Its fields are guarded by the
// route's lock.
type lane struct {
	route    *route
	worker   schema.WorkerID
	host     atomic.Pointer[worker] // nil: not known; read without the route's lock
	slots    int                    // this router's share
	inFlight int
	bulk     int   // those of them that are bulk calls
	ahead    ahead // asynchronous calls that are to go here and have no slot
	pace     average
	limit    callLimit
	lastUsed time.Time
	closed   bool // draining, failed or gone: nothing new
	internal bool // of a request of the fabric's own
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
	cost := max(pace, paceFloor) * float64(l.inFlight+l.ahead.n+1)
	if host := l.host.Load(); host != nil {
		// What the worker does for other servers: with many of them, each with few
		// calls, it is most of the work.
		cost += paceFloor * float64(host.owed.get())
	}
	return cost
}

// reserved is the number of slots that bulk calls leave free, so that a call that somebody
// waits for finds one.
func reserved(slots int) int {
	if slots <= 1 {
		return 0
	}
	return max(1, slots/16)
}

// hasSpace says whether the lane takes one more call of the kind.
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

// anybody returns a lane of its own for a call that goes to whoever hears it. unready says why
// no known worker takes it, "" if that is not known.
func (r *route) anybody(unready string) *lane {
	return &lane{route: &route{server: r.server, limits: r.limits, unready: unready}, worker: anyWorker, inFlight: 1, bulk: 1, slots: 1}
}

// release gives the slot of l back and hands it to the call whose turn it is.
// took, when positive, counts towards the worker's speed.
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

// set makes or changes the lane of a worker; host is what the router keeps about
// the worker, or nil. Who calls it calls settle afterwards.
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

// settle does what set and drop decided.
func (r *route) settle() {
	r.mu.Lock()
	r.unlock()
}

// closeLane takes no more calls to the worker until it announces itself again.
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

// drop forgets the worker. Calls that are under way there keep their lane. Who calls
// it calls settle afterwards.
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

// Load is what waits and runs for one server, as this router sees it.
type Load struct {
	Waiting, InFlight, Slots int
	// Bulk is the number of bulk calls among those that wait.
	Bulk int
	// Oldest is how long the first of the calls has waited that somebody waits for.
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
