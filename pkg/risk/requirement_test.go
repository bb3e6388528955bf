package risk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/risk"
)

func TestRequirementCoversWeakerOnes(t *testing.T) {
	groups := func(change func(a *risk.Approval)) *risk.Approval {
		a := &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1}
		if change != nil {
			change(a)
		}
		return a
	}
	ops, caller := groups(nil), &risk.Approval{By: risk.ByCaller, Needed: 1}
	two := groups(func(a *risk.Approval) { a.Needed = 2 })
	finance := groups(func(a *risk.Approval) { a.Groups = []string{"finance"} })
	both := groups(func(a *risk.Approval) { a.Groups = []string{"finance", "ops"} })
	later := groups(func(a *risk.Approval) { a.Groups, a.EscalateTo = []string{"finance"}, []string{"ops"} })
	escalated := groups(func(a *risk.Approval) { a.Groups, a.EscalateTo = nil, []string{"ops"} })
	fresh := groups(func(a *risk.Approval) { a.FreshLogin = true })
	reasons := groups(func(a *risk.Approval) { a.Reasons = true })
	slack := groups(func(a *risk.Approval) { a.SlackLevel = 2 })
	for _, c := range []struct {
		name     string
		met      *risk.Approval
		need     *risk.Approval
		covers   bool
		opposite bool
	}{
		{"nothing is needed", ops, nil, true, false},
		{"the caller", ops, caller, true, false},
		{"two of the same", two, ops, true, false},
		{"another group", ops, finance, false, false},
		{"one group of two", ops, both, true, false},
		{"a group that is asked later only", ops, later, false, false},
		{"who was asked later, where it is asked later", escalated, later, true, false},
		{"who was asked later, where it is asked at once", escalated, ops, true, false},
		{"a fresh sign-in", fresh, ops, true, false},
		{"a reason", reasons, ops, true, false},
		{"not in Slack", ops, slack, true, false},
		{"a longer hold", groups(func(a *risk.Approval) { a.Expires = 5 }), ops, true, true},
		{"the same groups, written differently", groups(func(a *risk.Approval) { a.Groups = []string{"ops", "finance", "ops"} }), both, true, true},
	} {
		met, need := c.met.Requirement(), c.need.Requirement()
		if met.Covers(need) != c.covers || need.Covers(met) != c.opposite {
			t.Errorf("%s: covers %v, the other way round %v", c.name, met.Covers(need), need.Covers(met))
		}
		if c.met != nil && risk.MeetsRequirement(met.String(), need) != c.covers {
			t.Errorf("%s, as text: %v", c.name, !c.covers)
		}
		if c.covers && c.opposite != (met.Digest() == need.Digest()) {
			t.Errorf("%s: digests %s and %s", c.name, met.Digest(), need.Digest())
		}
	}
}

func TestMalformedRequirementMeetsNothing(t *testing.T) {
	caller := (&risk.Approval{By: risk.ByCaller}).Requirement()
	for _, text := range []string{"", "{}", "null", `{"by":"groups"}`, ` {"by":"groups","groups":["ops"],"needed":1}`, `{"by":"groups","groups":["ops"],"needed":1,"x":1}`, "sha256:00"} {
		if risk.MeetsRequirement(text, caller) {
			t.Errorf("%s meets it", text)
		}
	}
}

func TestALongRequirementIsNamedByItsDigest(t *testing.T) {
	long := &risk.Approval{By: risk.ByGroups, Needed: 1}
	for i := range 20 {
		long.Groups = append(long.Groups, fmt.Sprint(i)+strings.Repeat("g", 200))
	}
	text := long.Requirement().String()
	if !strings.HasPrefix(text, "sha256:") || !risk.MeetsRequirement(text, long.Requirement()) {
		t.Error(text)
	}
	long.Needed = 2
	if risk.MeetsRequirement(text, long.Requirement()) {
		t.Error("it meets another")
	}
}
