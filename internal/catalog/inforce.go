package catalog

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Announce sets what tells the other front doors which configuration is in force here.
func (c *Catalog) Announce(inForce func() []schema.InForce) { c.said.Store(&inForce) }

// own is what is in force here and concerns front doors: in a process that is a worker as
// well, the worker announces its servers.
func (c *Catalog) own() []schema.InForce {
	f := c.said.Load()
	if f == nil {
		return nil
	}
	return slices.DeleteFunc((*f)(), func(p schema.InForce) bool { return p.Part == schema.PartServers })
}

// The roles of a [Process].
const (
	RoleFrontDoor = "frontdoor"
	RoleApprover  = "approver"
	RoleWorker    = "worker"
)

// Process is a live process of the fabric and the configuration that it has in force.
type Process struct {
	ID      string
	Role    string // RoleFrontDoor, RoleApprover or RoleWorker
	InForce []schema.InForce
}

// seenApprover is what an approver said of itself, and when.
type seenApprover struct {
	inForce []schema.InForce
	seen    time.Time
}

func (c *Catalog) sawApprover(id string, inForce []schema.InForce) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.approvers[id] = seenApprover{inForce, time.Now()}
}

// expireApproversLocked drops approvers that fell silent. As for workers, nobody is
// silent while our own connection is down.
func (c *Catalog) expireApproversLocked(now time.Time) {
	down := c.conn.Ready() != nil
	for id, a := range c.approvers {
		switch {
		case down:
			a.seen = now
			c.approvers[id] = a
		case now.Sub(a.seen) > silentFor:
			delete(c.approvers, id)
		}
	}
}

// Processes returns the live front doors, approvers and workers, this front door first.
func (c *Catalog) Processes() []Process {
	all := []Process{{c.id, RoleFrontDoor, c.own()}}
	c.mu.RLock()
	for _, id := range slices.Sorted(maps.Keys(c.routers)) {
		if id != c.id {
			all = append(all, Process{id, RoleFrontDoor, c.inForce[id]})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.approvers)) {
		all = append(all, Process{id, RoleApprover, c.approvers[id].inForce})
	}
	c.mu.RUnlock()
	for _, w := range c.Workers() {
		if !w.Draining {
			all = append(all, Process{w.ID, RoleWorker, w.InForce})
		}
	}
	return all
}

// Disagreement is a part of the configuration of which processes have different versions
// in force.
type Disagreement struct {
	Part     string              // see [schema.InForce]
	Server   string              // of PartServers
	Versions map[string][]string // the ids of processes by their version
}

// Disagreements compares processes: the policy of all, the keys of each role (those of
// callers and those of people are different lists), and each server among the workers whose
// file has it. A process that says nothing of a part is left out.
func Disagreements(processes []Process) []Disagreement {
	type subject struct{ part, server, role string }
	found := make(map[subject]map[string][]string)
	note := func(s subject, version, process string) {
		if found[s] == nil {
			found[s] = make(map[string][]string)
		}
		found[s][version] = append(found[s][version], process)
	}
	for _, p := range processes {
		for _, in := range p.InForce {
			switch in.Part {
			case schema.PartServers:
				for server, version := range in.Entries {
					note(subject{part: in.Part, server: server}, version, p.ID)
				}
			case schema.PartKeys:
				note(subject{part: in.Part, role: p.Role}, in.Version, p.ID)
			default:
				note(subject{part: in.Part}, in.Version, p.ID)
			}
		}
	}
	var all []Disagreement
	for s, versions := range found {
		if len(versions) > 1 {
			all = append(all, Disagreement{s.part, s.server, versions})
		}
	}
	slices.SortFunc(all, func(a, b Disagreement) int { return strings.Compare(a.Part+" "+a.Server, b.Part+" "+b.Server) })
	return all
}
