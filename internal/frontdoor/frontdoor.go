// Package frontdoor assembles and runs the front door: the REST API before the
// fleet.
//
// It promises that it serves only when NATS stands, that a stop is announced
// (readiness goes red, connections are asked to leave) before it happens, and
// that calls under way are finished first. It refuses to listen beyond loopback
// without API keys. It never starts a process of a tool server.
package frontdoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor/mcp"
	"github.com/callyard/callyard/internal/frontdoor/rest"
	"github.com/callyard/callyard/internal/frontdoor/rest/admin"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

const gaugeEvery = time.Second

// Options says what a front door runs on.
type Options struct {
	Config settings.FrontDoor
	// Conn is what calls travel on. Stored is a connection for what is stored
	// (journals, approvals, the execution log, webhooks), so that a call never stands
	// behind a batch that comes in; nil: Conn. Both stay the caller's.
	Conn    *bus.Conn
	Stored  *bus.Conn
	Metrics *telemetry.Metrics
	// Traces makes the spans; nil: there are none. Baggage lets that of callers
	// through to MCP servers.
	Traces  *telemetry.Traces
	Baggage bool
	Log     *slog.Logger
	Version string
	// Region is where this front door runs: workers of the same one go first.
	Region string
	// Policy judges calls; nil: only the riskLevel of servers counts.
	Policy *risk.Holder
	// InForce says what configuration the process goes by, which is announced and shown;
	// nil: nothing is known of it.
	InForce func() []schema.InForce
	// Redis keeps the confirmation tokens; nil: JetStream does.
	Redis *confirm.RedisOptions
	// Signer signs what callers confirm; nil: nothing is signed, and workers refuse
	// to run it.
	Signer *warrant.Signer
	// Webhooks says how receivers are told of ends.
	Webhooks settings.Webhooks
	// Limits are of principals and servers, Cache where results are kept.
	Limits settings.Limits
	Cache  settings.Cache
	// Lost is what was lost with a damaged data folder.
	Lost Lost
	// NoListener says that the front door opens no address: its program calls
	// [FrontDoor.Calls] and [FrontDoor.Handler].
	NoListener bool
	// Failed gets the error that ends the front door by itself; it has room for one.
	Failed chan<- error
}

// Lost is what an operator accepted as lost with a damaged data folder. The zero value
// is nothing.
type Lost struct {
	// Calls and Approvals are when records of durable calls, and of approvals, were
	// accepted as lost: what is older does not run.
	Calls, Approvals time.Time
	// Key says that the entry of an idempotency key was lost, by its hash; nil: none was.
	Key func(hash string) bool
	// Files is how many damaged files were accepted as lost, Latest when that was last
	// done, and Streams are the names of the streams that they belong to.
	Files   int
	Latest  time.Time
	Streams []string
}

// lostApproval says of a call whether its approval may be lost; nil where none is.
func (l *Lost) lostApproval() func(callID string) bool {
	if l.Approvals.IsZero() {
		return nil
	}
	return func(callID string) bool {
		made, ok := schema.IDTime(callID)
		return ok && made.Before(l.Approvals)
	}
}

// health is what /health shows of it.
func (l *Lost) health() *admin.HealthLosses {
	if l.Files == 0 {
		return nil
	}
	return &admin.HealthLosses{Files: l.Files, Latest: l.Latest, Streams: append([]string{}, l.Streams...)}
}

// FrontDoor is a running front door.
type FrontDoor struct {
	o        Options
	keys     *authn.Keys
	router   *dispatch.Router
	catalog  *catalog.Catalog
	gate     *admission.Gate
	chain    *execution.Chain
	sharing  *sharing
	space    *approval.Instance
	releaser *releaser
	store    *journal.Store
	durable  *batch.Runner
	notifier *notifier
	records  *records.Recorder
	api      *rest.API
	endpoint *mcp.Endpoint
	updates  *bus.Watch
	sessions *sessiontable.Table // of MCP clients, nil where the table is not there
	calls    *calls.Calls
	handler  http.Handler
	server   *http.Server
	listener net.Listener // nil with NoListener
	draining atomic.Bool
	stopped  chan struct{}
	wait     sync.WaitGroup
}

