package warrant_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/internal/warrant/warranttest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// during is a time at which the claims of these tests are valid.
var during = time.UnixMilli(1_795_000_100_000)

// trust returns the trust of a fleet: the approver vouches for people, front doors for callers.
func trust() *warrant.Trust {
	t := &warrant.Trust{}
	t.Add(public(keyOf("approver")), warrant.People)
	t.Add(public(keyOf("door")), warrant.Caller)
	return t
}

func useOf(by string) *warrant.Use {
	c, rule := claims(warrant.People), ruleOf(warrant.People)
	rule.By = by
	return &warrant.Use{
		ApprovalID: c.ApprovalID, CallID: c.CallID, Server: c.Server, Tool: c.Tool, Definition: []byte(definition), Arguments: []byte(warranttest.JSON),
		Requester: c.Requester, Owner: c.Owner, Level: 2, Rule: rule,
	}
}

func TestWarrantIsLimitedToTheTrustOfItsKey(t *testing.T) {
	all := &warrant.Trust{}
	all.Add(public(keyOf("approver")), warrant.Deciders()...)
	standing := trust()
	standing.Add(public(keyOf("door")), warrant.Standing)
	for _, c := range []struct {
		name  string
		trust *warrant.Trust
		key   string
		how   warrant.Decider
		by    string
		want  bool
	}{
		{"people said yes", trust(), "approver", warrant.People, risk.ByGroups, true},
		{"the caller said yes", trust(), "door", warrant.Caller, risk.ByCaller, true},
		{"people said yes where the caller may", trust(), "approver", warrant.People, risk.ByCaller, true},
		{"the caller said yes where people must", trust(), "door", warrant.Caller, risk.ByGroups, false},
		{"a stolen key of a front door speaks for people", trust(), "door", warrant.People, risk.ByGroups, false},
		{"the same, where the caller may", trust(), "door", warrant.People, risk.ByCaller, false},
		{"a stolen key of a front door speaks of a standing yes", trust(), "door", warrant.Standing, risk.ByGroups, false},
		{"a standing yes where the operator trusts the key for it", standing, "door", warrant.Standing, risk.ByGroups, true},
		{"that does not make it speak for people", standing, "door", warrant.People, risk.ByGroups, false},
		{"the approver speaks for callers", trust(), "approver", warrant.Caller, risk.ByCaller, false},
		{"an unknown key", trust(), "stranger", warrant.People, risk.ByGroups, false},
		{"one key for everything: people", all, "approver", warrant.People, risk.ByGroups, true},
		{"one key for everything: the caller", all, "approver", warrant.Caller, risk.ByCaller, true},
		{"one key for everything: the caller is still not people", all, "approver", warrant.Caller, risk.ByGroups, false},
		{"a rule that says nothing is taken for groups", all, "approver", warrant.Caller, "", false},
		{"nobody is trusted", nil, "approver", warrant.People, risk.ByGroups, false},
		{"nobody is trusted yet", &warrant.Trust{}, "approver", warrant.People, risk.ByGroups, false},
	} {
		got, refusal := c.trust.Admit(sign(t, keyOf(c.key), claims(c.how)), useOf(c.by), during)
		if (refusal == nil) != c.want || (got != nil) != c.want {
			t.Errorf("%s: %v", c.name, refusal)
		}
		if refusal != nil && refusal.Kind != schema.KindForbidden {
			t.Errorf("%s: %s", c.name, refusal.Kind)
		}
	}
}

