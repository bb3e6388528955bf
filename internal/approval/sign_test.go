package approval_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// signed returns a fake signature that contains the signed fields.
func signed(a *ledger.Approval) ([]byte, error) {
	bound := a.Bound()
	return fmt.Appendf(nil, "%s %s %s", a.State, a.CallID, bound.ArgumentsDigest), nil
}

func signature(state ledger.State, a *ledger.Approval, args string) string {
	return fmt.Sprintf("%s %s %s", state, a.CallID, schema.Digest([]byte(args)))
}

func TestApprovedCallCarriesAWarrant(t *testing.T) {
	r := open(t, bustest.Start(t), nil, func(o *approval.Options) { o.Sign = signed })
	ctx := context.Background()

	h := r.hold(byCaller())
	a, err := r.desk.Confirm(ctx, h.Token, true, agent, "x", "door")
	if want := signature(ledger.Running, h.Approval, arguments); err != nil || string(a.Warrant) != want {
		t.Fatalf("confirmed: %q, %v", a.Warrant, err)
	}
	if call, err := r.desk.Call(ctx, a); err != nil || string(call.Warrant) != string(a.Warrant) {
		t.Errorf("the call: %+v, %v", call, err)
	}
	h = r.hold(byCaller())
	if a, err = r.desk.Confirm(ctx, h.Token, false, agent, "x", "door"); err != nil || len(a.Warrant) > 0 {
		t.Errorf("rejected: %q, %v", a.Warrant, err)
	}

	two := r.hold(byOperators(2)).Approval
	if a, err = r.say(two.ID, ledger.Approve, ben); err != nil || len(a.Warrant) > 0 {
		t.Errorf("one of two: %q, %v", a.Warrant, err)
	}
	if a, err = r.say(two.ID, ledger.Approve, cleo); err != nil || string(a.Warrant) != signature(ledger.Approved, two, arguments) {
		t.Errorf("two of two: %q, %v", a.Warrant, err)
	}
	if a, err = r.desk.Claim(ctx, schema.DefaultTenant, two.ID, "door"); err != nil || string(a.Warrant) != signature(ledger.Approved, two, arguments) {
		t.Errorf("claimed: %q, %v", a.Warrant, err)
	}
	denied := r.hold(byOperators(1)).Approval
	if a, err = r.say(denied.ID, ledger.Deny, ben); err != nil || len(a.Warrant) > 0 {
		t.Errorf("denied: %q, %v", a.Warrant, err)
	}
}

func TestWarrantCoversTheEditedBytes(t *testing.T) {
	r := open(t, bustest.Start(t), nil, func(o *approval.Options) { o.Sign = signed })
	ctx := context.Background()
	const less = `{"amount":1,"to":"x"}`
	h := r.hold(byOperators(1)).Approval
	a, err := r.desk.Decide(ctx, h.ID, approval.Answer{Kind: ledger.Edit, Arguments: []byte(less)}, ben, "test")
	if err != nil || string(a.Warrant) != signature(ledger.Approved, h, less) {
		t.Fatalf("%q, %v", a.Warrant, err)
	}
	if a, err = r.desk.Claim(ctx, schema.DefaultTenant, h.ID, "door"); err != nil {
		t.Fatal(err)
	}
	if call, err := r.desk.Call(ctx, a); err != nil || string(call.Arguments) != less || string(call.Warrant) != signature(ledger.Approved, h, less) {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestApprovalFailsWithoutASignature(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	r := open(t, bustest.Start(t), nil, func(o *approval.Options) {
		o.Sign = func(a *ledger.Approval) ([]byte, error) {
			if broken.Load() {
				return nil, errors.New("no key")
			}
			return signed(a)
		}
	})
	mine, theirs := r.hold(byCaller()), r.hold(byOperators(1)).Approval
	_, confirmed := r.desk.Confirm(context.Background(), mine.Token, true, agent, "x", "door")
	_, said := r.say(theirs.ID, ledger.Approve, ben)
	for _, err := range []error{confirmed, said} {
		if schema.KindOf(err) != schema.KindInternal {
			t.Errorf("it counted: %v", err)
		}
	}
	if one, two := r.state(mine.Approval.ID), r.state(theirs.ID); one != ledger.Pending || two != ledger.Pending {
		t.Errorf("they are %s and %s", one, two)
	}
	broken.Store(false)
	if _, err := r.desk.Confirm(context.Background(), mine.Token, true, agent, "x", "door"); err != nil {
		t.Errorf("with the key again: %v", err)
	}
}
