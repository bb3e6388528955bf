package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/eval/runs"
	"github.com/callyard/callyard/internal/frontdoor/rest/admin"
	"github.com/callyard/callyard/internal/frontdoor/rest/auditlog"
	"github.com/callyard/callyard/internal/frontdoor/rest/batches"
	restcalls "github.com/callyard/callyard/internal/frontdoor/rest/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/evaluations"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/keys"
	"github.com/callyard/callyard/internal/frontdoor/rest/servers"
	"github.com/callyard/callyard/internal/frontdoor/rest/sets"
	"github.com/callyard/callyard/internal/frontdoor/rest/state"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	resttenants "github.com/callyard/callyard/internal/frontdoor/rest/tenants"
	"github.com/callyard/callyard/internal/frontdoor/rest/tools"
	"github.com/callyard/callyard/internal/frontdoor/rest/usage"
	"github.com/callyard/callyard/internal/frontdoor/rest/webhooks"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says what the API stands on. Catalog, Calls, Router, Keys and Log are
// required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Router  *dispatch.Router
	Keys    *callers.Callers
	// Issued are the API keys that the operations on keys manage; nil: there are none, and
	// none can be made.
	Issued *issued.Keys
	// Metrics counts requests and is served at /metrics; without it the path is
	// not there.
	Metrics *telemetry.Metrics
	// Traces makes a span of each request; nil: there are none.
	Traces *telemetry.Traces
	Log    *slog.Logger
	// Version is the build, Started when the process began.
	Version string
	Started time.Time
	// Ready returns nil while calls can be taken, else what is missing.
	Ready func() error
	// Draining says that the front door is shutting down: /readyz is red and
	// event streams end.
	Draining func() bool
	// Waits bounds the requests that wait for something; nil: as [waits.All] and
	// [waits.Each] say.
	Waits *waits.Limit
	// InForce says what configuration this process goes by; nil: nothing is known of it.
	InForce func() []schema.InForce
	// Losses is what was accepted as lost with a damaged data folder; nil: nothing.
	Losses *admin.HealthLosses
	// Origin decides which web pages may use the API; nil: no page of another origin.
	Origin *httpguard.Policy
	// AllowAddServers switches POST and DELETE /servers on.
	AllowAddServers bool
	// AddServer adds the server that body describes for the principal by and
	// waits for its start; without it Catalog.Operator takes the body as the
	// entry. It returns errors of KindInvalidRequest for a bad entry and of
	// KindConflict for an id that exists.
	AddServer func(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error)
	// RemoveServer removes a server that was added; without it
	// Catalog.Operator does.
	RemoveServer func(ctx context.Context, id schema.ServerID) error
	// AcceptGroups and Accepted are of the operations on accepted tool definitions; see
	// [servers.Options].
	AcceptGroups []string
	Accepted     func(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error
	// Acts records what operators do; nil: nothing is recorded.
	Acts httpapi.Acts
	// Audit is the audit record that operators read; nil: there is none.
	Audit *audit.Reader
	// Policy returns the version and the text of the policy, to export it; nil: there is none.
	Policy func() (version, text string)
	// Tenants, Told and Policies are of the operations on tenants; see [resttenants.Options].
	Tenants  *tenants.Book
	Told     tenants.Told
	Policies *risk.Holder
	// EraseTenant erases a tenant; nil: none can be.
	EraseTenant resttenants.EraseFunc
	// Webhooks is the outbox of webhooks; nil if they are not configured.
	Webhooks *webhook.Sender
	// Batches runs batches; without it there are none.
	Batches *batch.Batches
	// Evaluations are the runs of evaluations that are shown; nil: there are none.
	Evaluations *runs.Folder
	// ApproverURL is the address of the approver's pages, "" where there are none.
	ApproverURL string
	// Heartbeat is how often a quiet event stream sends a comment (15 s).
	Heartbeat time.Duration
}

// heartbeat is how often a quiet stream of events sends a comment, so that proxies do not
// close it and a client that left is noticed.
const heartbeat = 15 * time.Second

// API serves the REST API: it puts the resources on one mux and stands before all of
// them. It is safe for concurrent use. What a request starts has ended when its handler
// returns; event streams end within a second after Draining reports true.
type API struct {
	o      Options
	log    *slog.Logger
	mux    *http.ServeMux
	shared *httpapi.Shared
	doc    *httpapi.Document
	runner *submit.Runner
	shapes *tools.Shapes

	// readUnclean reads a resource whose URI stands in the path as it is.
	readUnclean httpapi.Handler

	idHead  string // of request ids
	idCount atomic.Uint64
}

