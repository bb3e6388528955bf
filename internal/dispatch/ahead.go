package dispatch

import (
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// ahead is the asynchronous calls that are to go to one lane and have no slot there yet. Their
// intents are written while calls before them run, for many of them at once: each
// write is synced to disk.
//
// What one principal has placed delays no other: each has places of its own, and those
// that may leave take turns. It is guarded by the lock of the route.
type ahead struct {
	n     int
	by    map[schema.PrincipalID]int // without those that have none
	ready class                      // those that may leave
}

const (
	// aheadFor is how much work a busy worker has placed ahead: what it works off in
	// this time. Should this process die, the next has to ask the worker about them.
	aheadFor = 30 * time.Millisecond
	// aheadMost bounds it in slots.
	aheadMost = 6
	// runFor is how much work a server is given in a row.
	runFor = 8 * time.Millisecond
	// runMost is how many calls in a row a server is given at most.
	runMost = 64
)

func (a *ahead) add(p *AsyncCall) {
	if a.by == nil {
		a.by = make(map[schema.PrincipalID]int)
	}
	a.n++
	a.by[p.Call.Principal.ID()]++
}

func (a *ahead) remove(p *AsyncCall) {
	a.n--
	who := p.Call.Principal.ID()
	if a.by[who]--; a.by[who] == 0 {
		delete(a.by, who)
	}
}

// takes says whether the principal may have one more of that many places, which it
// shares with those who have some.
func (a *ahead) takes(principal schema.PrincipalID, places int) bool {
	own, who := a.by[principal], len(a.by)
	if own == 0 {
		who++
	}
	return places > 0 && own < max(1, places/who)
}

// places is how many calls may be placed at the lane in addition to those that have a slot.
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

// hasPlace says whether one more asynchronous call of the principal may be placed at the lane.
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

// Run is how many bulk calls a server does well to be given in a row: what it works off
// in a few milliseconds, so that the others soon have their turn. It is 1 while nothing
// is known of its pace.
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
