package batch

import (
	"log/slog"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Without that, the stream of calls grows until it is full.
func TestCallsOfAllEndedJournalsAreDeleted(t *testing.T) {
	conn := bustest.Start(t).Connect(t, "frontdoor")
	log := slog.New(slog.DiscardHandler)
	open := func() *Options {
		store, err := journal.Open(t.Context(), conn, journal.Options{MaxEnded: 1, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		o := &Options{Store: store, ID: "frontdoor-1", Log: log}
		o.fill()
		return o
	}
	o := open()
	var ids []schema.BatchID
	for range 3 { // more than lists keep in memory
		owned := sealedBatch(t, o, 1)
		ids = append(ids, owned.ID())
		if err := owned.Results(t.Context(), journal.ResultRecord{Outcome: journal.Succeeded, Ended: time.Now()}); err != nil {
			t.Fatal(err)
		}
		newJob(o, testIDs, owned).end(nil, nil)
	}
	// The process that deletes the calls of this one dies before it has done so.
	if _, err := o.Store.Change(t.Context(), ann.Tenant, ids[2], func(m *journal.Manifest) error {
		m.Purged = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stored := func(id schema.BatchID) uint64 {
		n, err := o.Store.Accepted(t.Context(), ann.Tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	o.purgeCalls(t.Context(), time.Now())
	for _, id := range ids {
		if stored(id) != 1 {
			t.Error("calls are deleted at once")
		}
	}
	o = open() // after a restart
	o.purgeCalls(t.Context(), time.Now().Add(o.KeepCalls+time.Minute))
	for i, id := range ids {
		if n := stored(id); n != 0 {
			t.Errorf("of journal %d there are %d calls", i, n)
		}
	}
	if left := o.Store.Payloads.WithCalls(time.Now().Add(time.Hour)); len(left) != 0 {
		t.Errorf("to delete are still %v", left)
	}
}
