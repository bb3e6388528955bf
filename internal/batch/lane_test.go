package batch

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// working is what durable calls stand on, on a NATS of its own; no worker is there.
func working(t *testing.T) (o *Options, js *jobs, stop context.CancelFunc, work *sync.WaitGroup) {
	t.Helper()
	conn := bustest.Start(t).Connect(t, "frontdoor")
	log := slog.New(slog.DiscardHandler)
	store, err := journal.Open(t.Context(), conn, journal.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	book, err := ledger.Open(t.Context(), conn, ledger.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	o = &Options{Store: store, Ledger: book, ID: "frontdoor-1", Log: log}
	o.fill()
	ctx, stop := context.WithCancel(t.Context())
	work = new(sync.WaitGroup)
	return o, newJobs(ctx, o, testIDs, work), stop, work
}

func TestALaneIsFollowedByANewOneAndEndsWhenItsCallsAreOver(t *testing.T) {
	o, js, stop, work := working(t)
	o.LaneCalls = 2
	ls := newLanes(js.ctx, o, js, work)
	var ids []schema.BatchID
	for range 3 {
		l, leave, err := ls.use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.writer.Append(t.Context(), []journal.CallRecord{{Method: methodWithdrawn, Principal: ann, Accepted: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.job.l.owned.ID())
		leave()
	}
	if ids[0] != ids[1] || ids[1] == ids[2] {
		t.Errorf("the calls went to %v", ids)
	}
	stop()
	if _, _, err := ls.use(t.Context()); schema.KindOf(err) != schema.KindUnavailable || !schema.AsError(err).Retryable {
		t.Errorf("a front door that stops took a call: %v", err)
	}
	ls.close()
	js.stop()
	work.Wait()
	for _, id := range ids {
		m, err := o.Store.Get(t.Context(), schema.DefaultTenant, id)
		if err != nil || m.Sealed.IsZero() {
			t.Errorf("lane %s is not sealed: %v", id, err)
		}
		if js.find(id) != nil {
			t.Errorf("lane %s still runs", id)
		}
	}
}

// Who waits for the lane gives up with its own context, and costs others nothing.
func TestWhoWaitsForTheLaneCanLeave(t *testing.T) {
	o, js, stop, work := working(t)
	ls := newLanes(js.ctx, o, js, work)
	if err := ls.turn.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := ls.use(left); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("it waited: %v", err)
	}
	ls.turn.Release(1)
	_, done, err := ls.use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done()
	stop()
	ls.close()
	js.stop()
	work.Wait()
}
