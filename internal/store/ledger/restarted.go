package ledger

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Restart records that the approval started again under another rule, and the previous rule. Restarts are
// appended and never changed.
type Restart struct {
	At time.Time `json:"at"`
	// Reason explains the restart, in a sentence for people.
	Reason string `json:"reason"`
	// By is the person whose edit changed the requirement, or empty if the policy changed it.
	By    string `json:"by,omitempty"`
	Owner string `json:"owner,omitempty"`
	// From is the index of the first decision that counts under the new rule. Earlier approvals
	// are void.
	From int `json:"from"`
	// Level and PolicyVersion are those of the new assessment.
	Level         int    `json:"level"`
	PolicyVersion string `json:"policy_version"`
	// Rule and Reasons are the previous ones.
	Rule    json.RawMessage `json:"previous_rule,omitempty"`
	Reasons []string        `json:"previous_reasons,omitempty"`
}

// Restart makes the approval pending again under the rule, with the policy's reasons for it, until expires.
// The caller sets At, Reason, By, Owner, From, Level and PolicyVersion of r.
func (a *Approval) Restart(r Restart, rule json.RawMessage, reasons []string, expires time.Time) {
	r.Rule, r.Reasons = a.Rule, a.Reasons
	a.Restarts = append(slices.Clip(a.Restarts), r)
	a.State, a.Rule, a.Reasons, a.Expires = Pending, rule, reasons, expires
	a.Escalated, a.Warrant = time.Time{}, nil
}

// Counting returns the decisions since the last restart, which are those that count.
func (a *Approval) Counting() []Decision {
	if r := a.restarted(); r != nil {
		return a.Decisions[min(r.From, len(a.Decisions)):]
	}
	return a.Decisions
}

// Since returns the time of the request, or of the last restart.
func (a *Approval) Since() time.Time {
	if r := a.restarted(); r != nil {
		return r.At
	}
	return a.Created
}

// FirstReasons returns the original reasons for holding the call.
func (a *Approval) FirstReasons() []string {
	if len(a.Restarts) > 0 {
		return a.Restarts[0].Reasons
	}
	return a.Reasons
}

func (a *Approval) restarted() *Restart {
	if len(a.Restarts) == 0 {
		return nil
	}
	return &a.Restarts[len(a.Restarts)-1]
}

// restarts reports whether the change from was to is exactly one restart, possibly with an approval in
// the same step.
func restarts(was, is *Approval) bool {
	n := len(was.Restarts)
	if len(is.Restarts) != n+1 || !slices.EqualFunc(was.Restarts, is.Restarts[:n], sameRestart) {
		return false
	}
	r := is.restarted()
	open := func(s State) bool { return s == Pending || s == Approved }
	return open(was.State) && open(is.State) && was.Permission == "" &&
		r.From >= len(was.Decisions) && r.From <= len(is.Decisions) &&
		r.Level >= was.Bound().Level && reflect.DeepEqual(r.Rule, was.Rule) && slices.Equal(r.Reasons, was.Reasons)
}

func sameRestart(a, b Restart) bool {
	return a.At.Equal(b.At) && a.Reason == b.Reason && a.By == b.By && a.Owner == b.Owner && a.From == b.From && a.Level == b.Level &&
		a.PolicyVersion == b.PolicyVersion && string(a.Rule) == string(b.Rule) && slices.Equal(a.Reasons, b.Reasons)
}
