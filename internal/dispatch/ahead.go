package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// unsentAsync holds the asynchronous calls that are placed at one lane and have no slot there yet. Their
// intents are written while earlier calls run, for many of them at once, because each write is
// synced to disk.
//
// Calls that one principal has placed do not delay others: each principal has a share of the
// places, and calls that are ready to be sent take turns by principal. It is protected by the
// lock of the route.
type unsentAsync struct {
	n     int
	by    map[schema.PrincipalID]int // only principals with placed calls
	ready class                      // those that may be sent
}

const (
	// aheadFor limits the work that is placed ahead at a busy worker to what it completes in this
	// time. If this process dies, the next one has to ask the worker about these calls.
	aheadFor = 30 * time.Millisecond
	// aheadMost is a further limit, in multiples of the slots.
	aheadMost = 6
	// runFor is the amount of work that a server is given in a row.
	runFor = 8 * time.Millisecond
	// runMost limits the number of calls that a server is given in a row.
	runMost = 64
)

func (a *unsentAsync) add(p *AsyncCall) {
	if a.by == nil {
		a.by = make(map[schema.PrincipalID]int)
	}
	a.n++
	a.by[p.Call.Principal.ID()]++
}

func (a *unsentAsync) remove(p *AsyncCall) {
	a.n--
	who := p.Call.Principal.ID()
	if a.by[who]--; a.by[who] == 0 {
		delete(a.by, who)
	}
}

// takes reports whether the principal may take another one of the places. All principals with
// placed calls have an equal share of them.
func (a *unsentAsync) takes(principal schema.PrincipalID, places int) bool {
	own, who := a.by[principal], len(a.by)
	if own == 0 {
		who++
	}
	return places > 0 && own < max(1, places/who)
}

// places returns the number of calls that may be placed at the lane in addition to calls with a
// slot.
func (l *lane) places(now time.Time) int {
	pace := l.pace
	if pace == 0 {
		return 0
	}
	slots := l.slots - reserved(l.slots)
	if c := &l.limit; c.limit > 0 && !now.After(c.until) {
		slots = min(slots, int(c.limit))
	}
	return min(aheadMost*slots, int(float64(slots)*float64(aheadFor)/float64(pace)))
}

// hasPlace reports whether another asynchronous call of the principal may be placed at the lane.
func (l *lane) hasPlace(now time.Time, principal schema.PrincipalID) bool {
	if l.closed {
		return false
	}
	bulk := l.bulk + l.ahead.n
	return l.inFlight+l.ahead.n < l.slots && bulk < l.slots-reserved(l.slots) && l.limit.allows(now, bulk) || l.ahead.takes(principal, l.places(now))
}

// placeLocked returns the best lane with a place for the principal, or nil.
func (r *route) placeLocked(now time.Time, principal schema.PrincipalID) *lane {
	var best choice
	for _, l := range r.lanes {
		if l.hasPlace(now, principal) {
			best.show(l, now)
		}
	}
	return best.lane
}

// readyLocked returns the best lane that has a free slot and an asynchronous call for it, or nil.
func (r *route) readyLocked(now time.Time) *lane {
	if r.waiting.ready == 0 {
		return nil
	}
	var best *lane
	var bestCost float64
	for _, l := range r.lanes {
		if l.ahead.ready.n == 0 || !l.hasSpace(now, bulk) {
			continue
		}
		if c := l.cost(now); best == nil || c < bestCost {
			best, bestCost = l, c
		}
	}
	return best
}

// Run returns the recommended number of bulk calls to give to a server in a row: the calls that it
// completes in a few milliseconds, so that other servers soon have their turn. It is 1 until the
// pace of the server is known.
func (r *Router) Run(server schema.ServerID) int { return r.lookup(server).run() }

func (r *route) run() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0.0
	for _, l := range r.lanes {
		if !l.closed && l.pace > 0 {
			n += float64(l.slots-reserved(l.slots)) * float64(runFor) / float64(l.pace)
		}
	}
	return int(min(max(n, 1), runMost))
}
