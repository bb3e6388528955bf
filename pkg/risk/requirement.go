package risk

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Requirement is the part of an approval rule that says whose approvals count and the
// number that is needed. How long the call is held is not part of it. Make it with
// [Approval.Requirement], which brings it into its one form.
type Requirement struct {
	By string `json:"by"`
	// Groups are asked from the beginning, EscalateTo when nobody answers; both are
	// sorted and name a group once.
	Groups     []string `json:"groups,omitempty"`
	EscalateTo []string `json:"escalate_to,omitempty"`
	Needed     int      `json:"needed"`
	FreshLogin bool     `json:"fresh_login,omitempty"`
	Reasons    bool     `json:"reason_required,omitempty"`
	SlackLevel int      `json:"slack_level,omitempty"`
}

// Requirement returns what the rule requires. Two rules that require the same have
// equal requirements, in whatever order they name groups. A nil rule requires nothing.
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

// EscalatesAt returns when more groups are asked about a call that is held from since
// until expires and that nobody has decided; zero where the rule names no such groups.
func (a *Approval) EscalatesAt(since, expires time.Time) time.Time {
	switch {
	case a.By != ByGroups || len(a.EscalateTo) == 0:
		return time.Time{}
	case a.EscalateAfter > 0:
		return since.Add(a.EscalateAfter)
	}
	return since.Add(expires.Sub(since) / 2)
}

func set(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// Covers says that approvals which satisfy r satisfy need as well: they are of
// people whom need asks too, of as many, and given under conditions at least as
// strict. What people approved covers what the caller itself may confirm, never the
// other way round. The zero Requirement is covered by all, and covers only itself.
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
		return nil // texts, numbers and truth values of our own
	}
	return text
}

// maxRequirement is the longest requirement, in bytes, that is written in full: a
// warrant with it must fit into the head of a frame.
const maxRequirement = 2 << 10

// String returns the JSON form, or the digest where that is longer than 2 KiB;
// [MeetsRequirement] reads both.
func (r Requirement) String() string {
	if text := r.encoded(); len(text) <= maxRequirement {
		return string(text)
	}
	return r.Digest()
}

// MeetsRequirement says whether approvals that satisfied the requirement met, as
// [Requirement.String] writes it, satisfy need too. A text that is not in that form
// meets nothing; a digest meets the very same requirement only.
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
