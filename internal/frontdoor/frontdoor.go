// Package frontdoor assembles and runs the front door: the REST API and the MCP endpoint in front
// of the fleet.
//
// It serves only if NATS is available. A stop is announced (readiness fails, connections are asked
// to close) before it happens, and calls in flight finish first. It refuses to listen beyond
// loopback without API keys. It never starts a process of a tool server.
package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/ended"
	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/release"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/embedding"
	"github.com/callyard/callyard/internal/frontdoor/mcp"
	"github.com/callyard/callyard/internal/frontdoor/rest"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options are the dependencies and settings of a front door.
type Options struct {
	Config settings.FrontDoor
	// Conn carries calls. Stored is a connection for stored data (journals, approvals, the
	// call records, webhooks), so that a call never queues behind a batch that arrives. If nil,
	// Conn is used. The caller closes both.
	Conn    *bus.Conn
	Stored  *bus.Conn
	Metrics *telemetry.Metrics
	// Traces creates the spans; nil disables tracing. Baggage enables forwarding the callers'
	// baggage to MCP servers.
	Traces  *telemetry.Traces
	Baggage bool
	Log     *slog.Logger
	Version string
	// Region is the region of this front door. Workers in the same region are preferred.
	Region string
	// Policy judges calls. If nil, only the riskLevel of servers applies.
	Policy *risk.Holder
	// InForce returns the effective configuration of the process, which is announced and shown.
	// If nil, it is unknown.
	InForce func() []schema.InForce
	// Redis stores the confirmation tokens. If nil, JetStream does.
	Redis *confirm.RedisOptions
	// Signer signs calls that callers confirm. If nil, nothing is signed, and workers refuse to
	// run these calls.
	Signer *warrant.Signer
	// Webhooks configures the notification of receivers when calls and batches end.
	Webhooks settings.Webhooks
	// Credentials are the credentials of people at MCP servers; nil means none. The caller closes
	// them.
	Credentials *credential.Book
	// DataKeys encrypt the stored data of calls. If nil, nothing is encrypted. The caller closes
	// them.
	DataKeys *datakey.Ring
	// Limits are those of principals and servers. Cache configures where results are cached.
	Limits settings.Limits
	Cache  settings.Cache
	// Tenants define what each tenant sees, and its share. If nil, tenants are not separated.
	Tenants *tenants.Book
	// Told lists the channels that notify approvers, from the section approver. It is only shown.
	Told tenants.Destinations
	// Lost is the data that was lost with a damaged data folder.
	Lost Lost
	// NoListener disables the listener. The program then calls [FrontDoor.Calls] and
	// [FrontDoor.Handler].
	NoListener bool
	// Failed receives the error that ends the front door by itself. Its capacity is one.
	Failed chan<- error
}

// FrontDoor is a running front door.
type FrontDoor struct {
	o        Options
	id       string
	began    time.Time
	keys     *authn.Keys
	tokens   *token.Verifier
	issued   *issued.Keys
	ended    *ended.Grants // nil without issuers
	callers  *callers.Callers
	router   *dispatch.Router
	catalog  *catalog.Catalog
	vectors  *embedding.Store // if nil, search uses words alone
	gate     *admission.Gate
	chain    *execution.Chain
	sharing  *sharing
	stores   *stores
	releaser *release.Runner
	durable  *batch.Runner
	notifier *notifier
	api      *rest.API
	endpoint *mcp.Endpoint
	updates  *bus.Watch
	sessions *sessiontable.Table // of MCP clients; nil if the table is not available
	calls    *calls.Calls
	handler  http.Handler
	server   *http.Server
	listener net.Listener // nil with NoListener
	draining atomic.Bool
	after    func(time.Duration) <-chan time.Time // [time.After], but for tests
	stopped  chan struct{}
	wait     sync.WaitGroup
}

