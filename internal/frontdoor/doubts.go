package frontdoor

import (
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
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
		if !sleep.For(doubtsAfter, d.stopped) {
			return
		}
		for _, doubt := range d.doubts(d.o.Policy.Current()) {
			if !said[doubt] {
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

// doubts returns the probable mistakes in a policy that depend on the servers and their tools.
func (d *FrontDoor) doubts(policy *risk.Policy) []string {
	known := risk.Known{Tools: make(map[string][]string)}
	for _, s := range d.catalog.Servers() {
		known.Servers = append(known.Servers, string(s.ID))
		tools, err := d.catalog.Tools(s.ID)
		if err != nil {
			continue // it is still starting, or does not start
		}
		names := make([]string, 0, len(tools))
		for _, t := range tools {
			names = append(names, t.Name)
		}
		known.Tools[string(s.ID)] = names
	}
	slices.Sort(known.Servers)
	without := policy.Check(risk.Known{}) // already logged at startup
	return slices.DeleteFunc(policy.Check(known), func(doubt string) bool { return slices.Contains(without, doubt) })
}
