package catalog

import (
	"slices"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// trustsNone is the version of a worker that trusts no key, in a [Disagreement] about the keys of warrants.
const trustsNone = "none"

// untrusted returns the disagreements about the keys of warrants: the keys with which processes sign,
// and the workers that do not trust such a key. Workers refuse the calls that are signed with a key that
// they do not trust. A worker that trusts no key at all may run only calls that need no approval, so it
// disagrees only if no other worker trusts the key either.
func untrusted(processes []Process) (all []Disagreement) {
	for _, kind := range [...]struct {
		part, role string
		keys       func(*schema.WarrantKeys) []string
	}{
		{schema.PartPeopleKeys, RoleApprover, func(k *schema.WarrantKeys) []string { return k.People }},
		{schema.PartCallerKeys, RoleFrontDoor, func(k *schema.WarrantKeys) []string { return k.Caller }},
	} {
		versions := make(map[string][]string)
		note := func(version, process string) {
			if !slices.Contains(versions[version], process) {
				versions[version] = append(versions[version], process)
			}
		}
		for _, signer := range processes {
			if signer.Role != kind.role || signer.Signer == "" {
				continue
			}
			trusts := func(p Process) bool { return p.Trusts != nil && slices.Contains(kind.keys(p.Trusts), signer.Signer) }
			nobody := !slices.ContainsFunc(processes, trusts)
			for _, p := range processes {
				if p.Trusts == nil || trusts(p) {
					continue
				}
				switch keys := kind.keys(p.Trusts); {
				case len(keys) > 0:
					note(strings.Join(keys, " "), p.ID)
				case nobody:
					note(trustsNone, p.ID)
				default:
					continue
				}
				note(signer.Signer, signer.ID)
			}
		}
		if len(versions) > 0 {
			all = append(all, Disagreement{Part: kind.part, Versions: versions})
		}
	}
	return all
}
