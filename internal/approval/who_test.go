package approval_test

import (
	"context"
	"testing"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestRequesterNeverDecidesOwnCallWithAnyKey(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ops := []string{"ops"}
	for name, c := range map[string]struct{ asks, decides schema.Principal }{
		"the same name":                      {schema.Principal{Name: "ana"}, schema.Principal{Name: "ana", Groups: ops}},
		"the same name, another owner":       {agent, schema.Principal{Name: "agent-key", Owner: "ben", Groups: ops}},
		"another key of the same owner":      {agent, schema.Principal{Name: "another-key", Owner: "ana", Groups: ops}},
		"a key named like the owner":         {agent, schema.Principal{Name: "ana", Groups: ops}},
		"a key named like the owner, owned":  {agent, schema.Principal{Name: "ana", Owner: "somebody", Groups: ops}},
		"a key owned by the requester":       {agent, schema.Principal{Name: "x", Owner: "agent-key", Groups: ops}},
		"another case":                       {agent, schema.Principal{Name: "AGENT-Key", Groups: ops}},
		"another case of the owner":          {agent, schema.Principal{Name: "x", Owner: "ANA", Groups: ops}},
		"another case beyond ASCII":          {schema.Principal{Name: "Åsa-Σίσυφος"}, schema.Principal{Name: "åSA-σίσυφος", Groups: ops}},
		"a key that a group shares":          {schema.Principal{Name: "bot", Owner: "ops"}, schema.Principal{Name: "ops-shared", Owner: "ops", Groups: ops}},
		"a key named like the owning group":  {schema.Principal{Name: "bot", Owner: "ops"}, schema.Principal{Name: "ops", Groups: ops}},
		"the group's key itself, both times": {schema.Principal{Name: "ops", Groups: ops}, schema.Principal{Name: "Ops", Groups: ops}},
	} {
		id := r.ask(c.asks, arguments, byOperators(1)).Approval.ID
		for _, kind := range []ledger.DecisionKind{ledger.Approve, ledger.Deny, ledger.Edit, ledger.Extend, ledger.Revoke} {
			_, err := r.desk.Decide(context.Background(), id, approval.Answer{Kind: kind, Digest: schema.Digest([]byte(arguments)), Arguments: []byte(`{}`)}, c.decides, "test")
			if schema.KindOf(err) != schema.KindForbidden {
				t.Errorf("%s may %s: %v", name, kind, err)
			}
		}
		if s := r.state(id); s != ledger.Pending {
			t.Errorf("%s: it is %s", name, s)
		}
		if _, err := r.say(id, ledger.Approve, ben); err != nil {
			t.Errorf("%s: and somebody else: %v", name, err)
		}
	}
}

func TestNonMembersOfTheGroupCannotDecide(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	id := r.hold(byOperators(1)).Approval.ID
	for _, who := range []schema.Principal{dora, {Name: "eve"}, {}, {Name: "eve", Groups: []string{"OPS"}}, {Name: "ops"}} {
		if _, err := r.say(id, ledger.Approve, who); schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("%+v: %v", who, err)
		}
	}
}

func TestAQuorumCountsAPersonOnce(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	rule := byOperators(2)
	rule.Groups = []string{"ops", "leads"}
	both := []string{"ops", "leads"}
	id := r.hold(rule).Approval.ID
	if a, err := r.say(id, ledger.Approve, schema.Principal{Name: "ben", Groups: both}); err != nil || a.State != ledger.Pending {
		t.Fatalf("one person of two groups: %+v, %v", a, err)
	}
	for _, again := range []schema.Principal{
		ben, {Name: "ben", Groups: []string{"leads"}}, {Name: "ben-laptop", Owner: "ben", Groups: both}, {Name: "BEN", Groups: both}, {Name: "x", Owner: "Ben", Groups: both},
	} {
		if _, err := r.say(id, ledger.Approve, again); schema.KindOf(err) != schema.KindConflict {
			t.Errorf("%+v counted twice: %v", again, err)
		}
	}
	if a, err := r.say(id, ledger.Approve, cleo); err != nil || a.State != ledger.Approved {
		t.Fatalf("%+v, %v", a, err)
	}
}

func TestOnlyTheRequesterWithdrawsItsCall(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	h := r.hold(byCaller())
	callID := h.Approval.CallID
	for _, other := range []schema.Principal{ben, {Name: "other-key", Owner: "ana"}, {Name: "AGENT-KEY"}, {Name: agent.Name, Owner: agent.Owner, Tenant: "other"}, {}} {
		if _, err := r.desk.Cancel(ctx, callID, other); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if _, err := r.desk.Cancel(ctx, schema.NewCallID(), agent); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("no such call: %v", err)
	}
	if a, err := r.desk.Cancel(ctx, callID, agent); err != nil || a.State != ledger.Canceled || a.Ended.IsZero() {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := r.desk.Confirm(ctx, h.Token, true, agent, "x", "door"); schema.KindOf(err) != schema.KindNotFound || schema.AsError(err).CallID != callID {
		t.Errorf("it was confirmed afterwards: %v", err)
	}
	if _, err := r.desk.Cancel(ctx, callID, agent); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("again: %v", err)
	}
	approved := r.hold(byOperators(1)).Approval
	if _, err := r.say(approved.ID, ledger.Approve, ben); err != nil {
		t.Fatal(err)
	}
	if a, err := r.desk.Cancel(ctx, approved.CallID, agent); err != nil || a.State != ledger.Canceled {
		t.Errorf("an approved one: %+v, %v", a, err)
	}
	if _, err := r.desk.Claim(ctx, schema.DefaultTenant, approved.ID, "door"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("it was claimed afterwards: %v", err)
	}
	running := r.hold(byCaller())
	if _, err := r.desk.Confirm(ctx, running.Token, true, agent, "x", "door"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Cancel(ctx, running.Approval.CallID, agent); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("one that runs: %v", err)
	}
}

func TestBlanksAreNoReason(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	rule := byOperators(1)
	rule.Reasons = true
	a := r.hold(rule).Approval
	answer := approval.Answer{Digest: schema.Digest([]byte(arguments))}
	for _, answer.Kind = range []ledger.DecisionKind{ledger.Approve, ledger.Deny, ledger.Revoke} {
		for _, answer.Reason = range []string{"", " ", "\n\t "} {
			if _, err := r.desk.Decide(t.Context(), a.ID, answer, ben, "api"); schema.KindOf(err) != schema.KindInvalidRequest {
				t.Errorf("%s with the reason %q: %v", answer.Kind, answer.Reason, err)
			}
		}
	}
	answer.Kind, answer.Reason = ledger.Approve, " it is due\n"
	if is, err := r.desk.Decide(t.Context(), a.ID, answer, ben, "api"); err != nil || is.Decisions[0].Reason != "it is due" {
		t.Errorf("%+v, %v", is, err)
	}
}
