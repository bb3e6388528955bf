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
// disagrees only if no other worker trusts the key either. Processes that have no key to sign with are
// a disagreement of their own, if workers trust keys of that role.
func untrusted(processes []Process) (all []Disagreement) {
	for _, kind := range [...]struct {
		part, role string
		keys       func(*schema.WarrantKeys) []string
	}{
		{schema.PartPeopleKeys, RoleApprover, func(k *schema.WarrantKeys) []string { return k.People }},
		{schema.PartCallerKeys, RoleFrontDoor, func(k *schema.WarrantKeys) []string { return k.Caller }},
	} {
		differing, unsigned := make(versions), make(versions)
		for _, signer := range processes {
			if signer.Role != kind.role || signer.Signer == "" {
				continue
			}
			found := differing
			if signer.Signer == schema.NoSigner {
				found = unsigned
			}
			trusts := func(p Process) bool { return p.Trusts != nil && slices.Contains(kind.keys(p.Trusts), signer.Signer) }
			nobody := !slices.ContainsFunc(processes, trusts)
			for _, p := range processes {
				if p.Trusts == nil || trusts(p) {
					continue
				}
				switch keys := kind.keys(p.Trusts); {
				case len(keys) > 0:
					found.note(strings.Join(keys, " "), p.ID)
				case nobody && signer.Signer != schema.NoSigner:
					found.note(trustsNone, p.ID)
				default:
					continue
				}
				found.note(signer.Signer, signer.ID)
			}
		}
		for _, v := range []versions{differing, unsigned} {
			if len(v) > 0 {
				all = append(all, Disagreement{Part: kind.part, Versions: v})
			}
		}
	}
	return all
}

// versions holds the processes of each version.
type versions map[string][]string

func (v versions) note(version, process string) {
	if !slices.Contains(v[version], process) {
		v[version] = append(v[version], process)
	}
}
