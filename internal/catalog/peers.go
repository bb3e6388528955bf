package catalog

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// peers are the live front doors and approvers, this front door included. It is safe for
// concurrent use.
type peers struct {
	id   string
	said atomic.Pointer[func() []schema.InForce] // the configuration in force here; nil: not known

	mu        sync.RWMutex
	routers   map[string]peer
	approvers map[string]peer
}

// peer is the last announcement of a process.
type peer struct {
	inForce []schema.InForce
	seen    time.Time
}

func newPeers(id string) *peers {
	return &peers{id: id, routers: make(map[string]peer), approvers: make(map[string]peer)}
}

// own is what is in force here and concerns front doors: in a process that is a worker as
// well, the worker announces its servers.
func (p *peers) own() []schema.InForce {
	f := p.said.Load()
	if f == nil {
		return nil
	}
	return slices.DeleteFunc((*f)(), func(in schema.InForce) bool { return in.Part == schema.PartServers })
}

// sawRouter takes in an announcement of a front door and returns the number of them.
func (p *peers) sawRouter(id string, inForce []schema.InForce) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routers[id] = peer{inForce, time.Now()}
	return len(p.routers)
}

func (p *peers) sawApprover(id string, inForce []schema.InForce) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.approvers[id] = peer{inForce, time.Now()}
}

// expire drops processes that fell silent and returns the number of front doors. While our
// own connection is down, no approver is dropped.
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

// count is the number of front doors.
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
	all := []Process{{p.id, RoleFrontDoor, p.own()}}
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(p.routers)) {
		if id != p.id {
			all = append(all, Process{id, RoleFrontDoor, p.routers[id].inForce})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.approvers)) {
		all = append(all, Process{id, RoleApprover, p.approvers[id].inForce})
	}
	return all
}
