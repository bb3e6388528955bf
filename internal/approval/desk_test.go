package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// clock is a clock that the test sets.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

type fixture struct {
	t      *testing.T
	conn   *bus.Conn
	desk   *approval.Desk
	ledger *ledger.Ledger
	clock  *clock
}

// open returns a desk with its own connection and ledger. If c is nil, it also has its own clock.
func open(t *testing.T, srv *bustest.Server, c *clock, change ...func(*approval.Options)) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c == nil {
		c = &clock{}
		c.ns.Store(time.Now().UnixNano())
	}
	conn := srv.Connect(t, "desk")
	l, err := ledger.Open(ctx, conn, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	o := approval.Options{Ledger: l, Now: c.now, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	return &fixture{t: t, conn: conn, ledger: l, clock: c, desk: approval.New(o)}
}

var (
	agent = schema.Principal{Name: "agent-key", Owner: "ana"}
	ben   = schema.Principal{Name: "ben", Groups: []string{"ops"}}
	cleo  = schema.Principal{Name: "cleo", Groups: []string{"ops"}}
	dora  = schema.Principal{Name: "dora", Groups: []string{"bosses"}}
)

const arguments = `{"amount":9007199254740993,"to":"x"}`

func byCaller() *risk.Approval {
	return &risk.Approval{By: risk.ByCaller, Needed: 1, Expires: 10 * time.Minute}
}

func byOperators(needed int) *risk.Approval {
	return &risk.Approval{By: risk.ByGroups, Groups: []string{"ops"}, Needed: needed, Expires: 10 * time.Minute}
}

func (r *fixture) hold(rule *risk.Approval) *approval.Held {
	r.t.Helper()
	return r.ask(agent, arguments, rule)
}

func (r *fixture) ask(who schema.Principal, args string, rule *risk.Approval) *approval.Held {
	r.t.Helper()
	h, err := r.desk.Open(context.Background(), asked(who, args), json.RawMessage(definition), &risk.Assessment{Level: risk.Medium, Reasons: []string{"it pays"}, Approval: rule, Version: "test"}, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

const definition = `{"name":"pay"}`

func asked(who schema.Principal, args string) *schema.Call {
	return &schema.Call{ID: schema.NewCallID(), Server: "bank", Tool: "pay", Arguments: []byte(args), ToolDigest: schema.Digest([]byte(definition)), Principal: who, Timeout: time.Minute}
}

func (r *fixture) say(id schema.ApprovalID, kind ledger.DecisionKind, who schema.Principal) (*ledger.Approval, error) {
	return r.desk.Decide(context.Background(), id, approval.Answer{Kind: kind, Digest: schema.Digest([]byte(arguments))}, who, "test")
}

func (r *fixture) state(id schema.ApprovalID) ledger.State {
	r.t.Helper()
	a, _, err := r.ledger.Get(context.Background(), schema.AllTenants(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return a.State
}

func TestAConfirmedCallRunsOnceWithTheBytesThatWereHeld(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	h := r.hold(byCaller())
	a, err := r.desk.Confirm(ctx, h.Token, true, agent, "first", "door")
	if err != nil || a.State != ledger.Running {
		t.Fatalf("%+v, %v", a, err)
	}
	call, err := r.desk.Call(ctx, a)
	if err != nil || string(call.Arguments) != arguments || call.ID != h.Approval.CallID || call.Principal.Name != agent.Name {
		t.Fatalf("%+v, %v", call, err)
	}
	_, err = r.desk.Confirm(ctx, h.Token, true, agent, "second", "door")
	if e := schema.AsError(err); e.Kind != schema.KindNotFound || e.CallID != h.Approval.CallID {
		t.Errorf("a second confirmation: %+v", e)
	}
	ended, err := r.desk.Finish(ctx, schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{"n":1.0}`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := r.ledger.Result(ctx, ended); err != nil || string(body) != `{"n":1.0}` {
		t.Errorf("%s, %v", body, err)
	}
	if s := r.state(a.ID); s != ledger.Succeeded {
		t.Errorf("it is %s", s)
	}
}

func TestARejectedConfirmationNeverRuns(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	h := r.hold(byCaller())
	a, err := r.desk.Confirm(context.Background(), h.Token, false, agent, "x", "door")
	if err != nil || a.State != ledger.Denied {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := r.desk.Claim(context.Background(), schema.DefaultTenant, a.ID, "door"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("it was claimed: %v", err)
	}
}

func TestOnlyTheCallerSpendsItsToken(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	h := r.hold(byCaller())
	for _, other := range []schema.Principal{ben, {Name: "other-key", Owner: "ana"}, {Name: "AGENT-KEY"}, {}} {
		if _, err := r.desk.Confirm(ctx, h.Token, true, other, "x", "door"); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if _, err := r.desk.Confirm(ctx, "cyt_"+string(h.Approval.ID)+"_"+strings.Repeat("A", 43), true, agent, "x", "door"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("a made-up token: %v", err)
	}
	if a, err := r.desk.Confirm(ctx, h.Token, true, agent, "y", "door"); err != nil || a.State != ledger.Running {
		t.Errorf("the tries of others burnt the token: %v", err)
	}
}

func TestUndecidedApprovalsExpire(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	mine, theirs := r.hold(byCaller()), r.hold(byOperators(1))
	r.clock.advance(10*time.Minute + time.Second)
	if _, err := r.desk.Confirm(ctx, mine.Token, true, agent, "x", "door"); schema.KindOf(err) != schema.KindExpired {
		t.Errorf("the caller, too late: %v", err)
	}
	if _, err := r.say(theirs.Approval.ID, ledger.Approve, ben); schema.KindOf(err) != schema.KindExpired || !strings.Contains(err.Error(), "request has expired") || strings.Contains(err.Error(), "Send the call again") {
		t.Errorf("an approver, too late: %v", err)
	}
	if _, err := r.desk.Reconcile(ctx, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*approval.Held{mine, theirs} {
		if s := r.state(h.Approval.ID); s != ledger.Expired {
			t.Errorf("it is %s", s)
		}
	}
	if _, err := r.say(theirs.Approval.ID, ledger.Approve, ben); schema.KindOf(err) != schema.KindConflict || !strings.Contains(err.Error(), "request has expired") {
		t.Errorf("an approver, after the end: %v", err)
	}
}

func TestDenialOverridesEarlierApprovalsUntilTheCallRuns(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	first, second := r.hold(byOperators(2)), r.hold(byOperators(1))
	for _, step := range []struct {
		id   schema.ApprovalID
		kind ledger.DecisionKind
		who  schema.Principal
		want ledger.State
	}{
		{first.Approval.ID, ledger.Approve, ben, ledger.Pending},
		{first.Approval.ID, ledger.Deny, cleo, ledger.Denied},
		{second.Approval.ID, ledger.Approve, ben, ledger.Approved},
		{second.Approval.ID, ledger.Deny, cleo, ledger.Denied},
	} {
		if a, err := r.say(step.id, step.kind, step.who); err != nil || a.State != step.want {
			t.Fatalf("%+v: %+v, %v", step, a, err)
		}
	}
	running := r.hold(byOperators(1)).Approval.ID
	if _, err := r.say(running, ledger.Approve, ben); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Claim(context.Background(), schema.DefaultTenant, running, "door"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.say(running, ledger.Deny, cleo); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("a veto after it left: %v", err)
	}
}

func TestEditVoidsEarlierApprovalsAndRunsTheEditedBytes(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	id := r.hold(byOperators(2)).Approval.ID
	if _, err := r.say(id, ledger.Approve, ben); err != nil {
		t.Fatal(err)
	}
	const less = `{"amount":1,"to":"x"}`
	if _, err := r.desk.Decide(ctx, id, approval.Answer{Kind: ledger.Edit, Arguments: []byte(less), Reason: "too much"}, cleo, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.say(id, ledger.Approve, ben); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("an approval of what is no longer there: %v", err)
	}
	a, err := r.desk.Decide(ctx, id, approval.Answer{Kind: ledger.Approve, Digest: schema.Digest([]byte(less))}, ben, "test")
	if err != nil || a.State != ledger.Approved {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err = r.desk.Claim(ctx, schema.DefaultTenant, id, "door"); err != nil {
		t.Fatal(err)
	}
	call, err := r.desk.Call(ctx, a)
	if err != nil || string(call.Arguments) != less {
		t.Fatalf("%+v, %v", call, err)
	}
	if asked, err := r.ledger.Asked(ctx, schema.DefaultTenant, id); err != nil || string(asked) != arguments {
		t.Errorf("what was asked for is kept as %s, %v", asked, err)
	}
}

func TestAnotherGroupIsAskedAtHalfTime(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	rule := byOperators(1)
	rule.EscalateTo = []string{"bosses"}
	id := r.hold(rule).Approval.ID
	reconcile := func() {
		t.Helper()
		if _, err := r.desk.Reconcile(context.Background(), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.advance(4 * time.Minute)
	reconcile()
	if _, err := r.say(id, ledger.Approve, dora); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("before half time: %v", err)
	}
	r.clock.advance(61 * time.Second)
	reconcile()
	if a, err := r.say(id, ledger.Approve, dora); err != nil || a.State != ledger.Approved {
		t.Errorf("after half time: %+v, %v", a, err)
	}
}

func TestAnotherGroupIsAskedAfterTheTimeOfTheRule(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	rule := byOperators(1)
	rule.EscalateTo, rule.EscalateAfter = []string{"bosses"}, time.Minute
	id := r.hold(rule).Approval.ID
	for _, step := range []struct {
		after time.Duration
		want  schema.Kind
	}{{59 * time.Second, schema.KindForbidden}, {2 * time.Second, ""}} {
		r.clock.advance(step.after)
		if _, err := r.desk.Reconcile(context.Background(), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if _, err := r.say(id, ledger.Approve, dora); err != nil && schema.KindOf(err) != step.want || err == nil && step.want != "" {
			t.Errorf("after %s more: %v", step.after, err)
		}
	}
}

func TestACallWhoseRunnerIsLostIsUnknownAndNeverRunsAgain(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	ctx := context.Background()
	h := r.hold(byCaller())
	a, err := r.desk.Confirm(ctx, h.Token, true, agent, "x", "door-that-dies")
	if err != nil {
		t.Fatal(err)
	}
	dead := func(string) bool { return false }
	if n, err := r.desk.Reconcile(ctx, dead); n != 0 || err != nil {
		t.Fatalf("too soon: %d, %v", n, err)
	}
	r.clock.advance(20 * time.Second)
	if n, err := r.desk.Reconcile(ctx, func(string) bool { return true }); n != 0 || err != nil {
		t.Fatalf("its runner lives: %d, %v", n, err)
	}
	if n, err := r.desk.Reconcile(ctx, dead); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if s := r.state(a.ID); s != ledger.Unknown {
		t.Errorf("it is %s", s)
	}
	if _, err := r.desk.Claim(ctx, schema.DefaultTenant, a.ID, "other"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("it was claimed again: %v", err)
	}
	if late, err := r.desk.Finish(ctx, schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{}`)}, nil); err != nil || late.State != ledger.Succeeded {
		t.Errorf("a late word: %+v, %v", late, err)
	}
}

func TestOneOfManyRunnersClaimsTheApprovedCall(t *testing.T) {
	srv := bustest.Start(t)
	one := open(t, srv, nil)
	two := open(t, srv, one.clock)
	id := one.hold(byOperators(1)).Approval.ID
	if _, err := one.say(id, ledger.Approve, ben); err != nil {
		t.Fatal(err)
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		desk := []*approval.Desk{one.desk, two.desk}[i%2]
		wg.Go(func() {
			if _, err := desk.Claim(context.Background(), schema.DefaultTenant, id, fmt.Sprint("door", i)); err == nil {
				won.Add(1)
			} else if schema.KindOf(err) != schema.KindConflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d runners won", won.Load())
	}
}
