package risk

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Requirement is the part of an approval rule that defines the permitted approvers and the
// number of approvals. It does not include the time for which the call is held. Create it with
// [Approval.Requirement], which returns it in canonical form.
type Requirement struct {
	By string `json:"by"`
	// Groups are asked first, and EscalateTo if there is no answer. Both are sorted and have no
	// duplicates.
	Groups     []string `json:"groups,omitempty"`
	EscalateTo []string `json:"escalate_to,omitempty"`
	Needed     int      `json:"needed"`
	FreshLogin bool     `json:"fresh_login,omitempty"`
	Reasons    bool     `json:"reason_required,omitempty"`
	SlackLevel int      `json:"slack_level,omitempty"`
}

// Requirement returns the requirement of the rule. Rules that require the same have equal
// requirements, regardless of the order of their groups. A nil rule requires nothing.
func (a *Approval) Requirement() Requirement {
	if a == nil {
		return Requirement{}
	}
	if a.By == ByCaller {
		return Requirement{By: ByCaller, Needed: 1}
	}
	return Requirement{
		By: ByGroups, Groups: set(a.Groups), EscalateTo: set(a.EscalateTo), Needed: max(a.Needed, 1),
		FreshLogin: a.FreshLogin, Reasons: a.Reasons, SlackLevel: a.SlackLevel,
	}
}

// EscalatesAt returns the time when the groups in EscalateTo are asked about a call that is held
// from since until expires and is still undecided. It is zero if the rule has no such groups.
func (a *Approval) EscalatesAt(since, expires time.Time) time.Time {
	switch {
	case a.By != ByGroups || len(a.EscalateTo) == 0:
		return time.Time{}
	case a.EscalateAfter > 0:
		return since.Add(a.EscalateAfter)
	}
	return since.Add(expires.Sub(since) / 2)
}

// set returns names sorted and without duplicates, or nil if there are none.
func set(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Covers reports whether approvals that satisfy r also satisfy need: by people whom need also
// permits, at least as many, and under conditions at least as strict. An approval by groups
// covers a confirmation by the caller, but not the reverse. Every Requirement covers the zero
// Requirement, which covers only itself.
func (r Requirement) Covers(need Requirement) bool {
	switch {
	case need.By == "":
		return true
	case r.By == "":
		return false
	case need.By == ByCaller:
		return true
	case r.By != ByGroups:
		return false
	}
	later := append(slices.Clip(need.Groups), need.EscalateTo...)
	return within(r.Groups, need.Groups) && within(r.EscalateTo, later) && r.Needed >= need.Needed &&
		(r.FreshLogin || !need.FreshLogin) && (r.Reasons || !need.Reasons) && r.SlackLevel <= need.SlackLevel
}

func within(names, of []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(of, name) })
}

// Digest returns "sha256:" and the hex SHA-256 of the requirement's JSON form.
func (r Requirement) Digest() string { return schema.Digest(r.encoded()) }

func (r Requirement) encoded() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil // cannot fail: the fields are strings, numbers and booleans
	}
	return text
}

// maxRequirement is the maximum size, in bytes, of a requirement that is written in full. A
// warrant with it must fit into the head of a frame.
const maxRequirement = 2 << 10

// String returns the JSON form, or the digest if the JSON form is longer than 2 KiB.
// [MeetsRequirement] accepts both.
func (r Requirement) String() string {
	if text := r.encoded(); len(text) <= maxRequirement {
		return string(text)
	}
	return r.Digest()
}

// MeetsRequirement reports whether approvals that satisfied the requirement met, in the form of
// [Requirement.String], also satisfy need. A text in another form meets nothing, and a digest
// meets only the identical requirement.
func MeetsRequirement(met string, need Requirement) bool {
	if met == need.Digest() {
		return true
	}
	var r Requirement
	if json.Unmarshal([]byte(met), &r) != nil || !bytes.Equal(r.encoded(), []byte(met)) {
		return false
	}
	return r.Covers(need)
}
