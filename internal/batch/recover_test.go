package batch

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// Workers remember the outcomes of calls for two minutes. A lane has up to 20,000 callbacks to send again,
// and the queue of callbacks can be full.
func TestCallbacksOfEndedCallsDoNotDelayTheRecovery(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "frontdoor")
	o, js, stop, work := workingOn(t, conn, nil)
	sends(t, conn, o)
	ends, full := make(chan End, 10), make(chan struct{})
	o.Ended = func(e End) {
		<-full
		ends <- e
		e.Stored(true)
	}

	// An earlier owner dies. It has ended the first two calls, one of them in two steps, and sent the last.
	m := &journal.Manifest{ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: ann, Expires: time.Now().Add(time.Hour)}
	w, err := o.Store.Begin(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	call := journal.CallRecord{Server: "s", Tool: "t", Principal: ann, CallbackURL: "https://example.com/"}
	silent := call
	silent.CallbackURL = ""
	if _, err := w.Append(t.Context(), []journal.CallRecord{call, call, silent}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := claimed(t, o, m.ID)
	if err := dead.Intend(t.Context(), journal.Intent(2, 1, "gone")); err != nil {
		t.Fatal(err)
	}
	result := func(index uint64, outcome journal.Outcome) journal.ResultRecord {
		return journal.ResultRecord{Index: index, Outcome: outcome, Attempt: 1, Ended: time.Now(), Error: encodeError(notKnown())}
	}
	for _, r := range []journal.ResultRecord{result(0, journal.Succeeded), result(1, journal.Unknown), result(1, journal.Failed)} {
		if err := dead.Results(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := dead.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	js.take(m)
	if rec, err := o.Store.WaitResult(t.Context(), ann.Tenant, m.ID, 2); err != nil || rec.Outcome != journal.Unknown {
		t.Fatalf("%+v, %v", rec, err)
	}
	if len(ends) != 0 {
		t.Fatal("the callbacks are not delayed")
	}
	close(full)
	got := map[uint64]journal.Outcome{}
	for range 2 {
		e := <-ends
		got[e.Result.Index] = e.Result.Outcome
		if e.Call.Index != e.Result.Index || e.CallID != testIDs.CallID(m.ID, e.Call.Index, ann.Name) {
			t.Errorf("%+v", e)
		}
	}
	if got[0] != journal.Succeeded || got[1] != journal.Failed || len(got) != 2 {
		t.Errorf("callbacks are sent for %v", got)
	}
	polltest.Until(t, "the end of the journal", func() bool {
		m, err := o.Store.Get(t.Context(), "", m.ID)
		return err == nil && m.State == journal.Ended
	})
	if len(ends) != 0 {
		t.Error("a callback is sent twice")
	}
	stop()
	js.stop()
	work.Wait()
}

// Its outcome is unknown because its worker is gone, and not because its record is lost.
func TestSentCallIsNotLostWhileAReplicaLags(t *testing.T) {
	srv := bustest.Start(t)
	conn := srv.Connect(t, "frontdoor")
	o, _, stop, _ := workingOn(t, conn, nil)
	defer stop()
	sends(t, conn, o)
	dead := sealedBatch(t, o, 1)
	if err := dead.Intend(t.Context(), journal.Intent(0, 1, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := dead.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	j := newJob(o, testIDs, claimed(t, o, dead.ID()))
	srv.Lag(t, bus.StreamCalls)
	if err := j.recovery.run(j.l.owned.Progress().Open()); err != nil || j.losses.found.Load() {
		t.Errorf("records are lost: %v, %v", j.losses.found.Load(), err)
	}
	j.l.window.wait()
}
