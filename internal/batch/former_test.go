package batch

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// An owner of a journal died after a call that it held had run. The view of the next owner does not have
// the approval of the call, because others have ended since. Nobody runs the server, so the call would
// wait if it were sent again.
func TestHeldCallThatEndedLongAgoIsNotRunByTheNextOwner(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "frontdoor")
	o, js, stop, work := workingOn(t, conn, nil)
	m := &journal.Manifest{ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: ann, Expires: time.Now().Add(time.Hour)}
	w, err := o.Store.Begin(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	call := journal.CallRecord{Server: "s", Tool: "t", Principal: ann, Arguments: []byte(`{}`)}
	if _, err := w.Append(t.Context(), []journal.CallRecord{call}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := claimed(t, o, m.ID).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []schema.CallID{testIDs.of(m, &call), schema.NewCallID()} {
		ranHeld(t, o, id)
	}

	if o.Ledger, err = ledger.Open(t.Context(), conn, ledger.Options{MaxEnded: 1, Log: o.Log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Ledger.Close)
	sends(t, conn, o)
	defer func() { stop(); work.Wait() }()
	js.take(m)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if rec, err := o.Store.WaitResult(ctx, ann.Tenant, m.ID, 0); err != nil || rec.Outcome != journal.Succeeded {
		t.Errorf("%+v, %v", rec, err)
	}
}

// ranHeld stores the approval of a call of ann that has run.
func ranHeld(t *testing.T, o *Options, id schema.CallID) {
	t.Helper()
	a := &ledger.Approval{CallID: id, Binding: ledger.Binding{Requester: ledger.Requester{Name: ann.Name}, Tenant: ann.Tenant}, Expires: time.Now().Add(time.Hour)}
	if _, err := o.Ledger.Create(t.Context(), a, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ledger.Change(t.Context(), ann.Tenant, a.ID, func(a *ledger.Approval) error {
		a.State, a.Runner = ledger.Running, &ledger.Runner{FrontDoor: "frontdoor-0", Started: time.Now()}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ledger.End(t.Context(), ann.Tenant, a.ID, []byte(`{"content":[]}`), func(a *ledger.Approval) error {
		a.State, a.Ended = ledger.Succeeded, time.Now()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// nextJob returns the job of the next owner of a batch with one call, whose approval by the owner before has
// led to a run. The view of the next owner has only the latest approval that ended, which is another one.
func nextJob(t *testing.T) *job {
	t.Helper()
	conn := bustest.Start(t).Connect(t, "frontdoor")
	o, _, stop, _ := workingOn(t, conn, nil)
	t.Cleanup(stop)
	owned := sealedBatch(t, o, 1)
	if err := owned.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []schema.CallID{testIDs.CallID(owned.ID(), 0, ann.Name), schema.NewCallID()} {
		ranHeld(t, o, id)
	}
	var err error
	if o.Ledger, err = ledger.Open(t.Context(), conn, ledger.Options{MaxEnded: 1, Log: o.Log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Ledger.Close)
	o.Desk = approval.New(approval.Options{Ledger: o.Ledger, Log: o.Log})
	sends(t, conn, o)
	j := newJob(o, testIDs, claimed(t, o, owned.ID()))
	if err := j.held.findFormer(); err != nil {
		t.Fatal(err)
	}
	return j
}

// Otherwise the caller would be told that the call did not start, and would send it again.
func TestCanceledBatchEndsAHeldCallThatRanUnderAnEarlierOwnerAsItEnded(t *testing.T) {
	j := nextJob(t)
	if err := j.finisher.endAll(errCanceled); err != nil {
		t.Fatal(err)
	}
	if rec, err := j.l.o.Store.FindResult(t.Context(), ann.Tenant, j.l.owned.ID(), 0, journal.Cursor{}); err != nil || rec.Outcome != journal.Succeeded {
		t.Errorf("%+v, %v", rec, err)
	}
}

// The call has not been read by the next owner yet, and is not held any more.
func TestHeldCallThatRanUnderAnEarlierOwnerIsNotCanceled(t *testing.T) {
	j := nextJob(t)
	j.takeBack(0)
	if counts := j.l.owned.Progress().Counts(); counts.Total() != 0 {
		t.Errorf("%+v", counts)
	}
}

// A front door that was frozen can continue with a call that the next owner of the journal has ended.
func TestNoCallIsHeldAfterTheLeaseHasExpired(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "frontdoor")
	o, _, stop, _ := workingOn(t, conn, nil)
	defer stop()
	var err error
	if o.Store, err = journal.Open(t.Context(), conn, journal.Options{Lease: time.Second, Log: o.Log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Store.Close)
	owned := sealedBatch(t, o, 1)
	owned.Close() // it is not renewed any more
	polltest.Until(t, "the end of the lease", func() bool { return !owned.Held() })
	j := newJob(o, testIDs, owned)
	it := j.l.item(&journal.CallRecord{Server: "s", Tool: "t", Principal: ann}, 0)
	asks := risk.Assessment{Level: risk.Medium, Approval: &risk.Approval{By: risk.ByCaller, Needed: 1, Expires: time.Hour}}
	if _, err := j.held.hold(it, admission.Verdict{Assessment: asks}); err == nil || !mayHoldLater(err) {
		t.Errorf("%v", err)
	}
	if held, err := j.held.stored(it); held || err != nil {
		t.Errorf("it is held: %v, %v", held, err)
	}
}

// The view of the next owner is behind: it does not have the approval of a call yet, which the earlier owner
// requested before it left.
func TestNextOwnerFindsACallThatWasHeldAMomentAgo(t *testing.T) {
	srv := bustest.Start(t)
	conn := srv.Connect(t, "frontdoor")
	o, _, stop, _ := workingOn(t, conn, nil)
	defer stop()
	owned := sealedBatch(t, o, 1)
	if err := owned.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	behind, err := ledger.Open(t.Context(), conn, ledger.Options{Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(behind.Close)
	arrived, wait := make(chan bool, 1), make(chan bool)
	defer behind.Watch(schema.AllTenants(), func(*ledger.Approval) {
		select {
		case arrived <- true:
			<-wait
		default:
		}
	})()
	ranHeld(t, o, schema.NewCallID())
	<-arrived
	ranHeld(t, o, testIDs.CallID(owned.ID(), 0, ann.Name))
	reads, nc := make(chan *nats.Msg, 10), bustest.JetStream(t, srv.URL).Conn()
	if _, err := nc.ChanSubscribe("$JS.API.STREAM.MSG.GET."+bus.StreamLedger, reads); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}

	o.Ledger = behind
	j := newJob(o, testIDs, claimed(t, o, owned.ID()))
	done := make(chan error, 1)
	go func() { done <- j.held.findFormer() }()
	select {
	case <-reads: // it asks the leader for the last write
		close(wait)
		err = <-done
	case err = <-done:
		close(wait)
	}
	if err != nil || !j.held.former[0] {
		t.Errorf("%v, %v", j.held.former, err)
	}
}

// The end of an approval is announced once. A replica that lags still has the approval without its end.
func TestEndOfAHeldCallIsFoundWhileAReplicaLags(t *testing.T) {
	srv := bustest.Start(t)
	o, _, stop, _ := workingOn(t, srv.Connect(t, "frontdoor"), nil)
	defer stop()
	j := newJob(o, testIDs, sealedBatch(t, o, 1))
	it := j.l.item(&journal.CallRecord{Principal: ann}, 0)
	ranHeld(t, o, it.call.ID)
	srv.Lag(t, bus.StreamLedger+"."+bus.SubjectApproval+bus.Token(ledger.IDFor(it.call.ID))+bus.SuffixState)
	if a, _, err := o.Ledger.ByCall(t.Context(), schema.AllTenants(), it.call.ID); err != nil || a.State != ledger.Pending {
		t.Fatalf("no replica lags: %+v, %v", a, err)
	}
	if rec, ended, err := j.held.endOf(it); !ended || rec.Outcome != journal.Succeeded || err != nil {
		t.Errorf("%+v, %v, %v", rec, ended, err)
	}
}
