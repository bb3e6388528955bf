package catalog

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
}

// peer is the last announcement of a process.
type peer struct {
	inForce []schema.InForce
	door    *schema.FrontDoor // nil for an approver
	seen    time.Time
}

func newPeers(id string) *peers {
	return &peers{id: id, routers: make(map[string]peer), approvers: make(map[string]peer)}
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
	p.routers[d.ID] = peer{d.InForce, d, time.Now()}
	return len(p.routers)
}

func (p *peers) sawApprover(id string, inForce []schema.InForce) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.approvers[id] = peer{inForce: inForce, seen: time.Now()}
}

// expire drops silent processes and returns the number of front doors. While our own connection is
// down, it drops no approver.
func (p *peers) expire(now time.Time, down bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, r := range p.routers {
		if now.Sub(r.seen) > silentFor && id != p.id {
			delete(p.routers, id)
		}
	}
	for id, a := range p.approvers {
		switch {
		case down:
			a.seen = now
			p.approvers[id] = a
		case now.Sub(a.seen) > silentFor:
			delete(p.approvers, id)
		}
	}
	return len(p.routers)
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

// processes returns the front doors, this one first, and the approvers.
func (p *peers) processes() []Process {
	own := p.own()
	all := []Process{{p.id, RoleFrontDoor, own.InForce, own}}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(p.routers)) {
		if id != p.id {
			all = append(all, Process{id, RoleFrontDoor, p.routers[id].inForce, p.routers[id].door})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.approvers)) {
		all = append(all, Process{ID: id, Role: RoleApprover, InForce: p.approvers[id].inForce})
	}
	return all
}