// Start opens the front door. It serves when Start returns; ctx bounds the start only.
func Start(ctx context.Context, o Options) (*FrontDoor, error) {
	keys, err := authn.NewKeys(o.Config.Keys)
	if err != nil {
		return nil, err
	}
	keys.LogTo(o.Log)
	if faults := o.Config.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("front_door.%s", faults[0]) // whoever did not load a file has not seen it yet
	}
	if faults := checkOrigins(o.Config.Origins); len(faults) > 0 {
		return nil, errors.New(faults[0].String())
	}
	// Callers come last, when there is something to answer with; but a front door that
	// cannot have its address must not claim what others would have run.
	if err := checkAddress(ctx, o); err != nil {
		return nil, err
	}
	if o.Stored == nil {
		o.Stored = o.Conn
	}
	if o.Signer == nil {
		o.Log.Warn("warrants.key_file is not set: calls that callers confirm here are not signed, and workers refuse to run them (callyard keys warrant creates a key)")
	}
	d := &FrontDoor{o: o, keys: keys, stopped: make(chan struct{})}
	id := schema.NewID("frontdoor")
	c := o.Config
	if d.router, err = dispatch.New(o.Conn, id, dispatch.Options{
		MaxQueue: c.MaxQueue, MaxWait: c.MaxWait, WorkerWait: c.WorkerWait, CallTimeout: c.CallTimeout, Region: o.Region, Unpaced: !c.BatchesYield, Metrics: o.Metrics, Traces: o.Traces,
	}, o.Log); err != nil {
		return nil, err
	}
	if d.catalog, err = catalog.Open(ctx, o.Conn, d.router, id, o.Log); err != nil {
		return nil, errors.Join(err, d.router.Close())
	}
	if err := d.catalog.Sets().Configure(c.Sets); err != nil {
		d.catalog.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	if o.InForce != nil {
		d.catalog.Announce(o.InForce)
	}
	// Nothing is assessed again before the gate is there.
	assess := func(ctx context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
		return d.gate.Reassess(ctx, a, args)
	}
	if d.space, err = approval.OpenInstance(ctx, approval.InstanceOptions{LostBefore: o.Lost.Approvals, Assess: assess, NoPermission: d.noPermission, Conn: o.Stored, Redis: o.Redis, Name: "frontdoor", Runner: id, Sign: approval.Signing(o.Signer), Traces: o.Traces, Log: o.Log}); err != nil {
		d.catalog.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	if d.records, err = records.Open(ctx, o.Stored, records.Options{FrontDoor: id, Alive: d.catalog.RouterAlive, Log: o.Log}); err != nil {
		d.space.Close()
		d.catalog.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	if d.sharing, err = d.openSharing(id); err != nil {
		d.records.Close()
		d.space.Close()
		d.catalog.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	d.gate = admission.NewGate(admission.Options{
		Catalog: d.catalog, Policy: o.Policy, Limits: admission.Limits{ArgumentBytes: d.argumentBytes(), ArgumentDepth: c.ArgumentDepth, MaxTimeout: c.MaxTimeout},
	})
	d.chain = execution.New(execution.Options{
		Gate: d.gate, Router: d.router, Metrics: o.Metrics, Desk: d.space.Desk, Records: d.records, Quota: d.sharing.quota, Cache: d.sharing.cache, Traces: o.Traces,
	})
	d.router.SetGuard(guard(d.catalog, keys))
	d.releaser = newReleaser(id, d.gate, d.chain, d.space, d.catalog, o.Traces, o.Log)
	if err = d.openBatches(ctx, id); err == nil {
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
		d.closeBatches(ctx)
		d.closeReserve()
		d.catalog.Close()
		return nil, errors.Join(err, d.router.Close())
	}
	d.wait.Go(d.gauge)
	d.wait.Go(d.doubt)
	return d, nil
}

// openBatches opens the journals and the runner of durable calls.
func (d *FrontDoor) openBatches(ctx context.Context, id string) (err error) {
	if d.store, err = journal.Open(ctx, d.o.Stored, journal.Options{LostKey: d.o.Lost.Key, Log: d.o.Log}); err != nil {
		return err
	}
	if err = d.openNotifier(ctx); err != nil {
		return err
	}
	o := batch.Options{
		Store: d.store, Gate: d.gate, Chain: d.chain, Catalog: d.catalog, Router: d.router, Ledger: d.space.Ledger, Desk: d.space.Desk, Release: d.releaser.release, Quota: d.sharing.quota, ID: id, LeaseLost: d.o.Metrics.LeaseLost, Traces: d.o.Traces, Log: d.o.Log,
		OpenBatches: d.o.Config.OpenBatches, LostBefore: d.o.Lost.Calls,
	}
	if d.notifier != nil {
		o.Ended = d.notifier.ended
	}
	d.durable, err = batch.Open(ctx, o)
	return err
}

// closeBatches lets durable calls that have left finish until ctx ends; what does
// not is settled by another front door.
func (d *FrontDoor) closeBatches(ctx context.Context) {
	if d.durable != nil {
		if err := d.durable.Close(ctx); err != nil {
			d.o.Log.Warn("stopping durable calls failed", "error", err)
		}
	}
	if d.notifier != nil {
		d.notifier.close(ctx)
	}
	if d.store != nil {
		d.store.Close()
	}
}

// closeReserve ends the releaser and what it works on.
func (d *FrontDoor) closeReserve() {
	d.releaser.close()
	d.sharing.close()
	d.records.Close()
	d.space.Close()
}

// gauge keeps the metrics that are states rather than events.
func (d *FrontDoor) gauge() {
	tick := time.NewTicker(gaugeEvery)
	defer tick.Stop()
	lost := uint64(0)
	var pinned map[string]int
	for {
		for server, load := range d.router.Load() {
			d.o.Metrics.SetWaiting(server, load.Waiting, load.Oldest)
		}
		pinned = d.gaugePins(pinned)
		d.o.Metrics.SetPace(d.router.BatchPace())
		d.o.Metrics.SetWorkers(len(d.catalog.Workers()))
		d.o.Metrics.SetDisagreements(len(catalog.Disagreements(d.catalog.Processes())))
		lost = d.gaugeStored(lost)
		select {
		case <-d.stopped:
			return
		case <-tick.C:
		}
	}
}

// gaugeStored is gauge for what is stored; lost is how many records were before, and
// then.
func (d *FrontDoor) gaugeStored(lost uint64) uint64 {
	var n int
	var first time.Time
	count := func(at time.Time) {
		if n++; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	oldest := func() (age time.Duration) {
		if n > 0 {
			age = max(time.Since(first), 0)
		}
		return age
	}
	d.space.Ledger.Where(func(a *ledger.Approval) bool {
		if a.State == ledger.Pending {
			count(a.Created)
		}
		return false
	})
	d.o.Metrics.SetApprovals(n, oldest())
	d.o.Metrics.SetHeld(d.space.Ledger.Held())
	n, first = 0, time.Time{}
	d.store.Each(func(m *journal.Manifest) {
		if m.Kind == journal.Batch && m.State != journal.Ended {
			count(m.Created)
		}
	})
	d.o.Metrics.SetBatches(n, oldest())
	now := d.records.Stats().Lost
	if now > lost {
		d.o.Metrics.RecordsLost(now - lost)
	}
	return now
}

// argumentBytes is the configured limit, or what fits in a message if that is less.
func (d *FrontDoor) argumentBytes() int {
	most := d.o.Conn.MaxPayload() - bus.Headroom
	if want := int(d.o.Config.ArgumentBytes); want <= most {
		return want
	}
	level := slog.LevelWarn
	if d.o.Config.ArgumentBytes == settings.FrontDoorDefaults().ArgumentBytes {
		level = slog.LevelInfo // nobody asked for more
	}
	d.o.Log.Log(context.Background(), level, "arguments are limited by the message size of the NATS server; raise its max_payload for more", "wanted", int(d.o.Config.ArgumentBytes), "limit", most)
	return most
}

func (d *FrontDoor) serve() error {
	o, keys := d.o, d.keys
	var checkCallback func(string) error
	if d.notifier != nil {
		checkCallback = func(url string) error {
			if e := d.notifier.sender.Check(url); e != nil {
				return e // never a nil pointer in an interface
			}
			return nil
		}
	}
	pages, err := httpguard.New(o.Config.Origins, keys.Configured)
	if err != nil {
		return err
	}
	d.calls = calls.New(calls.Options{
		Gate: d.gate, Chain: d.chain, Desk: d.space.Desk, Ledger: d.space.Ledger, Release: d.releaser.release, Durable: d.durable, Records: d.records,
		CheckCallback: checkCallback, ApprovalLost: o.Lost.lostApproval(), FrontDoor: d.releaser.id,
	})
	waiting := waits.New(waits.All, waits.Each)
	handler, err := rest.New(rest.Options{
		Catalog: d.catalog, Calls: d.calls, Router: d.router, Keys: keys, Origin: pages, Metrics: o.Metrics, Traces: o.Traces, Log: o.Log, Version: o.Version, Started: time.Now(),
		Ready: d.Ready, Draining: d.draining.Load, InForce: o.InForce, Losses: o.Lost.health(), AllowAddServers: o.Config.AddServers,
		AcceptGroups: o.Config.AcceptGroups, Accepted: d.recordAccepted,
		Waits: waiting, Batches: d.durable.Batches, ApproverURL: strings.TrimRight(o.Config.ApproverURL, "/"),
	})
	if err != nil {
		return err
	}
	d.api = handler
	if d.endpoint, err = mcp.New(mcp.Options{
		Catalog: d.catalog, Calls: d.calls, Keys: keys, Origin: pages, Metrics: o.Metrics, Traces: o.Traces, Baggage: o.Baggage, Log: o.Log, Version: o.Version, Draining: d.draining.Load,
		FrontDoor: d.releaser.id, Waits: waiting, Want: o.Conn.WantResources, ApproverURL: strings.TrimRight(o.Config.ApproverURL, "/"),
	}); err != nil {
		return err
	}
	if d.updates, err = o.Conn.WatchUpdates(d.endpoint.Updated); err != nil {
		return err
	}
	d.sessions = openSessions(o, d.endpoint)
	if d.notifier != nil {
		d.notifier.start()
	}
	d.handler = withCORS(pages.Origins(), d.endpoints(handler))
	d.server = listen.NewServer(d.handler, &d.draining, o.Log)
	if o.NoListener {
		return nil
	}
	if d.listener, err = open(context.Background(), o); err != nil {
		return err
	}
	d.wait.Go(func() { listen.Serve(d.server, d.listener, o.Config.Listen, o.Failed) })
	return nil
}

// checkAddress finds whether the front door can have its address.
func checkAddress(ctx context.Context, o Options) error {
	if o.NoListener {
		return nil
	}
	l, err := open(ctx, o)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("checking the address %s: %w", o.Config.Listen, err)
	}
	return nil
}

func open(ctx context.Context, o Options) (net.Listener, error) {
	l, err := listen.Open(ctx, o.Config.Listen, o.Config.CertFile, o.Config.KeyFile, o.Log)
	var taken *net.OpError
	if errors.As(err, &taken) {
		return nil, fmt.Errorf("listening on %s: %w; is another front door running? --listen names another address", o.Config.Listen, err)
	}
	return l, err
}

// endpoints sends each request to the endpoint whose path it names.
func (d *FrontDoor) endpoints(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mcp.Serves(r.URL.Path) {
			d.endpoint.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// ReplaceKeys puts the API keys in force, also for calls that wait: those of a removed key
// are refused. On an error, which names every key that is wrong, the old ones stay.
func (d *FrontDoor) ReplaceKeys(keys []authn.Key) error { return d.keys.Replace(keys) }

// Calls is the entry of every call, and Handler serves what the address serves: the REST
// API and the MCP endpoint.
func (d *FrontDoor) Calls() *calls.Calls { return d.calls }

// Handler is described with Calls.
func (d *FrontDoor) Handler() http.Handler { return d.handler }

// Addr is the address that the front door listens on.
func (d *FrontDoor) Addr() string { return d.listener.Addr().String() }

// URL is the address that it serves, without a path.
func (d *FrontDoor) URL() string { return listen.Scheme(d.o.Config.CertFile) + "://" + d.Addr() }

// Catalog is the front door's view of the fleet.
func (d *FrontDoor) Catalog() *catalog.Catalog { return d.catalog }

// Ready returns nil while calls can be taken, else what is missing.
func (d *FrontDoor) Ready() error {
	if d.draining.Load() {
		return errors.New("the front door is shutting down")
	}
	return errors.Join(d.o.Conn.Ready(), d.o.Stored.Ready(), d.o.Stored.Storing())
}

// Stop drains and ends the front door: readiness goes red and connections are
// asked to close, then nothing new is taken, calls under way are finished until
// ctx ends, and everything it started is waited for.
func (d *FrontDoor) Stop(ctx context.Context) error {
	d.draining.Store(true)
	select {
	case <-time.After(d.o.Config.DrainDelay):
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
	d.closeBatches(ctx)
	d.closeReserve()
	d.catalog.Close()
	return errors.Join(err, d.router.Close())
}
