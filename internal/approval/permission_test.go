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

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func (r *fixture) allow(id schema.ApprovalID, who schema.Principal, pattern ledger.Pattern, uses int, lasts time.Duration) (*ledger.Approval, error) {
	return r.desk.Decide(context.Background(), id, approval.Answer{
		Kind: ledger.Approve, Digest: schema.Digest([]byte(arguments)), Reason: "it is the weekly payment",
		Allow: &ledger.Allow{Until: r.clock.now().Add(lasts), Pattern: pattern, MaxUses: uses},
	}, who, "web")
}

// permitted returns a fixture in which ben allowed calls like the first one.
func permitted(t *testing.T, pattern ledger.Pattern, uses int, change ...func(*approval.Options)) (*fixture, *ledger.Approval) {
	t.Helper()
	change = append([]func(*approval.Options){func(o *approval.Options) { o.Runner, o.Sign = "door", signed }}, change...)
	r := open(t, bustest.Start(t), nil, change...)
	a, err := r.allow(r.hold(byOperators(1)).Approval.ID, ben, pattern, uses, time.Hour)
	if err != nil || a.State != ledger.Approved {
		t.Fatalf("%+v, %v", a, err)
	}
	return r, a
}

var anyArguments, exact = ledger.Pattern{Kind: ledger.AnyArguments}, ledger.Pattern{Kind: ledger.ExactArguments}

func TestCallMatchingAPermissionRunsAtOnce(t *testing.T) {
	r, first := permitted(t, exact, 0)
	ctx := context.Background()
	p := r.desk.Permissions.List(schema.DefaultTenant)
	if len(p) != 1 || p[0].ApprovalID != first.ID || p[0].By != "ben" || p[0].Reason != "it is the weekly payment" || p[0].ID != ledger.PermissionID(first.ID) {
		t.Fatalf("%+v", p)
	}
	h := r.hold(byOperators(1))
	a := h.Approval
	if !h.Run || a.State != ledger.Running || a.Permission != p[0].ID || a.Runner.FrontDoor != "door" || string(a.Warrant) != signature(ledger.Running, a, arguments) {
		t.Fatalf("%+v", a)
	}
	if d := a.Decisions; len(d) != 1 || d[0].By != "ben" || d[0].Channel != ledger.ChannelStanding {
		t.Errorf("%+v", d)
	}
	stored, _, err := r.ledger.Get(ctx, schema.AllTenants(), a.ID)
	if err != nil || stored.State != ledger.Running || stored.Permission != p[0].ID {
		t.Errorf("%+v, %v", stored, err)
	}
	if call, err := r.desk.Call(ctx, a); err != nil || string(call.Arguments) != arguments {
		t.Errorf("%+v, %v", call, err)
	}
	if _, err := r.desk.Claim(ctx, schema.DefaultTenant, a.ID, "other"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("another runner got it too: %v", err)
	}
	if ended, err := r.desk.Finish(ctx, schema.DefaultTenant, a.ID, &schema.Result{Body: []byte(`{}`)}, nil); err != nil || ended.State != ledger.Succeeded {
		t.Errorf("%+v, %v", ended, err)
	}
}

