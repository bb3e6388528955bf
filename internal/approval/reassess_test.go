package approval_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// testLedger is a ledger with an approver, a front door and a worker. Each uses the current policy unless
// the test says otherwise.
type testLedger struct {
	*fixture
	approver, door *approval.Desk
	policy         *risk.Policy
	trust          *warrant.Trust
	fresh          map[schema.ApprovalID][]bool // by approval: whether each decision came from a fresh sign-in
}

// openTestLedger returns a ledger. If blind is true, the approver has no policy.
func openTestLedger(t *testing.T, blind bool) *testLedger {
	t.Helper()
	b := &testLedger{fixture: open(t, bustest.Start(t), nil), trust: &warrant.Trust{}, fresh: map[schema.ApprovalID][]bool{}}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.trust.Add(key.Public().(ed25519.PublicKey), warrant.Deciders()...)
	o := approval.Options{Ledger: b.ledger, Now: b.clock.now, Log: quiet, Sign: approval.Signing(warrant.NewSigner(key, warrant.Deciders()...)), Assess: b.assess}
	b.door = approval.New(o)
	if blind {
		o.Assess = nil
	}
	b.approver = approval.New(o)
	return b
}

func (b *testLedger) assess(_ context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
	return b.assessment(args, approval.Requester(a)), nil
}

func (b *testLedger) assessment(args []byte, who schema.Principal) risk.Assessment {
	return b.policy.Assess(&risk.Input{Server: "bank", Tool: "pay", ServerRisk: risk.Medium, Definition: json.RawMessage(definition), Arguments: args, Principal: who})
}

