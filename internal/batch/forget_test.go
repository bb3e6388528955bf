package batch

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/schema"
)

// heldAndEnded stores a held call of the tenant red whose approval is denied.
func heldAndEnded(t *testing.T, o *Options, id schema.CallID) *ledger.Approval {
	t.Helper()
	a := &ledger.Approval{CallID: id, Binding: ledger.Binding{Requester: ledger.Requester{Name: "ann"}, Tenant: "red"}, Expires: time.Now().Add(time.Hour)}
	if _, err := o.Ledger.Create(t.Context(), a, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	a, err := o.Ledger.Change(t.Context(), "red", a.ID, func(a *ledger.Approval) error {
		a.State, a.Ended = ledger.Denied, time.Now()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A journal copies the outcomes of its held calls before it ends. Until then the approval must be
// kept: without it, the next owner would request it again.
func TestAnApprovalIsForgottenAfterTheJournalOfItsCall(t *testing.T) {
	o, _, stop, _ := workingWith(t, retention.Periods{"red": time.Hour})
	defer stop()
	ctx := t.Context()
	m := &journal.Manifest{Kind: journal.Batch, Principal: schema.Principal{Name: "ann", Tenant: "red"}, Expires: time.Now().Add(time.Hour)}
	m.ID = newJournalID(journal.Batch)
	w, err := o.Store.Begin(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, []journal.CallRecord{{Server: "s", Tool: "t"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	stored, single := heldAndEnded(t, o, testIDs.CallID(m.ID, 0, "ann")), heldAndEnded(t, o, schema.NewCallID())
	late := time.Now().Add(time.Hour + time.Minute)
	has := func(a *ledger.Approval) bool {
		_, err := o.Ledger.Current(ctx, schema.AllTenants(), a.ID)
		if err != nil && schema.KindOf(err) != schema.KindNotFound {
			t.Fatal(err)
		}
		return err == nil
	}
	o.forget(ctx, time.Now())
	if !has(single) || !has(stored) {
		t.Fatal("an approval is forgotten at once")
	}
	repaired := o.Desk
	o.Desk = approval.New(approval.Options{Ledger: o.Ledger, Log: o.Log}) // it has not repaired its records yet
	o.forget(ctx, late)
	if !has(single) {
		t.Error("an approval is forgotten whose audit lines may be missing")
	}
	o.Desk = repaired
	o.forget(ctx, late)
	if has(single) {
		t.Error("that of a single call is kept")
	}
	if !has(stored) {
		t.Error("that of a batch which runs is forgotten")
	}
	owned, err := o.Store.Claim(ctx, "red", m.ID, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := owned.Results(ctx, journal.ResultRecord{Outcome: journal.Denied, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := owned.SetState(ctx, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := owned.Release(ctx); err != nil {
		t.Fatal(err)
	}
	o.forget(ctx, late)
	if has(stored) {
		t.Error("that of a batch which has ended is kept")
	}
}

// The call of an idempotency key may be deleted before the key expires.
func TestIdempotencyKeyOfADeletedCallRunsNothing(t *testing.T) {
	o, js, stop, _ := workingWith(t, retention.Periods{"red": time.Hour})
	defer stop()
	c := &Calls{o: o, ids: testIDs, jobs: js, finder: &finder{o: o, ids: testIDs, jobs: js}}
	for name, k := range map[string]struct {
		tenant schema.TenantID
		age    time.Duration
		want   schema.Kind
	}{
		"after the retention":      {"red", time.Hour + time.Minute, schema.KindNotFound},
		"before it is over":        {"red", 59 * time.Minute, schema.KindOutcomeUnknown},
		"of a tenant without one":  {"blue", 23 * time.Hour, schema.KindOutcomeUnknown},
		"a replica has it not yet": {"red", time.Second, ""},
	} {
		who := schema.Principal{Name: "ann", Tenant: k.tenant}
		entry := journal.Entry{Fingerprint: "f", CallID: schema.NewCallID(), At: time.Now().Add(-k.age)}
		ticket, err := c.replayStored(t.Context(), entry, &Submission{Call: &schema.Call{Principal: who}, Fingerprint: "f"})
		if schema.KindOf(err) != k.want || err == nil && !ticket.Replayed {
			t.Errorf("%s: %+v, %v", name, ticket, err)
		}
		// Version 0.1 stored the key by the name of the principal alone.
		if k.want == schema.KindNotFound {
			if err := o.checkOwner(t.Context(), &who, &entry); err != nil {
				t.Errorf("%s, of version 0.1: %v", name, err)
			}
		} else if err := o.checkOwner(t.Context(), &who, &entry); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%s, of version 0.1: %v", name, err)
		}
	}
}

// A journal whose records were deleted before a loss was accepted has lost nothing.
func TestDeletedJournalIsNotSettled(t *testing.T) {
	o, js, stop, work := workingWith(t, retention.Periods{"red": time.Hour})
	ls := newLanes(js.ctx, o, js, work)
	o.LaneCalls = 1
	l, leave, err := ls.use(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{}, 10)
	defer o.Store.WatchOne(schema.AllTenants(), l.job.l.owned.ID(), func(m *journal.Manifest) {
		if m.State == journal.Ended {
			over <- struct{}{}
		}
	})()
	id := l.job.l.owned.ID()
	endedCall(t, l, "red")
	leave()
	take(t, ls, "red") // the next lane
	<-over
	polltest.Until(t, "its lease is released", func() bool { return js.find(id) == nil })
	o.forget(t.Context(), time.Now().Add(2*time.Hour))
	o.LostBefore = time.Now().Add(time.Hour)
	o.settleEnded(t.Context(), testIDs)
	m, err := o.Store.Get(t.Context(), "red", id)
	if err != nil || !m.Emptied || m.Ending != journal.Completed || m.Epoch != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	stop()
	ls.close()
	js.stop()
	work.Wait()
}

// Results expire before the batch does. Nothing is known of its calls afterwards.
func TestCallWithExpiredResultIsNotQueued(t *testing.T) {
	o, js, stop, _ := working(t)
	defer stop()
	ctx := t.Context()
	m := &journal.Manifest{ID: newJournalID(journal.Batch), Kind: journal.Batch, Principal: ann, Expires: time.Now().Add(time.Hour)}
	w, err := o.Store.Begin(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, []journal.CallRecord{{Server: "s", Tool: "t"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Store.Change(ctx, ann.Tenant, m.ID, func(m *journal.Manifest) error { m.End(journal.Completed, ""); return nil }); err != nil {
		t.Fatal(err)
	}
	f, id := &finder{o: o, ids: testIDs, jobs: js}, testIDs.CallID(m.ID, 0, ann.Name)
	for range 2 { // with its arguments, and without
		if s, err := f.standing(ctx, id, ann, 0); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("%+v, %v", s, err)
		}
		if err := o.Store.PurgeCalls(ctx, ann.Tenant, m.ID); err != nil {
			t.Fatal(err)
		}
	}
}