func TestPermissionAppliesToMatchingCallsOnly(t *testing.T) {
	r, _ := permitted(t, anyArguments, 0)
	other := byOperators(1)
	other.Groups = []string{"ops", "bosses"}
	for name, change := range map[string]func(*schema.Call, *risk.Assessment){
		"another requester":                  func(c *schema.Call, _ *risk.Assessment) { c.Principal.Name = "agent-2" },
		"another owner":                      func(c *schema.Call, _ *risk.Assessment) { c.Principal.Owner = "bob" },
		"name in different letter case":      func(c *schema.Call, _ *risk.Assessment) { c.Principal.Name = "Agent-key" },
		"the person who gave the permission": func(c *schema.Call, _ *risk.Assessment) { c.Principal = schema.Principal{Name: "ben"} },
		"another server":                     func(c *schema.Call, _ *risk.Assessment) { c.Server = "bank2" },
		"another tool":                       func(c *schema.Call, _ *risk.Assessment) { c.Tool = "pay2" },
		"a tool redefined":                   func(c *schema.Call, _ *risk.Assessment) { c.ToolDigest = schema.Digest([]byte(`{"name":"pay" }`)) },
		"no definition":                      func(c *schema.Call, _ *risk.Assessment) { c.ToolDigest = "" },
		"a higher level":                     func(_ *schema.Call, a *risk.Assessment) { a.Level = risk.High },
		"another group must approve":         func(_ *schema.Call, a *risk.Assessment) { a.Approval = other },
		"two approvals are required":         func(_ *schema.Call, a *risk.Assessment) { a.Approval = byOperators(2) },
		"the caller must confirm": func(_ *schema.Call, a *risk.Assessment) {
			a.Approval = byCaller()
		},
	} {
		call, a := asked(agent, arguments), &risk.Assessment{Level: risk.Medium, Approval: byOperators(1), Version: "test"}
		change(call, a)
		var raw json.RawMessage
		h, err := r.desk.Open(context.Background(), call, raw, a, "")
		if err != nil || h.Run || h.Approval.State != ledger.Pending {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	denied := &risk.Assessment{Deny: true, Level: risk.Medium, Approval: byOperators(1)}
	if h, err := r.desk.Open(context.Background(), asked(agent, arguments), nil, denied, ""); err == nil {
		t.Errorf("a denied call was let through: %+v", h)
	}
	if h := r.hold(byOperators(1)); !h.Run {
		t.Error("and the call itself is asked about")
	}
}

func TestPermissionPatternLimitsArguments(t *testing.T) {
	same := func(pointers ...string) ledger.Pattern {
		p := ledger.Pattern{Kind: ledger.SameValues}
		for _, at := range pointers {
			p.Values = append(p.Values, ledger.Value{Pointer: at})
		}
		return p
	}
	for name, c := range map[string]struct {
		pattern  ledger.Pattern
		runs, no []string
	}{
		"exact":      {exact, []string{arguments}, []string{`{"to":"x","amount":9007199254740993}`, arguments + " ", `{}`}},
		"any":        {anyArguments, []string{arguments, `{}`, `{"to":"y"}`}, nil},
		"one value":  {same("/to"), []string{arguments, `{"to" : "x"}`, `{"amount":1,"to":"x"}`}, []string{`{"to":"y"}`, `{}`, `{"To":"x"}`, `{"to":["x"]}`, `{"a":{"to":"x"}}`, `{"to":"\u0078"}`}},
		"two values": {same("/to", "/amount"), []string{arguments, `{"amount":9007199254740993,"to":"x","more":1}`}, []string{`{"amount":9007199254740992,"to":"x"}`, `{"to":"x"}`, `{"amount":"9007199254740993","to":"x"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := permitted(t, c.pattern, 0)
			for _, args := range c.runs {
				if h := r.ask(agent, args, byOperators(1)); !h.Run {
					t.Errorf("%s is asked about", args)
				}
			}
			for _, args := range c.no {
				if h := r.ask(agent, args, byOperators(1)); h.Run {
					t.Errorf("%s runs", args)
				}
			}
		})
	}
}

func TestPermissionNeedsAnApproverWhoDecidesAlone(t *testing.T) {
	r := open(t, bustest.Start(t), nil, func(o *approval.Options) { o.Runner = "door" })
	ctx := context.Background()
	id := r.hold(byOperators(1)).Approval.ID
	for name, c := range map[string]struct {
		who   schema.Principal
		want  schema.Kind
		for_  time.Duration
		uses  int
		which ledger.Pattern
	}{
		"the requester":                   {schema.Principal{Name: "ana", Groups: []string{"ops"}}, schema.KindForbidden, time.Hour, 0, exact},
		"a stranger":                      {dora, schema.KindForbidden, time.Hour, 0, exact},
		"longer than a week":              {ben, schema.KindInvalidRequest, 7*24*time.Hour + time.Second, 0, exact},
		"no remaining time":               {ben, schema.KindInvalidRequest, 0, 0, exact},
		"negative number of uses":         {ben, schema.KindInvalidRequest, time.Hour, -1, exact},
		"no kind":                         {ben, schema.KindInvalidRequest, time.Hour, 0, ledger.Pattern{}},
		"no pointers":                     {ben, schema.KindInvalidRequest, time.Hour, 0, ledger.Pattern{Kind: ledger.SameValues}},
		"a pointer that matches no value": {ben, schema.KindInvalidRequest, time.Hour, 0, ledger.Pattern{Kind: ledger.SameValues, Values: []ledger.Value{{Pointer: "/nobody"}}}},
	} {
		if _, err := r.allow(id, c.who, c.which, c.uses, c.for_); schema.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	allow := &ledger.Allow{Until: r.clock.now().Add(time.Hour), Pattern: exact}
	for kind, want := range map[ledger.DecisionKind]schema.Kind{ledger.Deny: schema.KindInvalidRequest, ledger.Edit: schema.KindInvalidRequest, ledger.Extend: schema.KindInvalidRequest} {
		if _, err := r.desk.Decide(ctx, id, approval.Answer{Kind: kind, Allow: allow, Arguments: []byte(`{}`)}, ben, "web"); schema.KindOf(err) != want {
			t.Errorf("with %s: %v", kind, err)
		}
	}
	quorum := r.hold(byOperators(2)).Approval.ID
	if _, err := r.allow(quorum, ben, exact, 0, time.Hour); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("one of two: %v", err)
	}
	if n := len(r.desk.Permissions.List(schema.DefaultTenant)); n != 0 || r.state(id) != ledger.Pending {
		t.Errorf("%d permissions", n)
	}
}

func TestPermissionEndsByTimeUsesOrRevocation(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(t *testing.T, r *fixture, first *ledger.Approval){
		"when its time has ended": func(_ *testing.T, r *fixture, _ *ledger.Approval) { r.clock.advance(time.Hour) },
		"when its time has ended, although the clock was set back": func(t *testing.T, r *fixture, _ *ledger.Approval) {
			reconcile := func() {
				if _, err := r.desk.Reconcile(ctx, func(string) bool { return true }); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			r.clock.advance(31 * time.Minute)
			reconcile()
			r.clock.advance(-50 * time.Second)
			reconcile()
			r.clock.advance(30 * time.Minute)
		},
		"when it is revoked": func(t *testing.T, r *fixture, first *ledger.Approval) {
			id := ledger.PermissionID(first.ID)
			for _, who := range []schema.Principal{dora, agent} {
				if _, err := r.desk.Permissions.Revoke(ctx, id, who, ""); schema.KindOf(err) != schema.KindForbidden {
					t.Errorf("%s: %v", who.Name, err)
				}
			}
			if p, err := r.desk.Permissions.Revoke(ctx, id, cleo, "no more"); err != nil || p.Revoked.By != "cleo" {
				t.Errorf("%+v, %v", p, err)
			}
			if _, err := r.desk.Permissions.Revoke(ctx, id, ben, ""); schema.KindOf(err) != schema.KindConflict {
				t.Errorf("again: %v", err)
			}
			if _, err := r.desk.Permissions.Revoke(ctx, "perm_none", ben, ""); schema.KindOf(err) != schema.KindNotFound {
				t.Errorf("one that is not there: %v", err)
			}
		},
		"when the call that it was created with is denied later": func(t *testing.T, r *fixture, first *ledger.Approval) {
			if _, err := r.say(first.ID, ledger.Deny, cleo); err != nil {
				t.Error(err)
			}
			if p := r.desk.Permissions.List(schema.DefaultTenant); len(p) != 1 || p[0].Revoked == nil || p[0].Revoked.By != "cleo" {
				t.Errorf("%+v", p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, first := permitted(t, exact, 0)
			if h := r.hold(byOperators(1)); !h.Run {
				t.Fatal("it does not run")
			}
			end(t, r, first)
			if h := r.hold(byOperators(1)); h.Run {
				t.Error("it still runs")
			}
		})
	}
}

func TestUsesAreCountedOverAllFrontDoors(t *testing.T) {
	srv := bustest.Start(t)
	door := func(o *approval.Options) { o.Runner = "door" }
	one := open(t, srv, nil, door)
	two := open(t, srv, one.clock, door)
	const uses, calls = 7, 40
	if _, err := one.allow(one.hold(byOperators(1)).Approval.ID, ben, exact, uses, time.Hour); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the other desk knows the permission", func() bool { return len(two.desk.Permissions.List(schema.DefaultTenant)) == 1 })
	var ran atomic.Int32
	var all sync.WaitGroup
	for i := range calls {
		r := []*fixture{one, two}[i%2]
		all.Go(func() {
			if r.hold(byOperators(1)).Run {
				ran.Add(1)
			}
		})
	}
	all.Wait()
	if ran.Load() != uses {
		t.Errorf("%d ran, of %d that may", ran.Load(), uses)
	}
	if p := one.desk.Permissions.List(schema.DefaultTenant); len(p) != 1 || p[0].Uses != uses {
		t.Errorf("%+v", p)
	}
}

func TestRevokedPermissionIsNotUsedAtAnotherFrontDoor(t *testing.T) {
	// Repeat often enough that this process has not seen the permission yet in some rounds.
	srv := bustest.Start(t)
	here := open(t, srv, nil, func(o *approval.Options) { o.Runner = "door" })
	there := open(t, srv, here.clock)
	for range 20 {
		a, err := here.allow(here.ask(agent, arguments, byOperators(1)).Approval.ID, ben, exact, 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.desk.Permissions.Revoke(t.Context(), ledger.PermissionID(a.ID), cleo, ""); err != nil {
			t.Fatal(err)
		}
		if h := here.hold(byOperators(1)); h.Run {
			t.Error("it ran after the revocation was answered")
		}
	}
}

func TestPermissionLostInACrashIsRestored(t *testing.T) {
	ctx := context.Background()
	srv := bustest.Start(t)
	r := open(t, srv, nil, func(o *approval.Options) { o.Runner = "door" })
	// The record left by a desk that was killed between the two writes.
	leave := func(kinds ...ledger.DecisionKind) schema.ApprovalID {
		id := r.hold(byOperators(1)).Approval.ID
		pattern, err := exact.Of([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ledger.Change(ctx, schema.DefaultTenant, id, func(a *ledger.Approval) error {
			for _, kind := range kinds {
				d := ledger.Decision{By: "ben", Groups: []string{"ops"}, Kind: kind, At: r.clock.now().UTC().Round(0)}
				if a.State = ledger.Denied; kind == ledger.Approve {
					a.State = ledger.Approved
					d.Allow = &ledger.Allow{Until: r.clock.now().Add(time.Hour).UTC().Round(0), Pattern: pattern}
				}
				a.Decisions = append(a.Decisions, d)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	vetoed := leave(ledger.Approve, ledger.Deny)
	if _, err := r.desk.Repair(ctx, time.Hour); err != nil || len(r.desk.Permissions.List(schema.DefaultTenant)) != 0 {
		t.Fatalf("of %s, which was vetoed, a permission was made: %v", vetoed, err)
	}
	id := leave(ledger.Approve)
	for range 2 {
		if _, err := r.desk.Repair(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if p := r.desk.Permissions.List(schema.DefaultTenant); len(p) != 1 || p[0].ApprovalID != id {
		t.Fatalf("%+v", p)
	}
	if h := r.hold(byOperators(1)); !h.Run {
		t.Error("it does not run")
	}
	// A revoked permission stays revoked, and one that ended long ago is forgotten.
	if _, err := r.desk.Permissions.Revoke(ctx, ledger.PermissionID(id), ben, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.desk.Repair(ctx, time.Hour); err != nil || r.hold(byOperators(1)).Run {
		t.Errorf("it came back: %v", err)
	}
	r.clock.advance(8 * 24 * time.Hour)
	if _, err := r.desk.Repair(ctx, time.Hour); err != nil || len(r.desk.Permissions.List(schema.DefaultTenant)) != 0 {
		t.Errorf("%+v, %v", r.desk.Permissions.List(schema.DefaultTenant), err)
	}
}

// The 16 calls that one requester may hold here are held.
func TestRefusedCallUsesNoPermission(t *testing.T) {
	srv, c := bustest.Start(t), &clock{}
	c.ns.Store(time.Now().UnixNano())
	small, err := ledger.Open(t.Context(), srv.Connect(t, "small"), ledger.Options{MaxOpen: 64, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(small.Close)
	r := open(t, srv, c, func(o *approval.Options) { o.Runner, o.Ledger = "door", small })
	if _, err := r.allow(r.hold(byOperators(1)).Approval.ID, ben, exact, 5, time.Hour); err != nil {
		t.Fatal(err)
	}
	for n := range 15 {
		r.ask(agent, fmt.Sprintf(`{"amount":%d}`, n), byOperators(1))
	}
	if _, err := r.desk.Open(t.Context(), asked(agent, arguments), json.RawMessage(definition), &risk.Assessment{Level: risk.Medium, Approval: byOperators(1)}, ""); schema.KindOf(err) != schema.KindQuota {
		t.Error(err)
	}
	if all := r.desk.Permissions.List(schema.DefaultTenant); len(all) != 1 || all[0].Uses != 0 {
		t.Errorf("%+v", all)
	}
}

// The approvals with which the permissions were given are kept for weeks, and a tenant of the same name can
// follow.
func TestPermissionOfAnErasedTenantIsNotRestored(t *testing.T) {
	r, _ := permitted(t, exact, 0)
	if _, _, n, err := r.desk.EndTenant(t.Context(), schema.DefaultTenant); n != 1 || err != nil {
		t.Fatalf("%d permissions were removed, %v", n, err)
	}
	if _, err := r.desk.Repair(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if all := r.desk.Permissions.List(schema.DefaultTenant); len(all) != 0 || r.hold(byOperators(1)).Run {
		t.Errorf("it came back: %+v", all)
	}
}

func TestPermissionsAreNotUsedWithoutARunner(t *testing.T) {
	srv := bustest.Start(t)
	r := open(t, srv, nil)
	if _, err := r.allow(r.hold(byOperators(1)).Approval.ID, ben, exact, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	if h := r.hold(byOperators(1)); h.Run {
		t.Error("it runs where nobody runs it")
	}
}

func TestPermissionsAreInTheAuditRecord(t *testing.T) {
	srv := bustest.Start(t)
	lines := openAudit(t, srv)
	r := open(t, srv, nil, func(o *approval.Options) { o.Runner, o.Audit = "door", lines })
	a, err := r.allow(r.hold(byOperators(1)).Approval.ID, ben, exact, 3, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	used := r.hold(byOperators(1)).Approval.ID
	if _, err := r.desk.Permissions.Revoke(t.Context(), ledger.PermissionID(a.ID), cleo, "no more"); err != nil {
		t.Fatal(err)
	}
	is := strings.Join(linesOf(t, lines, a.ID), "\n")
	until := r.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)
	if want := fmt.Sprintf("held agent-key\ndecided ben approve\npermission-given ben exact until %s, 3 uses\npermission-revoked cleo", until); is != want {
		t.Errorf("%s", is)
	}
	if is := strings.Join(linesOf(t, lines, used), "\n"); is != "permission-used agent-key\ndecided ben approve\nran door" {
		t.Errorf("%s", is)
	}
	r.clock.advance(time.Minute)
	if n, err := r.desk.Repair(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("%d lines were missing, %v", n, err)
	}
	all, _, err := lines.Read(t.Context(), schema.AllTenants(), audit.Filter{Kinds: []audit.Kind{audit.PermissionUsed, audit.PermissionGiven, audit.PermissionRevoked}}, "")
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, l := range all {
		if l.PermissionID != ledger.PermissionID(a.ID) {
			t.Errorf("%+v", l)
		}
	}
}

// A worker that does not trust the key would refuse calls that run by a permission.
func TestPermissionsNeedAWorkerThatTrustsTheKey(t *testing.T) {
	var reason string
	r, from := permitted(t, ledger.Pattern{Kind: ledger.AnyArguments}, 0, func(o *approval.Options) {
		o.NoPermission = func(server schema.ServerID) string { return reason }
	})
	if h := r.ask(agent, arguments, byOperators(1)); !h.Run {
		t.Fatalf("it was allowed by %s", from.ID)
	}
	reason = "worker w does not trust the key."
	h := r.ask(agent, arguments, byOperators(1))
	if h.Run || h.Approval.State != ledger.Pending || h.Approval.NoPermission != reason {
		t.Fatalf("%+v", h.Approval)
	}
	answer := approval.Answer{Kind: ledger.Approve, Digest: schema.Digest([]byte(arguments)), Allow: &ledger.Allow{Until: r.clock.now().Add(time.Hour), Pattern: ledger.Pattern{Kind: ledger.AnyArguments}}}
	if _, err := r.desk.Decide(t.Context(), h.Approval.ID, answer, ben, "web"); schema.KindOf(err) != schema.KindForbidden || !strings.Contains(err.Error(), reason) {
		t.Errorf("allowed: %v", err)
	}
	answer.Allow = nil
	if a, err := r.desk.Decide(t.Context(), h.Approval.ID, answer, ben, "web"); err != nil || a.State != ledger.Approved {
		t.Errorf("approved: %+v, %v", a, err)
	}
}