func (b *testLedger) adopt(source string) {
	b.t.Helper()
	p, err := risk.Parse([]byte(source), "policy.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	b.policy = p
}

func pays(amount int) []byte { return fmt.Appendf(nil, `{"amount":%d}`, amount) }

// ask holds a payment. It returns nil if the policy lets it run or denies it.
func (b *testLedger) ask(amount int) *ledger.Approval {
	b.t.Helper()
	call := asked(agent, string(pays(amount)))
	now := b.assessment(call.Arguments, agent)
	if now.Approval == nil || now.Deny {
		return nil
	}
	h, err := b.door.Open(b.t.Context(), call, json.RawMessage(definition), &now, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return h.Approval
}

// answer makes a person approve the shown arguments, or edit the amount.
func (b *testLedger) answer(id schema.ApprovalID, who schema.Principal, fresh bool, amount ...int) (*ledger.Approval, error) {
	b.t.Helper()
	a, err := b.ledger.Current(b.t.Context(), schema.AllTenants(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	bound := a.Bound()
	answer := approval.Answer{Kind: ledger.Approve, Digest: bound.ArgumentsDigest, Fresh: fresh}
	if len(amount) > 0 {
		answer.Kind, answer.Arguments = ledger.Edit, pays(amount[0])
	}
	if a, err = b.approver.Decide(b.t.Context(), id, answer, who, "web"); err == nil {
		b.fresh[id] = append(b.fresh[id], fresh)
	}
	return a, err
}

// satisfied is the oracle of these tests. It counts the people who approved the final arguments, and
// does not use rules, requirements and restarts.
func (b *testLedger) satisfied(a *ledger.Approval) string {
	b.t.Helper()
	args, err := b.ledger.ArgumentsOf(b.t.Context(), a)
	if err != nil {
		b.t.Fatal(err)
	}
	now := b.assessment(args, agent)
	if now.Approval == nil && !now.Deny {
		return ""
	}
	people := map[string]bool{}
	for i, dec := range a.Decisions {
		if dec.Kind == ledger.Edit {
			clear(people) // earlier approvals were for other arguments
		}
		in := slices.ContainsFunc(dec.Groups, func(g string) bool { return slices.Contains(now.Approval.Groups, g) })
		if in && (b.fresh[a.ID][i] || !now.Approval.FreshLogin) && dec.By != agent.Name {
			people[dec.By] = true
		}
	}
	if len(people) >= now.Approval.Needed {
		return ""
	}
	return fmt.Sprintf("%s needs %d of %v (fresh %v), and %v approved", args, now.Approval.Needed, now.Approval.Groups, now.Approval.FreshLogin, people)
}

// admits reports whether a worker with the current policy runs the approved call.
func (b *testLedger) admits(a *ledger.Approval) bool {
	b.t.Helper()
	args, err := b.ledger.ArgumentsOf(b.t.Context(), a)
	if err != nil {
		b.t.Fatal(err)
	}
	now := b.assessment(args, agent)
	_, refusal := b.trust.Admit(a.Warrant, &warrant.Use{
		ApprovalID: a.ID, CallID: a.CallID, Server: "bank", Tool: "pay", Definition: []byte(definition), Arguments: args,
		Requester: agent.Name, Owner: agent.Owner, Level: now.Level, Rule: now.Approval,
	}, b.clock.now())
	return refusal == nil
}

var (
	fay  = schema.Principal{Name: "fay", Groups: []string{"finance"}}
	finn = schema.Principal{Name: "finn", Groups: []string{"finance"}}
)

const (
	largeNeedsFinance = `rules:
  - {name: large, when: args.amount > 1000, approval: {groups: [finance], needed: 2, fresh_login: true}}
  - {name: small, approval: {groups: [ops]}}
`
	allNeedFinance = `rules:
  - {name: all, approval: {groups: [finance], needed: 2}}
`
)

func TestEditUnderStricterRuleRestartsApproval(t *testing.T) {
	for name, blind := range map[string]bool{"at the approver": false, "at the front door, where the approver has no policy": true} {
		t.Run(name, func(t *testing.T) {
			b := openTestLedger(t, blind)
			b.adopt(largeNeedsFinance)
			held := b.ask(5)
			a, err := b.answer(held.ID, ben, false, 999999)
			if err != nil {
				t.Fatal(err)
			}
			if claimed, err := b.door.Claim(t.Context(), schema.DefaultTenant, held.ID, "door"); err == nil {
				t.Fatalf("it runs: %+v", claimed)
			}
			if blind && b.admits(a) {
				t.Error("a worker takes the approval of ops for that of finance")
			}
			if a, err = b.ledger.Current(t.Context(), schema.AllTenants(), held.ID); err != nil {
				t.Fatal(err)
			}
			if a.State != ledger.Pending || len(a.Restarts) != 1 || approval.ApprovalCount(a) != 0 || len(a.Warrant) != 0 || !strings.Contains(a.Restarts[0].Reason, "2 approvals from finance with a fresh sign-in") {
				t.Fatalf("%s, %+v, %d approved", a.State, a.Restarts, approval.ApprovalCount(a))
			}
			if _, err := b.answer(held.ID, ben, true); schema.KindOf(err) != schema.KindForbidden {
				t.Errorf("ops: %v", err)
			}
			if _, err := b.answer(held.ID, fay, false); schema.KindOf(err) != schema.KindForbidden {
				t.Errorf("finance without a fresh sign-in: %v", err)
			}
			for i, who := range []schema.Principal{fay, finn} {
				if a, err = b.answer(held.ID, who, true); err != nil || (a.State == ledger.Approved) != (i == 1) {
					t.Fatalf("%s: %+v, %v", who.Name, a, err)
				}
			}
			if a, err = b.door.Claim(t.Context(), schema.DefaultTenant, held.ID, "door"); err != nil || a.State != ledger.Running || !b.admits(a) {
				t.Errorf("approved by two of finance: %+v, %v", a, err)
			}
		})
	}
}

func TestAuthorOfAnEditCountsAsApproverUnderTheNewRule(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(largeNeedsFinance)
	held := b.ask(5)
	both := schema.Principal{Name: "bo", Groups: []string{"ops", "finance"}}
	if a, err := b.answer(held.ID, both, true, 2000); err != nil || a.State != ledger.Pending || approval.ApprovalCount(a) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err := b.answer(held.ID, fay, true); err != nil || a.State != ledger.Approved {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestStricterPolicyRestartsApproval(t *testing.T) {
	for name, when := range map[string]string{"before the approval": "held", "after it": "approved", "while nobody looks": "renewed"} {
		t.Run(name, func(t *testing.T) {
			b := openTestLedger(t, false)
			b.adopt(largeNeedsFinance)
			held := b.ask(5)
			if when == "approved" {
				if a, err := b.answer(held.ID, ben, false); err != nil || a.State != ledger.Approved {
					t.Fatalf("%+v, %v", a, err)
				}
			}
			b.adopt(allNeedFinance)
			switch when {
			case "held":
				if _, err := b.answer(held.ID, ben, false); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), "2 approvals from finance") {
					t.Errorf("ops: %v", err)
				}
			case "approved":
				if _, err := b.door.Claim(t.Context(), schema.DefaultTenant, held.ID, "door"); schema.KindOf(err) != schema.KindConflict {
					t.Errorf("claimed: %v", err)
				}
			case "renewed":
				if err := b.door.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			a, err := b.ledger.Current(t.Context(), schema.AllTenants(), held.ID)
			if err != nil || a.State != ledger.Pending || len(a.Restarts) != 1 || approval.ApprovalCount(a) != 0 {
				t.Fatalf("%+v, %v", a, err)
			}
			for _, who := range []schema.Principal{fay, finn} {
				if a, err = b.answer(held.ID, who, false); err != nil {
					t.Fatal(err)
				}
			}
			if a, err = b.door.Claim(t.Context(), schema.DefaultTenant, a.ID, "door"); err != nil || !b.admits(a) {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

func TestLooserPolicyKeepsTheApproval(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(allNeedFinance)
	held := b.ask(5)
	for _, who := range []schema.Principal{fay, finn} {
		if _, err := b.answer(held.ID, who, false); err != nil {
			t.Fatal(err)
		}
	}
	b.adopt(`rules: [{name: all, approval: {groups: [finance, ops]}}]`)
	if a, err := b.door.Claim(t.Context(), schema.DefaultTenant, held.ID, "door"); err != nil || !b.admits(a) || len(a.Restarts) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestNewlyDeniedCallCannotBeEditedOrApproved(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(`rules:
  - {name: never, when: args.amount > 1000, deny: too much}
  - {name: small, approval: {groups: [ops]}}
`)
	held := b.ask(5)
	if _, err := b.answer(held.ID, ben, false, 2000); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), "too much") {
		t.Errorf("edited: %v", err)
	}
	b.adopt(`rules: [{name: never, deny: closed}]`)
	if _, err := b.answer(held.ID, ben, false); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), "closed") {
		t.Errorf("approved: %v", err)
	}
}

func TestCallerCannotConfirmIfPolicyNowNeedsPeople(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(`rules: [{name: own, approval: {by: caller}}]`)
	call := asked(agent, string(pays(5)))
	now := b.assessment(call.Arguments, agent)
	h, err := b.door.Open(t.Context(), call, json.RawMessage(definition), &now, "")
	if err != nil {
		t.Fatal(err)
	}
	b.adopt(allNeedFinance)
	for range 2 {
		if _, err := b.door.Confirm(t.Context(), h.Token, true, agent, "x", "door"); schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("confirmed: %v", err)
		}
	}
	if a, err := b.ledger.Current(t.Context(), schema.AllTenants(), h.Approval.ID); err != nil || a.State != ledger.Pending || len(a.Restarts) != 1 || a.Spent != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAPermissionGivenUnderAnotherRuleIsVoid(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(largeNeedsFinance)
	held := b.ask(5)
	answer := approval.Answer{Kind: ledger.Approve, Digest: schema.Digest(pays(5)), Allow: &ledger.Allow{Until: b.clock.now().Add(time.Hour), Pattern: ledger.Pattern{Kind: ledger.AnyArguments}}}
	if _, err := b.approver.Decide(t.Context(), held.ID, answer, ben, "web"); err != nil {
		t.Fatal(err)
	}
	b.adopt(allNeedFinance)
	if _, err := b.door.Claim(t.Context(), schema.DefaultTenant, held.ID, "door"); schema.KindOf(err) != schema.KindConflict {
		t.Fatalf("claimed: %v", err)
	}
	if _, err := b.door.Repair(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	runner := approval.New(approval.Options{Ledger: b.ledger, Now: b.clock.now, Runner: "door", Assess: b.assess, Log: quiet})
	call := asked(agent, string(pays(6)))
	now := b.assessment(call.Arguments, agent)
	if h, err := runner.Open(t.Context(), call, json.RawMessage(definition), &now, ""); err != nil || h.Run {
		t.Errorf("it runs without a question: %+v, %v", h, err)
	}
}

// A permission covers calls of the risk level under which it was given, which a restart may have raised.
func TestAPermissionGivenAfterARestartCoversTheSameCalls(t *testing.T) {
	b := openTestLedger(t, false)
	b.adopt(`rules: [{name: all, level: 2, approval: {groups: [ops]}}]`)
	held := b.ask(5)
	b.adopt(`rules: [{name: all, level: 3, approval: {groups: [ops]}}]`)
	if err := b.door.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	answer := approval.Answer{Kind: ledger.Approve, Digest: schema.Digest(pays(5)), Allow: &ledger.Allow{Until: b.clock.now().Add(time.Hour), Pattern: ledger.Pattern{Kind: ledger.AnyArguments}}}
	if a, err := b.approver.Decide(t.Context(), held.ID, answer, ben, "web"); err != nil || a.State != ledger.Approved || len(a.Restarts) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	runner := approval.New(approval.Options{Ledger: b.ledger, Now: b.clock.now, Runner: "door", Assess: b.assess, Log: quiet})
	polltest.Until(t, "the permission is known", func() bool { return len(runner.Permissions.List(schema.DefaultTenant)) == 1 })
	call := asked(agent, string(pays(6)))
	now := b.assessment(call.Arguments, agent)
	if h, err := runner.Open(t.Context(), call, json.RawMessage(definition), &now, ""); err != nil || !h.Run {
		t.Errorf("people are asked again: %+v, %v", h, err)
	}
}

// randomPolicy asks different people above and below a threshold.
func randomPolicy(r *rand.Rand) string {
	rule := func() string {
		groups := []string{"ops", "finance", "legal"}
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		return fmt.Sprintf("{groups: [%s], needed: %d, fresh_login: %v}", strings.Join(groups[:1+r.IntN(2)], ", "), 1+r.IntN(2), r.IntN(3) == 0)
	}
	return fmt.Sprintf("rules:\n  - {name: large, when: args.amount > %d, approval: %s}\n  - {name: small, approval: %s}\n", 100*r.IntN(5), rule(), rule())
}

// Over 1,000 random policies, edits, approvals and policy changes, no call is approved, claimed or
// admitted by a worker without the approvals that its final arguments need under the current policy.
func TestNoCallRunsWithoutTheApprovalsThatItsFinalArgumentsNeed(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	banks := []*testLedger{openTestLedger(t, false), openTestLedger(t, true)}
	people := make([]schema.Principal, 6)
	for i := range people {
		people[i] = schema.Principal{Name: fmt.Sprint("p", i), Groups: [][]string{{"ops"}, {"finance"}, {"legal"}, {"ops", "finance"}, {"ops"}, {"finance"}}[i]}
	}
	var approved, ran, refused, restarted int
	runs := 1000
	if testing.Short() {
		runs = 200
	}
	for n := range runs {
		b, blind := banks[n%2], n%2 == 1
		b.adopt(randomPolicy(r))
		a := b.ask(100 * r.IntN(6))
		for range 12 {
			if r.IntN(6) == 0 {
				b.adopt(randomPolicy(r))
			}
			amount := []int{}
			if r.IntN(4) == 0 {
				amount = append(amount, 100*r.IntN(6))
			}
			after, err := b.answer(a.ID, people[r.IntN(len(people))], r.IntN(2) == 0, amount...)
			if err != nil {
				continue // may not decide, or has decided already
			}
			if a = after; a.State != ledger.Approved {
				continue
			}
			approved++
			if why := b.satisfied(a); why != "" && !blind {
				t.Fatalf("run %d is approved: %s", n, why)
			}
			if r.IntN(3) == 0 {
				b.adopt(randomPolicy(r))
			}
			switch why := b.satisfied(a); {
			case !b.admits(a):
				refused++
			case why != "":
				t.Fatalf("a worker admits run %d: %s", n, why)
			}
			claimed, err := b.door.Claim(t.Context(), schema.DefaultTenant, a.ID, "door")
			if err == nil {
				if why := b.satisfied(claimed); why != "" {
					t.Fatalf("run %d is claimed: %s", n, why)
				}
				if !b.admits(claimed) {
					t.Fatalf("a worker refuses run %d, which is approved as it must be", n)
				}
				ran++
				break
			}
		}
		if a, err := b.ledger.Current(t.Context(), schema.AllTenants(), a.ID); err != nil || len(a.Restarts) > 0 {
			restarted++
		}
	}
	t.Logf("%d approved, %d ran, %d refused by a worker, %d began again", approved, ran, refused, restarted)
	if ran < runs/5 || refused < runs/20 || restarted < runs/5 {
		t.Errorf("too few cases to mean anything")
	}
}
