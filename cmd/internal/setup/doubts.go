package setup

import (
	"github.com/callyard/callyard/internal/approver"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/risk"
)

// Doubts returns what of the policy is likely a mistake: a group that nobody is
// in, a server that does not exist, a rule that can never win. here says that the
// approver runs in this process, so that nobody else can be in a group; served
// are the servers there are, nil where that is not known. A nil policy has none.
func (c *Config) Doubts(policy *risk.Holder, here bool, served []worker.Served) []string {
	if policy == nil {
		return nil
	}
	return policy.Current().Check(risk.Known{Groups: members(c.Approver, here), Servers: names(served)})
}

// members returns who is in each group, nil where that is not known.
func members(a approver.Config, here bool) map[string][]string {
	if a.OIDC.Configured() || len(a.Keys) == 0 && len(a.LocalGroups) == 0 && !here {
		return nil // the provider knows who is in a group
	}
	groups := make(map[string][]string)
	for _, group := range a.LocalGroups {
		groups[group] = append(groups[group], authn.Local)
	}
	for _, key := range a.Keys {
		person := key.Owner
		if person == "" {
			person = key.Name
		}
		for _, group := range key.Groups {
			groups[group] = append(groups[group], person)
		}
	}
	return groups
}

func names(served []worker.Served) []string {
	var ids []string
	for _, s := range served {
		ids = append(ids, s.Session.Spec.ID)
	}
	return ids
}