// Start opens the front door, which serves once Start returns. ctx limits only the start.
func Start(ctx context.Context, o Options) (*FrontDoor, error) {
	keys, err := authn.NewKeys(o.Config.Keys)
	if err != nil {
		return nil, err
	}
	keys.LogTo(o.Log)
	if faults := o.Config.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("front_door.%s", faults[0]) // a program that did not load a file has not validated it
	}
	if faults := checkOrigins(o.Config.Origins); len(faults) > 0 {
		return nil, errors.New(faults[0].String())
	}
	// Callers are accepted last, when everything they need is open. But a front door that
	// cannot have its address must not claim work that others would have run.
	if err := checkAddress(ctx, o); err != nil {
		return nil, err
	}
	if o.Stored == nil {
		o.Stored = o.Conn
	}
	if o.Signer == nil {
		o.Log.Warn("warrants.key_file is not set: calls that callers confirm here are not signed, and workers refuse to run them (callyard keys warrant creates a key)")
	}
	d := &FrontDoor{o: o, id: schema.NewID("frontdoor"), began: time.Now(), keys: keys, after: time.After, stopped: make(chan struct{})}
	if err := d.openTokens(); err != nil {
		return nil, err
	}
	c := o.Config
	if d.router, err = dispatch.New(o.Conn, d.id, dispatch.Options{
		TenantWeight: o.Tenants.Weights(),
		MaxQueue:     c.MaxQueue, MaxWait: c.MaxWait, WorkerWait: c.WorkerWait, CallTimeout: c.CallTimeout, Region: o.Region, Unpaced: !c.BatchesYield, Credentials: o.Credentials, Metrics: o.Metrics, Traces: o.Traces,
	}, o.Log); err != nil {
		return nil, err
	}
	d.vectors = embedding.Open(c.Embeddings, o.Log)
	if d.catalog, err = catalog.Open(ctx, o.Conn, d.router, d.id, d.finding(), o.Log); err != nil {
		d.vectors.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	if err := d.catalog.Sets().Configure(c.Sets); err != nil {
		d.catalog.Close()
		d.vectors.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	if d.stores, err = d.openStores(ctx); err != nil {
		d.catalog.Close()
		d.vectors.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	d.openCallers(ctx)
	if d.sharing, err = d.openSharing(); err != nil {
		d.ended.Close()
		d.issued.Close()
		d.stores.close()
		d.catalog.Close()
		d.vectors.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	d.catalog.Announce(d.announced)
	d.gate = admission.NewGate(admission.Options{
		Catalog: d.catalog, Policy: o.Policy, Tenants: new(catalog.TenantsOf(d.catalog)),
		Limits: admission.Limits{ArgumentBytes: d.argumentBytes(), ArgumentDepth: c.ArgumentDepth, MaxTimeout: c.MaxTimeout},
	})
	d.chain = execution.New(execution.Options{
		Gate: d.gate, Router: d.router, Metrics: o.Metrics, Desk: d.stores.approvals.Desk, Records: d.stores.records, Quota: d.sharing.quota, Cache: d.sharing.cache, Traces: o.Traces,
		Personal: func(server schema.ServerID) bool { return o.Credentials.Server(server) != nil },
	})
	d.router.SetGuard(guard(d.catalog, d.callers))
	d.releaser = release.Start(release.Options{
		FrontDoor: d.id, Gate: d.gate, Chain: d.chain, Desk: d.stores.approvals.Desk, Ledger: d.stores.approvals.Ledger, Catalog: d.catalog, Records: d.stores.records, Traces: o.Traces, Log: o.Log,
	})
	if err = d.openBatches(ctx); err == nil {
		err = d.serve()
	}
	if err != nil {
		if d.sessions != nil {
			d.sessions.Close()
		}
		if d.updates != nil {
			d.updates.Stop()
		}
		if d.endpoint != nil {
			d.endpoint.Close()
		}
		d.close(ctx)
		return nil, errors.Join(err, d.router.Close())
	}
	d.wait.Go(d.gauge)
	d.wait.Go(d.doubt)
	return d, nil
}

// finding returns the settings of tool search, and the servers that each tenant finds.
func (d *FrontDoor) finding() catalog.Finding {
	f := catalog.Finding{Labels: d.o.Config.ToolLabels.Of(), Vectors: d.vectors}
	if t := d.o.Tenants; t != nil {
		f.Sees, f.Apart = t.Sees, t.Apart
	}
	return f
}

// argumentBytes returns the configured limit, or the space in a message if that is less.
func (d *FrontDoor) argumentBytes() int {
	most := d.o.Conn.MaxPayload() - bus.Headroom
	if want := int(d.o.Config.ArgumentBytes); want <= most {
		return want
	}
	level := slog.LevelWarn
	if d.o.Config.ArgumentBytes == settings.FrontDoorDefaults().ArgumentBytes {
		level = slog.LevelInfo // the operator did not ask for more
	}
	d.o.Log.Log(context.Background(), level, "arguments are limited by the message size of the NATS server; raise its max_payload for more", "wanted", int(d.o.Config.ArgumentBytes), "limit", most)
	return most
}

// ReplaceKeys makes the API keys effective, also for waiting calls: calls of a removed key are
// refused. An error names every invalid key, and the old keys then remain effective.
func (d *FrontDoor) ReplaceKeys(keys []authn.Key) error { return d.keys.Replace(keys) }

// Calls returns the entry point of every call. Handler returns the handler of the listener: the
// REST API and the MCP endpoint.
func (d *FrontDoor) Calls() *calls.Calls { return d.calls }

// TokensUp reports whether confirmation tokens can be created and spent.
func (d *FrontDoor) TokensUp() bool { return d.stores.approvals.TokensUp() }

// Router returns the router, for requests to workers that are not calls.
func (d *FrontDoor) Router() *dispatch.Router { return d.router }

// Handler is described with Calls.
func (d *FrontDoor) Handler() http.Handler { return d.handler }

// Addr returns the address that the front door listens on.
func (d *FrontDoor) Addr() string { return d.listener.Addr().String() }

// URL returns the base URL of the front door, without a path.
func (d *FrontDoor) URL() string { return listen.Scheme(d.o.Config.CertFile) + "://" + d.Addr() }

// Catalog returns the front door's view of the fleet.
func (d *FrontDoor) Catalog() *catalog.Catalog { return d.catalog }

// Ready returns nil if calls can be accepted, else an error that describes the problem.
func (d *FrontDoor) Ready() error {
	if d.draining.Load() {
		return errors.New("the front door is shutting down")
	}
	err := d.o.Conn.Ready()
	if err == nil { // both connections usually use the same NATS: report it once
		err = d.o.Stored.Ready()
	}
	return errors.Join(err, d.o.Stored.Storing())
}

// Stop drains and ends the front door: readiness fails and connections are asked to close. Then
// new requests are refused, calls in flight finish until ctx ends, and all goroutines end.
func (d *FrontDoor) Stop(ctx context.Context) error {
	d.draining.Store(true)
	select {
	case <-d.after(d.o.Config.DrainDelay):
	case <-ctx.Done():
	}
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("%d calls were still running at the end of the grace period", d.chain.InFlight()), d.server.Close())
	}
	close(d.stopped)
	d.wait.Wait()
	d.updates.Stop()
	if d.sessions != nil {
		d.sessions.Close()
	}
	d.endpoint.Close()
	d.close(ctx)
	return errors.Join(err, d.router.Close())
}

// close stops the runners of calls, then their stores. Durable calls that were sent may finish
// until ctx ends.
func (d *FrontDoor) close(ctx context.Context) {
	d.closeBatches(ctx)
	d.releaser.Close()
	d.sharing.close()
	d.stores.close()
	d.ended.Close()
	d.issued.Close()
	d.catalog.Close()
	d.vectors.Close()
	d.tokens.Close()
}
