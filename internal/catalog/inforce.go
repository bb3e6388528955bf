package catalog

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// InFlight returns the number of calls in flight of each tenant with limits, summed over all front
// doors, as they announced it within the last second or so.
func InFlight(of []Process) map[schema.TenantID]int {
	sum := make(map[schema.TenantID]int)
	for i := range of {
		if of[i].Door == nil {
			continue
		}
		for tenant, n := range of[i].Door.Tenants {
			sum[tenant.OrDefault()] += n
		}
	}
	return sum
}

// Announce sets the function that returns the announcement of this front door to the others: its
// configuration and its load. Announce fills in the id. The function is called from several
// goroutines.
func (c *Catalog) Announce(is func() schema.FrontDoor) { c.peers.announcement.Store(&is) }

// The roles of a [Process].
const (
	RoleFrontDoor = "frontdoor"
	RoleApprover  = "approver"
	RoleWorker    = "worker"
)

// Process is a live process of the fabric with its effective configuration.
type Process struct {
	ID      string
	Role    string // RoleFrontDoor, RoleApprover or RoleWorker
	InForce []schema.InForce
	// Door is the announcement of a front door. It is nil for other roles.
	Door *schema.FrontDoor
	// Signer is the id of the key with which a front door or an approver signs warrants, schema.NoSigner
	// without a key, or "" for other roles and for older versions that do not announce it.
	Signer string
	// Trusts are the keys of warrants that a worker accepts. It is nil for other roles, and for a
	// worker that does not announce it.
	Trusts *schema.WarrantKeys
}

// Processes returns the live front doors, approvers and workers, this front door first.
func (c *Catalog) Processes() []Process {
	all := c.peers.processes()
	for _, w := range c.Workers() {
		if !w.Draining {
			all = append(all, Process{ID: string(w.ID), Role: RoleWorker, InForce: w.InForce, Trusts: w.Trusts})
		}
	}
	return all
}

// Disagreement is a part of the configuration that differs between processes.
type Disagreement struct {
	Part     string              // see [schema.InForce]; PartPeopleKeys or PartCallerKeys for warrants
	Server   schema.ServerID     // for PartServers
	Versions map[string][]string // process ids by version
}

// Disagreements compares the effective configuration of processes: the policy of all, the keys
// within each role (callers' keys and people's keys are different lists), and each server entry
// among the workers whose file has it. A process that does not report a part is ignored for that
// part. It also compares the keys with which processes sign warrants with those that workers trust.
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
			all = append(all, Disagreement{s.part, schema.ServerID(s.server), versions})
		}
	}
	all = append(all, untrusted(processes)...)
	slices.SortFunc(all, func(a, b Disagreement) int {
		return strings.Compare(a.Part+" "+string(a.Server), b.Part+" "+string(b.Server))
	})
	return all
}
