package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// openHourlyRetention opens a ledger in which the tenant red keeps payloads for an hour.
func openHourlyRetention(t *testing.T, s *bustest.Server, name string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), s.Connect(t, name), Options{Retention: retention.Periods{"red": time.Hour}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// needless is for [Payloads.Forget] where nobody needs an approval.
func needless(context.Context, *Approval) (bool, error) { return false, nil }

// storeSecrets stores a held call of the tenant that has ended. Its arguments, edited arguments,
// result, error and reasons contain its id; arguments that were asked for are small, as are the
// edited ones of every other call, and the result is large.
func storeSecrets(t *testing.T, l *Ledger, tenant schema.TenantID, last State) *Approval {
	t.Helper()
	ctx := t.Context()
	a := &Approval{CallID: schema.NewCallID(), Definition: []byte(`{"name":"pay"}`), Binding: Binding{Requester: Requester{Name: "ann"}, Tenant: tenant}, Expires: time.Now().Add(time.Hour)}
	secret := "secret of " + string(a.CallID)
	if _, err := l.Create(ctx, a, []byte(secret)); err != nil {
		t.Fatal(err)
	}
	large := []byte(strings.Repeat(" ", 2*inlineResult) + secret)
	edited := []byte("edited, " + secret)
	sum, err := l.PutEdited(ctx, tenant, a.ID, edited)
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(*Approval)) {
		t.Helper()
		if _, err := l.Change(ctx, tenant, a.ID, func(a *Approval) error { f(a); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(a *Approval) {
		a.Edited = &Edited{By: "ben", ArgumentsDigest: sum, Size: int64(len(edited)), At: time.Now(), Reason: secret}
		a.Decisions = append(a.Decisions, Decision{By: "ben", Kind: Approve, Reason: secret, At: time.Now()})
	})
	if last == Pending {
		return a
	}
	change(func(a *Approval) { a.State = Approved })
	change(func(a *Approval) { a.State, a.Runner = Running, &Runner{FrontDoor: "fd-1", Started: time.Now()} })
	if _, err = l.End(ctx, tenant, a.ID, large, func(a *Approval) error {
		a.State, a.Ended, a.Error = last, time.Now(), schema.Errorf(schema.KindProtocol, "%s", secret)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return a
}

func streamsOf(t *testing.T, s *bustest.Server, a *Approval) []string {
	t.Helper()
	return bustest.StreamsWith(t, s.URL, "secret of "+string(a.CallID))
}

func TestHeldCallsAreForgottenAfterTenantRetention(t *testing.T) {
	ctx := t.Context()
	s := bustest.Start(t)
	l, other, approver := openHourlyRetention(t, s, "a"), openHourlyRetention(t, s, "b"), openFor(t, s, "approver")
	red, blue, waits, kept := storeSecrets(t, l, "red", Succeeded), storeSecrets(t, l, "blue", Succeeded), storeSecrets(t, l, "red", Pending), storeSecrets(t, l, "red", Failed)
	// Arguments of a process that was killed between them and the end.
	large := []byte(strings.Repeat(" ", smallArguments) + "secret of " + string(red.CallID))
	if err := l.store.putParts(ctx, "red", inHeld, red.ID, kindArguments, schema.Digest(large), large); err != nil {
		t.Fatal(err)
	}
	needed := func(_ context.Context, a *Approval) (bool, error) { return a.ID == kept.ID, nil }
	seen := make(chan *Approval, 100)
	defer approver.Watch(schema.AllTenants(), func(a *Approval) { seen <- a })()
	if err := l.Payloads.Forget(ctx, time.Now(), needed); err != nil {
		t.Fatal(err)
	}
	if got := streamsOf(t, s, red); !slices.Equal(got, []string{bus.StreamHeld, bus.StreamLedger}) {
		t.Fatalf("before the retention has ended, it is in %v", got)
	}
	late := time.Now().Add(time.Hour + time.Minute)
	for range 2 {
		for _, who := range []*Ledger{l, other} {
			if err := who.Payloads.Forget(ctx, late, needed); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := streamsOf(t, s, red); len(got) != 0 {
		t.Errorf("payloads are in %v", got)
	}
	for name, a := range map[string]*Approval{"of another tenant": blue, "that waits": waits, "that is needed": kept} {
		if got := streamsOf(t, s, a); !slices.Equal(got, []string{bus.StreamLedger}) {
			t.Errorf("payloads of a call %s are in %v", name, got)
		}
		if _, _, err := other.Get(ctx, schema.AllTenants(), a.ID); err != nil {
			t.Errorf("a call %s: %v", name, err)
		}
	}
	// Nobody has it any more; a change of the next one says that the approver has heard of it.
	l.becomes(t, l.holds(t, 10).ID, Denied)
	for a := range seen {
		if a.ID == red.ID {
			t.Errorf("watchers are told of it: %+v", a)
		}
		if a.State == Denied {
			break
		}
	}
	for name, who := range map[string]*Ledger{"who forgot it": l, "another front door": other, "an approver": approver, "one that starts": openHourlyRetention(t, s, "c")} {
		unknown := func(what string, err error) {
			t.Helper()
			if want := NoApproval(red.ID); err == nil || err.Error() != want.Error() {
				t.Errorf("%s, %s: %v, want %v", name, what, err, want)
			}
		}
		_, _, err := who.ByCall(ctx, schema.AllTenants(), red.CallID)
		unknown("reads it", err)
		_, err = who.Current(ctx, schema.AllTenants(), red.ID)
		unknown("reads it now", err)
		_, err = who.Asked(ctx, "red", red.ID)
		unknown("asks for the arguments", err)
		_, err = who.End(ctx, "red", red.ID, bytes.Repeat([]byte("x"), 2*inlineResult), func(*Approval) error { return nil })
		unknown("ends it", err)
		if found := who.Where(schema.AllTenants(), func(a *Approval) bool { return a.ID == red.ID }); len(found) > 0 {
			t.Errorf("%s lists %+v", name, found[0])
		}
		if _, err = who.Create(ctx, &Approval{CallID: red.CallID, Binding: Binding{Requester: Requester{Name: "ann"}, Tenant: "red"}, Expires: late}, []byte("{}")); schema.KindOf(err) != schema.KindConflict {
			t.Errorf("%s holds the call again: %v", name, err)
		}
		if name != "an approver" && len(who.view.overdue(late)) != 1 { // the one that is needed
			t.Errorf("%s is to forget %v", name, who.view.overdue(late))
		}
	}
	if len(approver.view.due) != 0 {
		t.Errorf("an approver is to forget %v", approver.view.due)
	}
}

// A late answer moves the end, and the view of who forgets may be behind.
func TestRetentionCountsFromTheLastEnd(t *testing.T) {
	s := bustest.Start(t)
	l := openHourlyRetention(t, s, "a")
	a := storeSecrets(t, l, "red", Unknown)
	if _, err := l.End(t.Context(), "red", a.ID, []byte("{}"), func(a *Approval) error {
		a.State, a.Ended, a.Error = Succeeded, a.Ended.Add(30*time.Minute), nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	forget := func(after time.Duration) schema.Kind {
		if err := l.Payloads.Forget(t.Context(), time.Now().Add(after), needless); err != nil {
			t.Fatal(err)
		}
		_, err := l.Current(t.Context(), schema.AllTenants(), a.ID)
		return schema.KindOf(err)
	}
	l.view.mu.Lock()
	l.view.due[a.ID] = due{"red", time.Now()} // as if it had not heard of the answer
	l.view.mu.Unlock()
	if got := forget(time.Hour + time.Minute); got != "" {
		t.Errorf("an hour after the first end, reading it gives %q", got)
	}
	if got := forget(2 * time.Hour); got != schema.KindNotFound {
		t.Errorf("an hour after the second end, reading it gives %q", got)
	}
}

// errEnded is what a person hears who would approve a call that has ended.
var errEnded = errors.New("it has ended")

// Wherever a process is killed, and whoever then starts with a view from before, the call has
// ended and stays so.
func TestCallBeingForgottenNeverBecomesPendingAgain(t *testing.T) {
	ctx := t.Context()
	late := time.Now().Add(time.Hour + time.Minute)
	steps := []func(l *Ledger, a *Approval, revision uint64) error{
		func(*Ledger, *Approval, uint64) error { return nil }, // before the first
		func(l *Ledger, a *Approval, revision uint64) error {
			_, err := l.Payloads.forgetState(ctx, a, revision)
			return err
		},
		func(l *Ledger, a *Approval, _ uint64) error { return l.store.forgetParts(ctx, a.ID) },
		func(l *Ledger, a *Approval, _ uint64) error { return l.store.forgetOpening(ctx, forgotten(a)) },
	}
	for _, last := range []State{Succeeded, Unknown} {
		for killed := range steps {
			s := bustest.Start(t)
			l := openHourlyRetention(t, s, "a")
			a := storeSecrets(t, l, "red", last)
			pending := row{a: a.Clone(), revision: 0, sequence: 1}
			r, err := l.store.get(ctx, a.ID, bus.Leader)
			if err != nil {
				t.Fatal(err)
			}
			now, err := decode(r.Head)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps[:killed+1] {
				if err := step(l, now, r.Revision); err != nil {
					t.Fatal(err)
				}
			}
			next := openHourlyRetention(t, s, "b")
			for name, who := range map[string]*Ledger{"the next process": next, "one with an old view": openHourlyRetention(t, s, "c")} {
				if name == "one with an old view" { // as of a process that was stopped for hours
					who.view.mu.Lock()
					who.view.rows[a.ID] = pending
					who.view.mu.Unlock()
				}
				if got, err := who.Change(ctx, "red", a.ID, func(a *Approval) error {
					if a.State != Pending {
						return errEnded
					}
					a.State = Approved
					return nil
				}); err == nil || killed > 0 && schema.KindOf(err) != schema.KindNotFound {
					t.Errorf("killed after step %d, %s approved it: %v, %v", killed, name, got, err)
				}
				for what, from := range map[string]bus.Source{"the leader": bus.Leader, "any": bus.Either} {
					r, err := who.store.get(ctx, a.ID, from)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := decode(r.Head); err != nil || got.State != last {
						t.Errorf("killed after step %d, %s reads %v from %s: %v", killed, name, got, what, err)
					}
				}
			}
			if err := next.Payloads.Forget(ctx, late, needless); err != nil {
				t.Fatal(err)
			}
			if got := streamsOf(t, s, a); len(got) != 0 {
				t.Errorf("killed after step %d, payloads are in %v after the next look", killed, got)
			}
			if got := openHourlyRetention(t, s, "d").view.due; len(got) != 0 {
				t.Errorf("killed after step %d, the one after that is to forget %v", killed, got)
			}
			// The state grows old before the opening, which says the same.
			opened, err := next.store.opening(ctx, a.ID)
			if err != nil {
				t.Fatal(err)
			}
			var got Approval
			if err := json.Unmarshal(opened.Head, &got); err != nil || got.State != last || !got.Forgotten {
				t.Errorf("killed after step %d, the opening says %+v, %v", killed, got, err)
			}
		}
	}
}
