package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A clock jump can at worst expire an approval early. The call is held for ten minutes. The steps are
// the changes of the wall clock; jumps take no time.
func TestClockJumpRunsNoExpiredApproval(t *testing.T) {
	type step struct{ jump, pass time.Duration }
	for name, c := range map[string]struct {
		steps []step
		late  bool // more than ten minutes have passed
	}{
		"set back at the start, then run in time":  {[]step{{-time.Hour, 9 * time.Minute}}, false},
		"set back at the start, then run too late": {[]step{{-time.Hour, 11 * time.Minute}}, true},
		"set back while the call waits":            {[]step{{0, 6 * time.Minute}, {-time.Hour, 5 * time.Minute}}, true},
		"set back several times":                   {[]step{{-time.Hour, 4 * time.Minute}, {-time.Hour, 4 * time.Minute}, {-time.Minute, 3 * time.Minute}}, true},
		"set forward, then back":                   {[]step{{time.Hour, 0}, {-time.Hour, 11 * time.Minute}}, true},
		"set forward beyond the deadline":          {[]step{{time.Hour, 0}}, true},
		"not changed":                              {[]step{{0, 9 * time.Minute}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := bustest.Start(t)
			r := open(t, srv, nil)
			ctx := context.Background()
			token, people, approved := r.hold(byCaller()), r.hold(byOperators(1)), r.hold(byOperators(1))
			if _, err := r.say(approved.Approval.ID, ledger.Approve, ben); err != nil {
				t.Fatal(err)
			}
			// Another process has seen the approvals too, as Reconcile does each second.
			other := open(t, srv, r.clock)
			reconcile := func() {
				for _, d := range []*approval.Desk{r.desk, other.desk} {
					if _, err := d.Reconcile(ctx, func(string) bool { return true }); err != nil {
						t.Fatal(err)
					}
				}
			}
			reconcile()
			for i, s := range c.steps {
				r.clock.advance(s.jump)
				if i < len(c.steps)-1 || s.pass > 0 { // no process has checked yet at the end
					reconcile()
				}
				r.clock.advance(s.pass)
				if i < len(c.steps)-1 {
					reconcile()
				}
			}
			for _, d := range []*approval.Desk{other.desk, r.desk} {
				_, errToken := d.Confirm(ctx, token.Token, true, agent, "x", "door")
				_, errClaim := d.Claim(ctx, schema.DefaultTenant, approved.Approval.ID, "door")
				_, errSay := (&fixture{t: t, desk: d}).say(people.Approval.ID, ledger.Approve, cleo)
				for what, err := range map[string]error{"the token": errToken, "the claim": errClaim, "the yes": errSay} {
					kind := schema.KindOf(err) // a conflict means that it had already expired
					if c.late != (kind == schema.KindExpired || kind == schema.KindConflict) {
						t.Errorf("%s: %v", what, err)
					}
				}
				if !c.late {
					return
				}
			}
			reconcile()
			for _, h := range []*approval.Held{token, people, approved} {
				if s := r.state(h.Approval.ID); s != ledger.Expired {
					t.Errorf("it is %s", s)
				}
			}
		})
	}
}

func TestExtensionSurvivesClockJumps(t *testing.T) {
	r := open(t, bustest.Start(t), nil)
	id := r.hold(byOperators(1)).Approval.ID
	r.clock.advance(5 * time.Minute)
	if _, err := r.say(id, ledger.Extend, ben); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(-time.Hour)
	if _, err := r.desk.Reconcile(context.Background(), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	r.clock.advance(14 * time.Minute)
	if a, err := r.say(id, ledger.Extend, ben); err != nil || a.State != ledger.Pending {
		t.Fatalf("after 19 of 20 minutes: %v", err)
	}
	r.clock.advance(12 * time.Minute)
	if _, err := r.say(id, ledger.Approve, ben); schema.KindOf(err) != schema.KindExpired {
		t.Errorf("after 31 of 30 minutes: %v", err)
	}
}

// The ledger deletes the arguments of a call 30 days after it was held. An approval after that would be of
// a call that cannot run any more.
func TestDeadlineEndsBeforeTheArgumentsAreDeleted(t *testing.T) {
	const day = 24 * time.Hour
	r := open(t, bustest.Start(t), nil)
	rule := byOperators(1)
	rule.Expires = 20 * day
	held := r.hold(rule).Approval
	r.clock.advance(19 * day)
	a, err := r.say(held.ID, ledger.Extend, ben)
	if err != nil || !a.Expires.After(held.Expires) || a.Expires.After(held.Created.Add(30*day)) {
		t.Fatalf("the deadline is %s after the request: %v", a.Expires.Sub(held.Created), err)
	}
	if _, err := r.say(held.ID, ledger.Extend, cleo); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("a second extension: %v", err)
	}
}
