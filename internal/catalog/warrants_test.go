package catalog

import (
	"fmt"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestWorkersThatRefuseApprovedCallsAreReported(t *testing.T) {
	worker := func(id string, people ...string) Process {
		return Process{ID: id, Role: RoleWorker, Trusts: &schema.WarrantKeys{People: people, Caller: []string{"door"}}}
	}
	approver, door := Process{ID: "a", Role: RoleApprover, Signer: "new"}, Process{ID: "f", Role: RoleFrontDoor, Signer: "door"}
	keyless := Process{ID: "b", Role: RoleApprover, Signer: schema.NoSigner}
	old := Process{ID: "old", Role: RoleWorker} // does not announce its keys
	for name, c := range map[string]struct {
		processes []Process
		want      string
	}{
		"all trust it":                      {[]Process{door, approver, worker("w1", "new"), worker("w2", "old", "new")}, "[]"},
		"nobody trusts any":                 {[]Process{door, approver, worker("w1")}, "[{people_keys  map[new:[a] none:[w1]]}]"},
		"one trusts only another":           {[]Process{door, approver, worker("w1", "new"), worker("w2", "old")}, "[{people_keys  map[new:[a] old:[w2]]}]"},
		"one runs no calls with approvals":  {[]Process{door, approver, worker("w1", "new"), worker("w2")}, "[]"},
		"an older approver":                 {[]Process{door, {ID: "a", Role: RoleApprover}, worker("w1", "new")}, "[]"},
		"an approver without a key":         {[]Process{door, keyless, worker("w1", "new"), worker("w2")}, "[{people_keys  map[new:[w1] none:[b]]}]"},
		"one of two has no key":             {[]Process{door, approver, keyless, worker("w1", "new"), worker("w2", "old")}, "[{people_keys  map[new:[a] old:[w2]]} {people_keys  map[new:[w1] none:[b] old:[w2]]}]"},
		"no keys at all":                    {[]Process{door, keyless, worker("w1")}, "[]"},
		"older workers":                     {[]Process{door, approver, old}, "[]"},
		"the key of the other role":         {[]Process{{ID: "f", Role: RoleFrontDoor, Signer: "new"}, worker("w1", "new")}, "[{caller_keys  map[door:[w1] new:[f]]}]"},
		"two approvers with different keys": {[]Process{approver, {ID: "b", Role: RoleApprover, Signer: "old"}, worker("w1", "old")}, "[{people_keys  map[new:[a] old:[w1]]}]"},
	} {
		if got := fmt.Sprint(Disagreements(c.processes)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
