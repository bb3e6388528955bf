package release

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log holds call records and a ledger.
type log struct {
	t       *testing.T
	records *records.Recorder
	ledger  *ledger.Ledger
}

func openLog(t *testing.T) *log {
	conn, quiet := bustest.Start(t).Connect(t, "front"), slog.New(slog.DiscardHandler)
	l, err := ledger.Open(t.Context(), conn, ledger.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	r, err := records.Open(t.Context(), conn, records.Options{FrontDoor: "door", Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &log{t, r, l}
}

// expired adds a call that expired that long ago. known adds it to the log as held.
func (l *log) expired(id schema.CallID, ago time.Duration, known bool) schema.CallID {
	l.t.Helper()
	now := time.Now().Add(-ago - time.Minute)
	desk := approval.New(approval.Options{Ledger: l.ledger, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	call := &schema.Call{ID: id, Server: "bank", Tool: "pay", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "ci", Tenant: "red"}}
	held, err := desk.Open(l.t.Context(), call, json.RawMessage(`{}`), &risk.Assessment{Level: risk.Medium, Approval: &risk.Approval{By: risk.ByCaller, Needed: 1, Expires: time.Second}}, "")
	if err != nil {
		l.t.Fatal(err)
	}
	if known {
		rec := recordOf(held.Approval)
		rec.State, rec.Decision, rec.Rule = schema.StateHeld, risk.Held, "ask"
		l.records.Add(&rec)
	}
	now = now.Add(time.Minute)
	if n, err := desk.Reconcile(l.t.Context(), func(string) bool { return false }); n != 1 || err != nil {
		l.t.Fatalf("%d have expired: %v", n, err)
	}
	return id
}

// is returns the record of a call, or an empty one if the log has none.
func (l *log) is(id schema.CallID) *records.Record {
	l.t.Helper()
	rec, err := l.records.Get(l.t.Context(), schema.AllTenants(), id)
	if schema.KindOf(err) == schema.KindNotFound {
		return &records.Record{}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return rec
}

func TestCatchUpWritesOnlyEndsMissingInTheLog(t *testing.T) {
	l := openLog(t)
	lately, unknown := l.expired(schema.NewCallID(), time.Hour, true), l.expired(schema.NewCallID(), time.Hour, false)
	old := l.expired(schema.NewCallID(), endsWithin+time.Hour, true)
	stored := l.expired(batch.NewIDs([]byte("secret")).CallID(schema.BatchID(schema.NewID("batch")), 7, "ci"), time.Hour, true)
	e := &ends{records: l.records, wake: make(chan struct{}, 1)}
	for range 2 { // as several front doors, or several starts
		e.catchUp(l.ledger)
		all := e.take()
		if len(all) != 3 {
			t.Errorf("%d ends are caught up with, want three", len(all))
		}
		e.write(t.Context(), all)
	}
	rec := l.is(lately)
	if rec.State != schema.StateExpired || rec.Error != schema.KindExpired || rec.Tenant != "red" || rec.Rule != "ask" || time.Since(time.Unix(0, rec.Ended)).Round(time.Minute) != time.Hour {
		t.Errorf("%+v", rec)
	}
	a, _, err := l.ledger.ByCall(t.Context(), schema.AllTenants(), stored)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[schema.CallID]schema.State{unknown: "", old: schema.StateHeld, namedOf(a).ID: schema.StateExpired} {
		if got := l.is(id).State; got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}

func TestAnEndThatCannotBeWrittenIsWrittenWithTheNextOne(t *testing.T) {
	l := openLog(t)
	id := l.expired(schema.NewCallID(), time.Minute, true)
	e := &ends{records: l.records, wake: make(chan struct{}, 1)}
	e.catchUp(l.ledger)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	for _, a := range e.take() {
		e.write(away, []*ledger.Approval{a})
	}
	if got := l.is(id).State; got != schema.StateHeld || len(e.wait) != 1 {
		t.Fatalf("%q, %d are kept", got, len(e.wait))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.run(ctx)
	}()
	polltest.Until(t, "the end is written", func() bool { return l.is(id).State == schema.StateExpired })
	stop()
	<-ended
}
