package batch

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// sealedBatch stores a batch of ann with n calls and claims it.
func sealedBatch(t *testing.T, o *Options, n int) *journal.Owned {
	t.Helper()
	m := &journal.Manifest{ID: newJournalID(journal.Batch), Kind: journal.Batch, Principal: ann, Expires: time.Now().Add(time.Hour)}
	w, err := o.Store.Begin(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), make([]journal.CallRecord, n)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return claimed(t, o, m.ID)
}

func claimed(t *testing.T, o *Options, id schema.BatchID) *journal.Owned {
	t.Helper()
	owned, err := o.Store.Claim(t.Context(), ann.Tenant, id, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owned.Close)
	return owned
}

// A canceled batch waits for its approved calls that run. If the front door stops meanwhile, or the
// result of a call could not be stored, the next owner has to continue.
func TestJournalDoesNotEndWithACallWithoutResult(t *testing.T) {
	for _, cause := range []error{nil, errCanceled, errExpired, errDamaged} {
		o, _, stop, _ := working(t)
		defer stop()
		var told int
		o.Ended = func(End) { told++ }
		owned := sealedBatch(t, o, 2)
		id := owned.ID()
		if err := owned.Results(t.Context(), journal.ResultRecord{Index: 0, Outcome: journal.Canceled, Ended: time.Now()}); err != nil {
			t.Fatal(err)
		}
		newJob(o, testIDs, owned).end(nil, cause)
		m, err := o.Store.Get(t.Context(), ann.Tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		if m.State == journal.Ended || told != 0 {
			t.Errorf("%v: it is %s, %v; its end was announced %d times", cause, m.State, err, told)
			continue
		}
		next := claimed(t, o, id)
		if err := next.Results(t.Context(), journal.ResultRecord{Index: 1, Outcome: journal.Succeeded, Attempt: 1, Ended: time.Now()}); err != nil {
			t.Fatal(err)
		}
		newJob(o, testIDs, next).end(nil, cause)
		if m, err := o.Store.Get(t.Context(), ann.Tenant, id); err != nil || m.State != journal.Ended || m.Counts.Total() != 2 || told != 1 {
			t.Errorf("%v: with all results it is %s, %v; its end was announced %d times", cause, m.State, err, told)
		}
	}
}

// Only the next owner of a journal that has not ended sends its callbacks again.
func TestJournalEndsAfterTheCallbacksOfItsCallsAreStored(t *testing.T) {
	for _, stored := range []bool{true, false} {
		o, _, stop, _ := working(t)
		defer stop()
		owed := make(chan func(bool), 1)
		o.Ended = func(e End) {
			if e.Call != nil {
				owed <- e.Stored
			}
		}
		owned := sealedBatch(t, o, 1)
		state := func() journal.State {
			t.Helper()
			m, err := o.Store.Get(t.Context(), ann.Tenant, owned.ID())
			if err != nil {
				t.Fatal(err)
			}
			return m.State
		}
		j := newJob(o, testIDs, owned)
		it := j.l.item(&journal.CallRecord{Principal: ann, CallbackURL: "https://example.com/"}, 1)
		j.results.store(it, j.results.record(it, &schema.Result{Body: []byte(`{}`)}, nil))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			j.end(nil, errStopped)
		}()
		if s := state(); s == journal.Ended {
			t.Errorf("it ended before its callback was stored")
		}
		(<-owed)(stored)
		<-ended
		if s := state(); (s == journal.Ended) != stored {
			t.Errorf("with its callback stored: %v, it is %s", stored, s)
		}
	}
}
