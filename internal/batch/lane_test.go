package batch

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// working returns the dependencies of durable calls, with a NATS server for this test and without
// workers.
func working(t *testing.T) (o *Options, js *jobs, stop context.CancelFunc, work *sync.WaitGroup) {
	t.Helper()
	o, js, stop, work = workingWith(t, nil)
	return o, js, stop, work
}

// workingWith is working with retention periods of tenants.
func workingWith(t *testing.T, periods retention.Periods) (o *Options, js *jobs, stop context.CancelFunc, work *sync.WaitGroup) {
	t.Helper()
	o, js, stop, work = workingOn(t, bustest.Start(t).Connect(t, "frontdoor"), periods)
	return o, js, stop, work
}

// workingOn is workingWith on a connection.
func workingOn(t *testing.T, conn *bus.Conn, periods retention.Periods) (o *Options, js *jobs, stop context.CancelFunc, work *sync.WaitGroup) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := journal.Open(t.Context(), conn, journal.Options{Retention: periods, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	book, err := ledger.Open(t.Context(), conn, ledger.Options{Retention: periods, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	desk := approval.New(approval.Options{Ledger: book, Log: log})
	if _, err := desk.Repair(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	o = &Options{Store: store, Ledger: book, Desk: desk, ID: "frontdoor-1", Log: log}
	o.fill()
	ctx, stop := context.WithCancel(t.Context())
	work = new(sync.WaitGroup)
	return o, newJobs(ctx, o, testIDs, work), stop, work
}

// sends adds what a job needs to send calls to the workers of the connection.
func sends(t *testing.T, conn *bus.Conn, o *Options) {
	t.Helper()
	var err error
	if o.Router, err = dispatch.New(conn, o.ID, dispatch.Options{}, o.Log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Router.Close() })
	if o.Catalog, err = catalog.Open(t.Context(), conn, o.Router, o.ID, catalog.Finding{}, o.Log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Catalog.Close)
	o.Gate = admission.NewGate(admission.Options{Catalog: o.Catalog})
	o.Chain = execution.New(execution.Options{Gate: o.Gate, Router: o.Router, Metrics: telemetry.NewMetrics(), Desk: o.Desk})
}

// take stores a call in the lane of the tenant. The call ends at once.
func take(t *testing.T, ls *lanes, tenant schema.TenantID) schema.BatchID {
	t.Helper()
	l, leave, err := ls.use(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	endedCall(t, l, tenant)
	return l.job.l.owned.ID()
}

// endedCall stores a call and its result in a lane.
func endedCall(t *testing.T, l *lane, tenant schema.TenantID) {
	t.Helper()
	rec := journal.CallRecord{Method: methodAnswers, Principal: schema.Principal{Name: "ann", Tenant: tenant}, Accepted: time.Now()}
	first, err := l.writer.Append(t.Context(), []journal.CallRecord{rec})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.job.l.owned.Results(t.Context(), journal.ResultRecord{Index: first, Tenant: tenant, Outcome: journal.Succeeded, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

func TestTenantWithRetentionHasASeparateLane(t *testing.T) {
	o, js, stop, work := workingWith(t, retention.Periods{"red": time.Hour, schema.DefaultTenant: 2 * time.Hour, "long": 30 * 24 * time.Hour})
	ls := newLanes(js.ctx, o, js, work)
	lanes := make(map[schema.TenantID]schema.BatchID)
	for _, tenant := range []schema.TenantID{"red", "blue", "green", "", "long"} {
		lanes[tenant] = take(t, ls, tenant)
		if again := take(t, ls, tenant.OrDefault()); again != lanes[tenant] {
			t.Errorf("calls of %q are in %s and %s", tenant, lanes[tenant], again)
		}
	}
	if lanes["blue"] != lanes["green"] || lanes["blue"] != lanes["long"] || lanes["red"] == lanes["blue"] || lanes["red"] == lanes[""] || lanes[""] == lanes["blue"] {
		t.Errorf("the lanes are %v", lanes)
	}
	for tenant, want := range map[schema.TenantID]time.Duration{"red": 15 * time.Minute, "": 30 * time.Minute, "blue": o.LaneAge, "long": o.LaneAge} {
		if got := ls.age(ls.of(tenant)); got != want {
			t.Errorf("a lane of %q is used for %s, want %s", tenant, got, want)
		}
	}
	stop()
	ls.close()
	js.stop()
	work.Wait()
	for tenant, id := range lanes {
		m, err := o.Store.Get(t.Context(), tenant, id)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[schema.TenantID]schema.TenantID{"red": "red", "": schema.DefaultTenant}[tenant]; m.LaneTenant != want {
			t.Errorf("the lane of %q says that it is of %q", tenant, m.LaneTenant)
		}
	}
}

func TestOldLaneEndsWithoutFurtherCalls(t *testing.T) {
	o, js, stop, work := working(t)
	o.LaneAge = time.Nanosecond
	over := make(chan *journal.Manifest, 100)
	defer o.Store.Watch(schema.AllTenants(), func(m *journal.Manifest) { over <- m })()
	ls := newLanes(js.ctx, o, js, work)
	_, leave, err := ls.use(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	for m := range over {
		if m.State == journal.Ended {
			break
		}
	}
	stop()
	ls.close()
	js.stop()
	work.Wait()
}

func TestFullLaneIsReplacedAndEndsWithItsCalls(t *testing.T) {
	o, js, stop, work := working(t)
	o.LaneCalls = 2
	ls := newLanes(js.ctx, o, js, work)
	var ids []schema.BatchID
	for range 3 {
		l, leave, err := ls.use(t.Context(), "")
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
	if _, _, err := ls.use(t.Context(), ""); schema.KindOf(err) != schema.KindUnavailable || !schema.AsError(err).Retryable {
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

// A caller that waits for the lane stops waiting when its context ends, without effect on others.
func TestAWaitForTheLaneEndsWithItsContext(t *testing.T) {
	o, js, stop, work := working(t)
	ls := newLanes(js.ctx, o, js, work)
	if err := ls.of("").turn.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := ls.use(left, ""); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("it waited: %v", err)
	}
	ls.of("").turn.Release(1)
	_, done, err := ls.use(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	done()
	stop()
	ls.close()
	js.stop()
	work.Wait()
}