// New returns the API. It serves at once.
func New(o Options) (*API, error) {
	if o.Catalog == nil || o.Calls == nil || o.Router == nil || o.Keys == nil || o.Log == nil {
		return nil, errors.New("rest: Catalog, Calls, Router, Keys and Log are required")
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.Origin == nil {
		var err error
		if o.Origin, err = httpguard.New(nil, o.Keys.Configured); err != nil {
			return nil, err
		}
	}
	if o.InForce == nil {
		o.InForce = func() []schema.InForce { return nil }
	}
	o.Waits = cmp.Or(o.Waits, waits.New(waits.All, waits.Each))
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, heartbeat)
	a := &API{o: o, log: o.Log, mux: http.NewServeMux(), shared: httpapi.NewShared(o.Log, httpapi.NewBudget(), o.Waits, o.Draining), idHead: schema.NewID("req")[:len("req_")+20]}
	problems := a.shared.Problems
	a.shared.Apart = func(tenant schema.TenantID) bool { return !catalog.TenantsOf(o.Catalog).All(tenant) }
	a.shared.Callers, a.shared.Acts = o.Keys, o.Acts
	a.shared.Judge = func(who *schema.Principal) catalog.Judge { return calls.Judge(o.Calls, who) }
	a.doc = httpapi.NewDocument(o.Version, a.mux, problems)
	a.runner = submit.New(a.doc, submit.Options{Calls: o.Calls, Problems: problems, Log: o.Log, Heartbeat: o.Heartbeat, ApproverURL: o.ApproverURL})
	admin.Register(a.doc, admin.Options{
		Catalog: o.Catalog, Metrics: o.Metrics, Backlog: o.Calls.Backlog, Version: o.Version, Started: o.Started, Ready: o.Ready, Draining: o.Draining, InForce: o.InForce, Losses: o.Losses,
	})
	a.readUnclean = servers.Register(a.doc, servers.Options{
		Catalog: o.Catalog, Router: o.Router, Runner: a.runner, Limits: o.Calls.Limits(), Log: o.Log, MayChange: o.AllowAddServers, Add: o.AddServer, Remove: o.RemoveServer,
		AcceptGroups: o.AcceptGroups, Accepted: o.Accepted,
		Draining: o.Draining, Heartbeat: o.Heartbeat,
	})
	a.shapes = tools.Register(a.doc, tools.Options{Catalog: o.Catalog, Calls: o.Calls, Runner: a.runner, Problems: problems, Log: o.Log, Heartbeat: o.Heartbeat})
	sets.Register(a.doc, o.Catalog, o.Calls.Limits().ArgumentDepth, o.Log)
	keys.Register(a.doc, o.Issued, o.Calls.Limits().ArgumentDepth, o.Log)
	state.Register(a.doc, state.Options{
		Catalog: o.Catalog, Keys: o.Issued, Tenants: o.Tenants, Policy: o.Policy, AcceptGroups: o.AcceptGroups, Accepted: o.Accepted, Depth: o.Calls.Limits().ArgumentDepth, Log: o.Log,
	})
	auditlog.Register(a.doc, o.Audit)
	restcalls.Register(a.doc, a.runner, o.Calls)
	usage.Register(a.doc, o.Calls)
	resttenants.Register(a.doc, resttenants.Options{Catalog: o.Catalog, Calls: o.Calls, Router: o.Router, Book: o.Tenants, Told: o.Told, Policy: o.Policies, Issued: o.Issued, Erase: o.EraseTenant})
	webhooks.Register(a.doc, o.Webhooks)
	evaluations.Register(a.doc, o.Evaluations)
	if o.Batches != nil {
		batches.Register(a.doc, batches.Options{
			Batches: o.Batches, Calls: o.Calls, Runner: a.runner, Problems: problems, Log: o.Log, Draining: o.Draining, Heartbeat: o.Heartbeat,
		})
	}
	if err := a.doc.Finish(); err != nil {
		return nil, err
	}
	registerPages(a.mux, o.Version, a.doc)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.notFound(w.(*httpapi.Exchange), r) })
	return a, nil
}

// CallView returns the CallState of a call as JSON without its result, and the result.
func (a *API) CallView(ctx context.Context, s *calls.Status) (view, result []byte, err error) {
	return a.runner.View(ctx, s)
}
