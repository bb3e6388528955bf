package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// If a desk's process is killed between any two steps, the record stays correct: another desk
// continues from there, or ends the call with its real outcome, and writes the audit entries that the
// killed one did not.
func TestRecordStaysCorrectAfterKillBetweenSteps(t *testing.T) {
	ctx := context.Background()
	dead, alive := func(string) bool { return false }, func(string) bool { return true }
	confirm := func(t *testing.T, r *fixture, h *approval.Held) {
		t.Helper()
		if a, err := r.desk.Confirm(ctx, h.Token, true, agent, "x", "doomed"); err != nil || a.State != ledger.Running {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	say := func(t *testing.T, r *fixture, h *approval.Held, who schema.Principal, want ledger.State) {
		t.Helper()
		if a, err := r.say(h.Approval.ID, ledger.Approve, who); err != nil || a.State != want {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	claim := func(t *testing.T, r *fixture, h *approval.Held) {
		t.Helper()
		if _, err := r.desk.Claim(ctx, schema.DefaultTenant, h.Approval.ID, "doomed"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		killed string
		before func(t *testing.T, r *fixture) *approval.Held
		then   ledger.State // the state that another process sees
		after  func(t *testing.T, r *fixture, h *approval.Held)
		end    ledger.State // the state after the approval has expired and the runner is dead
	}{
		{"held for the caller", func(t *testing.T, r *fixture) *approval.Held { return r.hold(byCaller()) }, ledger.Pending, nil, ledger.Expired},
		{"held for the caller, who then confirms", func(t *testing.T, r *fixture) *approval.Held { return r.hold(byCaller()) }, ledger.Pending, confirm, ledger.Unknown},
		{"held for people", func(t *testing.T, r *fixture) *approval.Held { return r.hold(byOperators(2)) }, ledger.Pending, nil, ledger.Expired},
		{"decided by one of two", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byOperators(2))
			say(t, r, h, ben, ledger.Pending)
			return h
		}, ledger.Pending, func(t *testing.T, r *fixture, h *approval.Held) { say(t, r, h, cleo, ledger.Approved) }, ledger.Expired},
		{"approved", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byOperators(1))
			say(t, r, h, ben, ledger.Approved)
			return h
		}, ledger.Approved, claim, ledger.Unknown},
		{"approved, but not started", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byOperators(1))
			say(t, r, h, ben, ledger.Approved)
			return h
		}, ledger.Approved, nil, ledger.Expired},
		{"claimed", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byOperators(1))
			say(t, r, h, ben, ledger.Approved)
			claim(t, r, h)
			return h
		}, ledger.Running, nil, ledger.Unknown},
		{"started with its token", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byCaller())
			confirm(t, r, h)
			return h
		}, ledger.Running, func(t *testing.T, r *fixture, h *approval.Held) {
			if _, err := r.desk.Confirm(ctx, h.Token, true, agent, "x", "door"); schema.KindOf(err) != schema.KindNotFound || schema.AsError(err).CallID != h.Approval.CallID {
				t.Errorf("the same attempt at another front door: %v", err)
			}
		}, ledger.Unknown},
		{"finished", func(t *testing.T, r *fixture) *approval.Held {
			h := r.hold(byCaller())
			confirm(t, r, h)
			if _, err := r.desk.Finish(ctx, schema.DefaultTenant, h.Approval.ID, &schema.Result{Body: []byte(`{"n":1.0}`)}, nil); err != nil {
				t.Fatal(err)
			}
			return h
		}, ledger.Succeeded, func(t *testing.T, r *fixture, h *approval.Held) {
			ended, err := r.ledger.Current(ctx, schema.AllTenants(), h.Approval.ID)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := r.ledger.Result(ctx, ended); err != nil || string(b) != `{"n":1.0}` {
				t.Errorf("%s, %v", b, err)
			}
		}, ledger.Succeeded},
	} {
		t.Run(c.killed, func(t *testing.T) {
			srv := bustest.Start(t)
			doomed := open(t, srv, nil) // its audit entries are never written
			h := c.before(t, doomed)
			doomed.conn.Close()

			lines := openAudit(t, srv)
			r := open(t, srv, doomed.clock, func(o *approval.Options) { o.Audit = lines })
			if s := r.state(h.Approval.ID); s != c.then {
				t.Fatalf("another process sees that it is %s", s)
			}
			if n, err := r.desk.Reconcile(ctx, alive); n != 0 || err != nil {
				t.Fatalf("something was due at once: %d, %v", n, err)
			}
			if c.after != nil {
				c.after(t, r, h)
			}
			r.clock.advance(11 * time.Minute)
			if _, err := r.desk.Reconcile(ctx, dead); err != nil {
				t.Fatal(err)
			}
			if s := r.state(h.Approval.ID); s != c.end {
				t.Errorf("in the end it is %s", s)
			}
			if _, err := r.desk.Claim(ctx, schema.DefaultTenant, h.Approval.ID, "late"); schema.KindOf(err) != schema.KindConflict {
				t.Errorf("it was claimed when it was over: %v", err)
			}
			r.clock.advance(time.Minute)
			if _, err := r.desk.Repair(ctx, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := lines.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			if n, err := r.desk.Repair(ctx, time.Hour); n != 0 || err != nil {
				t.Errorf("%d lines were put back twice, %v", n, err)
			}
			wantHistory(t, lines, h.Approval.ID, c.end)
		})
	}
}

// wantHistory asserts that the audit record contains each step of the approval once, from its
// beginning to its end.
func wantHistory(t *testing.T, lines *audit.Log, id schema.ApprovalID, end ledger.State) {
	t.Helper()
	all, _, err := lines.Read(t.Context(), schema.AllTenants(), audit.Filter{ApprovalID: id}, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[audit.Kind]int{}
	for _, r := range all {
		seen[r.Kind]++
	}
	want := audit.Ended
	if end == ledger.Expired {
		want = audit.Expired
	}
	if seen[audit.Held] != 1 || seen[want] != 1 || want == audit.Ended && seen[audit.Ran] != 1 {
		t.Errorf("the audit record tells %v of one that is %s", seen, end)
	}
	if report, err := lines.Verify(t.Context()); err != nil || !report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestTokenWithoutRecordIsRefused(t *testing.T) {
	srv := bustest.Start(t)
	doomed := open(t, srv, nil)
	token, err := tokensOf(doomed).Mint(context.Background(), ledger.IDFor(schema.NewCallID()), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	doomed.conn.Close()
	r := open(t, srv, doomed.clock)
	if _, err := r.desk.Confirm(context.Background(), token, true, agent, "x", "door"); schema.KindOf(err) != schema.KindNotFound {
		t.Error(err)
	}
}
