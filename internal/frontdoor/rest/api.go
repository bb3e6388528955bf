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

// Options are the dependencies and settings of the API. Catalog, Calls, Router, Keys and Log are
// required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Router  *dispatch.Router
	Keys    *callers.Callers
	// Issued manages the API keys of the operations on keys. If nil, there are none, and none can
	// be created.
	Issued *issued.Keys
	// Metrics counts requests and is served at /metrics. If nil, that path does not exist.
	Metrics *telemetry.Metrics
	// Traces creates a span for each request. If nil, there are no spans.
	Traces *telemetry.Traces
	Log    *slog.Logger
	// Version is the build version, Started the start time of the process.
	Version string
	Started time.Time
	// Ready returns nil if calls can be accepted, else an error that describes the problem.
	Ready func() error
	// Draining reports whether the front door is shutting down. /readyz then fails and event
	// streams end.
	Draining func() bool
	// Waits limits the requests that wait for something. If nil, the limits are [waits.All] and
	// [waits.Each].
	Waits *waits.Limit
	// InForce returns the effective configuration of this process. If nil, it is unknown.
	InForce func() []schema.InForce
	// Losses is the data accepted as lost with a damaged data folder; nil means none.
	Losses *admin.HealthLosses
	// Origin decides which web pages may use the API. If nil, pages of other origins may not.
	Origin *httpguard.Policy
	// AllowAddServers enables POST and DELETE /servers.
	AllowAddServers bool
	// AddServer adds the server that body describes for the principal by and waits for its start.
	// It returns errors of KindInvalidRequest for an invalid entry and of KindConflict for an ID
	// that exists. If nil, Catalog.Operator accepts the body as the entry.
	AddServer func(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error)
	// RemoveServer removes a server that was added. If nil, Catalog.Operator does.
	RemoveServer func(ctx context.Context, id schema.ServerID) error
	// AcceptGroups and Accepted configure the operations on accepted tool definitions; see
	// [servers.Options].
	AcceptGroups []string
	Accepted     func(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error
	// Acts records the actions of operators. If nil, nothing is recorded.
	Acts httpapi.Acts
	// Audit is the audit record for operators. If nil, there is none.
	Audit *audit.Reader
	// Policy returns the version and the text of the policy, for the export. If nil, there is none.
	Policy func() (version, text string)
	// Tenants, Told and Policies configure the operations on tenants; see [resttenants.Options].
	Tenants  *tenants.Book
	Told     tenants.Destinations
	Policies *risk.Holder
	// EraseTenant erases a tenant. If nil, tenants cannot be erased.
	EraseTenant resttenants.EraseFunc
	// Webhooks is the outbox of webhooks. If nil, webhooks are not configured.
	Webhooks *webhook.Sender
	// Batches runs batches. If nil, there are none.
	Batches *batch.Batches
	// Evaluations are the evaluation runs to show; nil means none.
	Evaluations *runs.Folder
	// ApproverURL is the URL of the approver's pages, or "" if there are none.
	ApproverURL string
	// Heartbeat is the interval at which a comment is sent on an idle event stream (default 15 s).
	Heartbeat time.Duration
}

// heartbeat is the interval at which a comment is sent on an idle event stream. It prevents
// proxies from closing the stream and detects disconnected clients.
const heartbeat = 15 * time.Second

// API serves the REST API: it registers the resources on one mux and runs the common steps before
// each request. It is safe for concurrent use. All work of a request has ended when its handler
// returns. Event streams end within a second after Draining reports true.
type API struct {
	o      Options
	log    *slog.Logger
	mux    *http.ServeMux
	shared *httpapi.Shared
	doc    *httpapi.Document
	runner *submit.Runner
	shapes *tools.Shapes

	// readUnclean reads a resource whose URI is in the path without percent-encoding.
	readUnclean httpapi.Handler

	idHead  string // prefix of request IDs
	idCount atomic.Uint64
}

// New returns an API that is ready to serve.
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