func TestWarrantIsAdmittedOnlyForCoveredRequirements(t *testing.T) {
	good := sign(t, keyOf("approver"), claims(warrant.People)) // two approvals from finance
	for name, c := range map[string]struct {
		rule risk.Approval
		want bool
	}{
		"the same":              {risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 2}, true},
		"fewer people":          {risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 1}, true},
		"more groups":           {risk.Approval{By: risk.ByGroups, Groups: []string{"finance", "ops"}, Needed: 2}, true},
		"more people":           {risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 3}, false},
		"another group":         {risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: 1}, false},
		"a fresh sign-in":       {risk.Approval{By: risk.ByGroups, Groups: []string{"finance"}, Needed: 2, FreshLogin: true}, false},
		"a rule without anyone": {risk.Approval{By: risk.ByGroups, Needed: 1}, false},
	} {
		u := useOf(risk.ByGroups)
		u.Rule = &c.rule
		if _, refusal := trust().Admit(good, u, during); (refusal == nil) != c.want || refusal != nil && !strings.Contains(refusal.Detail, "does not meet the requirements") {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

func TestARefusalNamesTheFieldAndNeverAValue(t *testing.T) {
	good := sign(t, keyOf("approver"), claims(warrant.People))
	for field, change := range map[string]func(*warrant.Use){
		"approval":               func(u *warrant.Use) { u.ApprovalID = "stray" },
		"call id":                func(u *warrant.Use) { u.CallID = "stray" },
		"server":                 func(u *warrant.Use) { u.Server = "Payments" },
		"tool":                   func(u *warrant.Use) { u.Tool = "Send-é" },
		"definition of the tool": func(u *warrant.Use) { u.Definition = []byte(definition + " ") },
		"arguments":              func(u *warrant.Use) { u.Arguments = []byte(`{"amount":1}`) },
		"requester":              func(u *warrant.Use) { u.Requester = "Agent-key" },
		"owner of the requester": func(u *warrant.Use) { u.Owner = "" },
	} {
		u := useOf(risk.ByGroups)
		change(u)
		_, refusal := trust().Admit(good, u, during)
		if refusal == nil || refusal.Kind != schema.KindForbidden || !strings.Contains(refusal.Detail, "in this field: "+field+".") {
			t.Errorf("%s: %v", field, refusal)
			continue
		}
		for _, value := range []string{"payments", "send", "agent", "Ana", "stray", "amount", "sha256", "call_", "appr_", "1795"} {
			if strings.Contains(strings.ToLower(refusal.Detail), strings.ToLower(value)) {
				t.Errorf("%s: the refusal tells %q: %s", field, value, refusal.Detail)
			}
		}
	}
}

func TestARefusalTellsThatThePolicyOfTheWorkerIsStricter(t *testing.T) {
	people, caller := sign(t, keyOf("approver"), claims(warrant.People)), sign(t, keyOf("door"), claims(warrant.Caller))
	for want, c := range map[string]struct {
		trust  *warrant.Trust
		text   []byte
		change func(*warrant.Use)
	}{
		"the policy of the front door did not": {trust(), nil, func(u *warrant.Use) { u.ApprovalID = "" }},
		"and the policy of the front door":     {nil, nil, func(u *warrant.Use) { u.ApprovalID = "" }}, // keys would not help
		"a higher risk level":                  {trust(), people, func(u *warrant.Use) { u.Level = 3 }},
		"requires that other people approve":   {trust(), caller, func(*warrant.Use) {}},
		"does not meet the requirements": {trust(), people, func(u *warrant.Use) {
			u.Rule = &risk.Approval{By: risk.ByGroups, Groups: []string{"board"}, Needed: 1}
		}},
	} {
		u := useOf(risk.ByGroups)
		c.change(u)
		_, refusal := c.trust.Admit(c.text, u, during)
		if refusal == nil || refusal.Kind != schema.KindForbidden || !strings.Contains(refusal.Detail, want) || !strings.Contains(refusal.Detail, "the same policy") {
			t.Errorf("%s: %v", want, refusal)
			continue
		}
		for _, misleading := range []string{"key_file", "_keys", "for another call", "sha256:", "finance"} {
			if strings.Contains(refusal.Detail, misleading) {
				t.Errorf("%s: the refusal has %q: %s", want, misleading, refusal.Detail)
			}
		}
	}
}

func TestToolWithoutDefinitionIsRefused(t *testing.T) {
	c := claims(warrant.People)
	c.ToolDefinitionDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // digest of no bytes
	u := useOf(risk.ByGroups)
	u.Definition = nil
	if _, refusal := trust().Admit(sign(t, keyOf("approver"), c), u, during); refusal == nil {
		t.Error("a tool without a definition ran")
	}
}

func TestDeadlineAllowsForClockSkew(t *testing.T) {
	good, over := sign(t, keyOf("approver"), claims(warrant.People)), time.UnixMilli(claims(warrant.People).Deadline)
	for at, want := range map[time.Time]bool{
		during: true, over: true, over.Add(warrant.Leeway): true, over.Add(warrant.Leeway + time.Millisecond): false,
		over.Add(time.Hour): false, over.AddDate(200, 0, 0): false,
		during.Add(-time.Hour): true, // the local clock is behind
	} {
		_, refusal := trust().Admit(good, useOf(risk.ByGroups), at)
		if (refusal == nil) != want {
			t.Errorf("%s: %v", at.Sub(over), refusal)
		}
		if refusal != nil && !strings.Contains(refusal.Detail, "deadline") {
			t.Errorf("it does not say why: %s", refusal.Detail)
		}
	}
}

// mutations is the number of changed calls in each property test.
const mutations = 10_000

func TestOnlyTheUnchangedCallOfTenThousandIsAdmitted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	trust := trust()
	good := sign(t, keyOf("approver"), claims(warrant.People))
	other := claims(warrant.People)
	other.ArgumentsDigest = "sha256:" + strings.Repeat("0", 64)
	changes := []struct {
		name string
		do   func(u *warrant.Use, w []byte) ([]byte, time.Time)
	}{
		{"approval", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.ApprovalID = schema.ApprovalID(warranttest.Text(r, string(u.ApprovalID)))
			return w, during
		}},
		{"call id", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.CallID = schema.CallID(warranttest.Text(r, string(u.CallID)))
			return w, during
		}},
		{"server", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Server = schema.ServerID(warranttest.Text(r, string(u.Server)))
			return w, during
		}},
		{"tool", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Tool = warranttest.Text(r, u.Tool)
			return w, during
		}},
		{"requester", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Requester = warranttest.Text(r, u.Requester)
			return w, during
		}},
		{"owner", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Owner = warranttest.Text(r, u.Owner)
			return w, during
		}},
		{"definition", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Definition = []byte(warranttest.Text(r, string(u.Definition)))
			return w, during
		}},
		{"arguments", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Arguments = warranttest.Arguments(r, u.Arguments)
			return w, during
		}},
		{"more arguments", func(u *warrant.Use, w []byte) ([]byte, time.Time) {
			u.Arguments = warranttest.Arguments(r, u.Arguments)
			return w, during
		}},
		{"level", func(u *warrant.Use, w []byte) ([]byte, time.Time) { u.Level = 3 + r.IntN(10); return w, during }},
		{"deadline", func(_ *warrant.Use, w []byte) ([]byte, time.Time) {
			return w, during.Add(time.Hour + time.Duration(r.Int64N(int64(time.Hour))))
		}},
		{"warrant", func(_ *warrant.Use, w []byte) ([]byte, time.Time) { return warranttest.Proof(r, w), during }},
		{"more of the warrant", func(_ *warrant.Use, w []byte) ([]byte, time.Time) { return warranttest.Proof(r, w), during }},
		{"key", func(*warrant.Use, []byte) ([]byte, time.Time) {
			return sign(t, keyOf(fmt.Sprint("stranger", r.IntN(20))), claims(warrant.People)), during
		}},
		{"another key's signature", func(_ *warrant.Use, w []byte) ([]byte, time.Time) {
			theirs := sign(t, keyOf("door"), claims(warrant.People))
			return append(w[:len(w)-64:len(w)-64], theirs[len(theirs)-64:]...), during
		}},
		{"role", func(*warrant.Use, []byte) ([]byte, time.Time) {
			return sign(t, keyOf("door"), claims([]warrant.Decider{warrant.People, warrant.Standing, warrant.Caller}[r.IntN(3)])), during
		}},
		{"another warrant of the same key", func(*warrant.Use, []byte) ([]byte, time.Time) { return sign(t, keyOf("approver"), other), during }},
	}
	admitted := make(map[string]int)
	for n := range mutations {
		u := useOf(risk.ByGroups)
		change := changes[n%len(changes)]
		w, at := change.do(u, good)
		if _, refusal := trust.Admit(w, u, at); refusal == nil {
			admitted[change.name]++
		}
	}
	if len(admitted) > 0 {
		t.Errorf("changed calls were admitted: %v", admitted)
	}
	if _, refusal := trust.Admit(good, useOf(risk.ByGroups), during); refusal != nil {
		t.Errorf("the unchanged call: %v", refusal)
	}
}

// Flipping any bit of a warrant invalidates it.
func TestFlippingAnyBitInvalidatesAWarrant(t *testing.T) {
	trust, good := trust(), sign(t, keyOf("approver"), claims(warrant.People))
	for i := range len(good) * 8 {
		good[i/8] ^= 1 << (i % 8)
		if _, refusal := trust.Admit(good, useOf(risk.ByGroups), during); refusal == nil {
			t.Fatalf("bit %d does not count", i)
		}
		good[i/8] ^= 1 << (i % 8)
	}
	for n := range len(good) {
		if _, refusal := trust.Admit(good[:n], useOf(risk.ByGroups), during); refusal == nil {
			t.Fatalf("%d bytes of %d are enough", n, len(good))
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	trust, good, u := trust(), sign(b, keyOf("approver"), claims(warrant.People)), useOf(risk.ByGroups)
	b.ReportAllocs()
	for b.Loop() {
		if _, refusal := trust.Admit(good, u, during); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	signer, c := warrant.NewSigner(keyOf("approver"), warrant.People), claims(warrant.People)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signer.Sign(c); err != nil {
			b.Fatal(err)
		}
	}
}
