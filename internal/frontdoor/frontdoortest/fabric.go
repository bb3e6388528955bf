// Package frontdoortest provides the environment for tests of the endpoints of a front door: a
// real bus, catalog, gate, router and stores of calls, assembled as a front door assembles them,
// in front of a worker with scripted tools.
//
// It owns that assembly and the worker. It knows no endpoint: each test builds its own on a
// [Fabric].
package frontdoortest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/quota"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options are the settings of a fabric.
type Options struct {
	// Script is the script of the worker.
	Script Script
	// Limits limits calls. By default arguments have at most 64 KiB and calls take at most a minute.
	Limits admission.Limits
	// Policy assesses calls. If nil, there is none.
	Policy *risk.Holder
	// InFlight is the limit of calls in flight per principal; 0 means no quotas.
	InFlight int
	// Counted, if not nil, is called when the gate begins to check a call.
	Counted func(server schema.ServerID, tool string)
}

// Fabric is a front door without its endpoints.
type Fabric struct {
	NATS     *bustest.Server
	Worker   *Worker
	Conn     *bus.Conn
	Catalog  *catalog.Catalog
	Router   *dispatch.Router
	Keys     *callers.Callers
	Metrics  *telemetry.Metrics
	Batches  *batch.Batches
	Calls    calls.Options
	Log      *slog.Logger
	Logged   *logtest.Log
	testing  testing.TB
	releases sync.WaitGroup
}

const id = "frontdoor-1"

// Open starts a fabric that ends with the test.
func Open(t testing.TB, o Options) *Fabric {
	t.Helper()
	if o.Limits == (admission.Limits{}) {
		o.Limits = admission.Limits{ArgumentBytes: 64 << 10, MaxTimeout: time.Minute}
	}
	f := &Fabric{testing: t, NATS: bustest.Start(t), Logged: new(logtest.Log), Metrics: telemetry.NewMetrics()}
	f.Log = slog.New(slog.NewTextHandler(f.Logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.Worker = StartWorker(t, f.NATS.Connect(t, "worker"), WorkerID, o.Script)
	f.Conn = f.NATS.Connect(t, "frontdoor")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	// On a slow machine the worker may announce itself late, and counts as gone until then.
	router, err := dispatch.New(f.Conn, id, dispatch.Options{WorkerWait: time.Minute}, f.Log)
	must(t, err)
	t.Cleanup(func() { _ = router.Close() })
	f.Router = router
	f.Catalog, err = catalog.Open(ctx, f.Conn, router, id, catalog.Finding{}, f.Log)
	must(t, err)
	t.Cleanup(f.Catalog.Close)
	keys, err := authn.NewKeys(nil)
	must(t, err)
	f.Keys = callers.New(callers.Options{Keys: keys})

	f.openCalls(ctx, o)
	return f
}

// openCalls opens the gate, the runners and the stores of calls.
func (f *Fabric) openCalls(ctx context.Context, o Options) {
	t := f.testing
	book, err := ledger.Open(ctx, f.Conn, ledger.Options{Log: f.Log})
	must(t, err)
	t.Cleanup(book.Close)
	recorder, err := records.Open(ctx, f.Conn, records.Options{FrontDoor: id, Log: f.Log})
	must(t, err)
	t.Cleanup(recorder.Close)
	counter, err := usage.Open(ctx, f.Conn, usage.Options{Records: recorder, Counted: usage.CountIn(f.Metrics.Usage()), Log: f.Log})
	must(t, err)
	t.Cleanup(counter.Close)
	store, err := journal.Open(ctx, f.Conn, journal.Options{Log: f.Log})
	must(t, err)
	t.Cleanup(store.Close)
	var limit *quota.Quota
	if o.InFlight > 0 {
		limit = quota.Open(quota.Options{InFlight: o.InFlight, Log: f.Log})
		t.Cleanup(limit.Close)
	}

	desk := approval.New(approval.Options{Ledger: book, Log: f.Log})
	gate := admission.NewGate(admission.Options{Catalog: counting{f.Catalog, o.Counted}, Limits: o.Limits, Policy: o.Policy})
	chain := execution.New(execution.Options{Gate: gate, Router: f.Router, Metrics: f.Metrics, Desk: desk, Records: recorder, Quota: limit})
	t.Cleanup(f.releases.Wait)
	release := func(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error) {
		return f.release(ctx, desk, chain, a, progress)
	}
	runner, err := batch.Open(ctx, batch.Options{Store: store, Gate: gate, Chain: chain, Catalog: f.Catalog, Router: f.Router, Ledger: book, Desk: desk, Release: release, ID: id, Log: f.Log})
	must(t, err)
	t.Cleanup(func() {
		stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := runner.Close(stopping); err != nil {
			t.Error(err)
		}
	})
	f.Batches = runner.Batches
	f.Calls = calls.Options{Gate: gate, Chain: chain, Desk: desk, Ledger: book, Release: release, Durable: runner, Records: recorder, Usage: counter, FrontDoor: id}
}

// release runs an approved call. If ctx ends, it returns and the call continues.
func (f *Fabric) release(ctx context.Context, desk *approval.Desk, chain *execution.Chain, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error) {
	type end struct {
		res *schema.Result
		err error
	}
	done := make(chan end, 1)
	f.releases.Go(func() {
		gone := context.WithoutCancel(ctx)
		call, err := desk.Call(gone, a)
		if err != nil {
			done <- end{nil, err}
			return
		}
		call.Progress = progress
		res, err := chain.Run(gone, call, execution.Plan{})
		if _, finishErr := desk.Finish(gone, schema.DefaultTenant, a.ID, res, err); finishErr != nil {
			res, err = nil, finishErr
		}
		done <- end{res, err}
	})
	select {
	case e := <-done:
		return e.res, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// WaitFor waits until done returns true. It checks after each change of the catalog and
// periodically.
func (f *Fabric) WaitFor(what string, done func() bool) {
	f.testing.Helper()
	changes, cancel := f.Catalog.Changes()
	defer cancel()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond) // other subscribers learn of a change a moment later
	defer tick.Stop()
	for !done() {
		select {
		case <-changes:
		case <-tick.C:
		case <-deadline.C:
			f.testing.Fatalf("%s did not come; log:\n%s", what, f.Logged)
		}
	}
}

// Send sends a request and returns the whole answer.
func Send(t testing.TB, c *http.Client, r *http.Request) (status int, header http.Header, body []byte) {
	t.Helper()
	res, err := c.Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, res.Header, body
}

// counting wraps the catalog and reports each lookup of a tool, with which a check begins.
type counting struct {
	admission.Catalog
	counted func(server schema.ServerID, tool string)
}

func (c counting) Tool(server schema.ServerID, name string) (catalog.Tool, error) {
	if c.counted != nil {
		c.counted(server, name)
	}
	return c.Catalog.Tool(server, name)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
