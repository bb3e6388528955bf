package catalog

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// peers holds the live front doors and approvers, this front door included. It is safe for
// concurrent use.
type peers struct {
	id           string
	announcement atomic.Pointer[func() schema.FrontDoor] // returns the announcement of this front door; if nil, only the id is announced

	mu        sync.RWMutex
	routers   map[string]peer
	approvers map[string]peer
	// lost holds the time at which each front door that fell silent was last heard, for lostFor. since
	// is the time from which on front doors are heard.
	lost  map[string]time.Time
	since time.Time
}

const (
	// lostFor is longer than the grace period of any caller of [RouterMayLive].
	lostFor = time.Minute
	// deafAfter is the silence after which the own announcements should have arrived. It is shorter than
	// the silence after which others count as lost.
	deafAfter = 2 * bus.AnnounceEvery
)

// peer is the last announcement of a process.
type peer struct {
	door    *schema.FrontDoor // nil for an approver
	inForce []schema.InForce  // of an approver
	signer  string            // of an approver
	seen    time.Time
}

func newPeers(id string) *peers {
	return &peers{id: id, routers: make(map[string]peer), approvers: make(map[string]peer), lost: make(map[string]time.Time), since: time.Now()}
}

// own returns the announcement of this front door. It leaves out the servers: in a process that is
// also a worker, the worker announces them.
func (p *peers) own() *schema.FrontDoor {
	var d schema.FrontDoor
	if f := p.announcement.Load(); f != nil {
		d = (*f)()
	}
	d.ID = p.id
	d.InForce = slices.DeleteFunc(d.InForce, func(in schema.InForce) bool { return in.Part == schema.PartServers })
	return &d
}

// sawRouter processes the announcement of a front door and returns the number of front doors.
func (p *peers) sawRouter(d *schema.FrontDoor) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routers[d.ID] = peer{door: d, seen: time.Now()}
	delete(p.lost, d.ID)
	return len(p.routers)
}

func (p *peers) sawApprover(id string, inForce []schema.InForce, signer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.approvers[id] = peer{inForce: inForce, signer: signer, seen: time.Now()}
}

// expire drops silent processes and returns the number of front doors. While nobody can be heard, the time
// does not count.
func (p *peers) expire(now time.Time, deaf bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if deaf {
		p.hearLocked(now)
	}
	for id, r := range p.routers {
		if now.Sub(r.seen) > silentFor && id != p.id {
			delete(p.routers, id)
			p.lost[id] = r.seen
		}
	}
	for id, a := range p.approvers {
		if now.Sub(a.seen) > silentFor {
			delete(p.approvers, id)
		}
	}
	maps.DeleteFunc(p.lost, func(_ string, seen time.Time) bool { return now.Sub(seen) > lostFor })
	return len(p.routers)
}

// deaf reports whether even the announcements of this front door do not arrive here, so that nobody can be
// heard: NATS is frozen, or was and still delivers older messages.
func (p *peers) deaf(now time.Time) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	own, ok := p.routers[p.id]
	return ok && now.Sub(own.seen) > deafAfter
}

// hearLocked lets the silence of all other processes begin now.
func (p *peers) hearLocked(now time.Time) {
	p.since = now
	for id, r := range p.routers {
		if id != p.id {
			r.seen = now
			p.routers[id] = r
		}
	}
	for id, a := range p.approvers {
		a.seen = now
		p.approvers[id] = a
	}
	for id := range p.lost {
		p.lost[id] = now
	}
}

// count returns the number of front doors.
func (p *peers) count() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return max(len(p.routers), 1)
}

func (p *peers) routerAlive(id string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.routers[id]
	return ok || id == p.id
}

// routerMayLive reports whether a front door is alive, or may be: it was heard within the grace period, or
// could not be heard for that long.
func (p *peers) routerMayLive(id string, grace time.Duration) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, ok := p.routers[id]; ok || id == p.id {
		return true
	}
	last, ok := p.lost[id]
	if !ok {
		last = p.since
	}
	return time.Since(last) <= max(grace, silentFor)
}

// processes returns the front doors, this one first, and the approvers.
func (p *peers) processes() []Process {
	own := p.own()
	door := func(id string, d *schema.FrontDoor) Process {
		return Process{ID: id, Role: RoleFrontDoor, InForce: d.InForce, Door: d, Signer: d.Signer}
	}
	all := []Process{door(p.id, own)}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(p.routers)) {
		if id != p.id {
			all = append(all, door(id, p.routers[id].door))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.approvers)) {
		all = append(all, Process{ID: id, Role: RoleApprover, InForce: p.approvers[id].inForce, Signer: p.approvers[id].signer})
	}
	return all
}
