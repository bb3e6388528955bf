package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestApprovedCallHasTheGroupsOfItsRequester(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	who := schema.Principal{Name: "agent-key", Owner: "ana", Groups: []string{"billing", "night"}}
	held := r.ask(who, arguments, byOperators(1))
	if _, err := r.say(held.Approval.ID, ledger.Approve, ben); err != nil {
		t.Fatal(err)
	}
	a, err := r.desk.Claim(context.Background(), schema.DefaultTenant, held.Approval.ID, "router-1")
	if err != nil {
		t.Fatal(err)
	}
	call, err := r.desk.Call(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(who, call.Principal); diff != "" {
		t.Errorf("the worker judges it by another principal (-want +got)\n%s", diff)
	}
	_, err = r.ledger.Change(context.Background(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
		a.Groups = []string{"bosses"}
		return nil
	})
	if err == nil {
		t.Error("the groups were changed afterwards")
	}
}

func TestCallerConfirmsOwnCallByIDOnce(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	held := r.hold(byCaller())
	id := held.Approval.CallID
	confirm := func(id schema.CallID, approve bool, who schema.Principal) schema.Kind {
		_, err := r.desk.ConfirmOwn(ctx, id, approve, who)
		return schema.KindOf(err)
	}
	if kind := confirm(id, true, ben); kind != schema.KindNotFound {
		t.Errorf("a stranger's yes: %q", kind)
	}
	if kind := confirm("call_nope", true, agent); kind != schema.KindNotFound {
		t.Errorf("a call that is not there: %q", kind)
	}
	if kind := confirm(id, true, agent); kind != "" {
		t.Errorf("the caller's yes: %q", kind)
	}
	a, _, err := r.ledger.ByCall(ctx, schema.AllTenants(), id)
	if err != nil || a.State != ledger.Approved || len(a.Decisions) != 1 || a.Decisions[0].By != agent.Name || a.Decisions[0].Channel != ledger.ChannelCaller {
		t.Errorf("it is %+v, %v", a, err)
	}
	for _, approve := range []bool{true, false} {
		if kind := confirm(id, approve, agent); kind != schema.KindConflict {
			t.Errorf("a second word (%t): %q", approve, kind)
		}
	}
	if _, err := r.desk.Confirm(ctx, held.Token, true, agent, "attempt", "router-1"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("its token afterwards: %v", err)
	}
	refused := r.hold(byCaller()).Approval.CallID
	if kind := confirm(refused, false, agent); kind != "" {
		t.Errorf("the caller's no: %q", kind)
	}
	if a, _, err := r.ledger.ByCall(ctx, schema.AllTenants(), refused); err != nil || a.State != ledger.Denied {
		t.Errorf("it is %+v, %v", a, err)
	}
	if kind := confirm(r.hold(byOperators(1)).Approval.CallID, true, agent); kind != schema.KindForbidden {
		t.Errorf("where a person must decide: %q", kind)
	}
	late := r.hold(byCaller()).Approval.CallID
	r.clock.advance(11 * time.Minute)
	if kind := confirm(late, true, agent); kind != schema.KindExpired {
		t.Errorf("when its time is over: %q", kind)
	}
}
