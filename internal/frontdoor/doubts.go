package frontdoor

import (
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/risk"
)

// doubtsAfter is the time that the fleet has to settle before the policy is checked against its
// tools.
const doubtsAfter = 3 * time.Second

// doubt logs, once each, the servers in the policy that no worker has, and the tools in the policy
// that their servers do not have.
func (d *FrontDoor) doubt() {
	if d.o.Policy == nil {
		return
	}
	changes, cancel := d.catalog.Changes()
	defer cancel()
	said := make(map[string]bool)
	for {
		select {
		case <-d.stopped:
			return
		case <-time.After(doubtsAfter):
		}
		policy, known := d.o.Policy.Current(), risk.Known{Tools: d.toolNames()}
		for server := range known.Tools {
			known.Servers = append(known.Servers, server)
		}
		slices.Sort(known.Servers)
		without := policy.Check(risk.Known{}) // already logged at startup
		for _, doubt := range policy.Check(known) {
			if !said[doubt] && !slices.Contains(without, doubt) {
				said[doubt] = true
				d.o.Log.Warn("the policy has a probable mistake", "policy", doubt)
			}
		}
		select {
		case <-d.stopped:
			return
		case <-changes:
		}
	}
}

// toolNames returns the tools of each server whose tools are known.
func (d *FrontDoor) toolNames() map[string][]string {
	known := make(map[string][]string)
	for _, s := range d.catalog.Servers() {
		tools, err := d.catalog.Tools(s.ID)
		if err != nil {
			continue
		}
		names := make([]string, 0, len(tools))
		for _, t := range tools {
			names = append(names, t.Name)
		}
		known[string(s.ID)] = names
	}
	return known
}
