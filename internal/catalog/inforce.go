package catalog

import (
	"maps"
	"slices"
	"strings"

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
	RoleWorker    = "worker"
)

// Process is a live process of the fabric and the configuration that it has in force.
type Process struct {
	ID      string
	Role    string // RoleFrontDoor or RoleWorker
	InForce []schema.InForce
}

// Processes returns the live front doors and workers, this front door first.
func (c *Catalog) Processes() []Process {
	all := []Process{{c.id, RoleFrontDoor, c.own()}}
	c.mu.RLock()
	for _, id := range slices.Sorted(maps.Keys(c.routers)) {
		if id != c.id {
			all = append(all, Process{id, RoleFrontDoor, c.inForce[id]})
		}
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

// Disagreements compares processes: the policy of all, the keys of front doors, and each
// server among the workers whose file has it. A process that says nothing of a part is left
// out.
func Disagreements(processes []Process) []Disagreement {
	type subject struct{ part, server string }
	found := make(map[subject]map[string][]string)
	note := func(s subject, version, process string) {
		if found[s] == nil {
			found[s] = make(map[string][]string)
		}
		found[s][version] = append(found[s][version], process)
	}
	for _, p := range processes {
		for _, in := range p.InForce {
			if in.Part != schema.PartServers {
				note(subject{part: in.Part}, in.Version, p.ID)
				continue
			}
			for server, version := range in.Entries {
				note(subject{in.Part, server}, version, p.ID)
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
