package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/frontdoor/origin"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says what the API stands on. Catalog, Calls, Router, Keys and Log are
// required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Router  *dispatch.Router
	Keys    *authn.Keys
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
	// Draining says that the front door is about to stop: /readyz is red and
	// event streams end.
	Draining func() bool
	// InForce says what configuration this process goes by; nil: nothing is known of it.
	InForce func() []schema.InForce
	// Losses is what was accepted as lost with a damaged data folder; nil: nothing.
	Losses *HealthLosses
	// Origin decides which web pages may use the API; nil: no page of another origin.
	Origin *origin.Policy
	// AllowAddServers switches POST and DELETE /servers on.
	AllowAddServers bool
	// AddServer adds the server that body describes for the principal by and
	// waits for its start; without it Catalog.AddServer takes the body as the
	// entry. It returns errors of KindInvalidRequest for a bad entry and of
	// KindConflict for an id that exists.
	AddServer func(ctx context.Context, by string, body json.RawMessage) (catalog.Server, error)
	// RemoveServer removes a server that was added; without it
	// Catalog.RemoveServer does.
	RemoveServer func(ctx context.Context, id string) error
	// Batches runs batches; without it there are none.
	Batches *batch.Runner
	// ApproverURL is the address of the approver's pages, "" where there are none.
	ApproverURL string
	// Heartbeat is how often a quiet event stream sends a comment (15 s).
	Heartbeat time.Duration
}

// API serves the REST API. It is safe for concurrent use. What a request starts
// has ended when its handler returns; event streams end within a second after
// Draining reports true.
type API struct {
	o      Options
	log    *slog.Logger
	mux    *http.ServeMux
	huma   huma.API
	limits calls.Limits

	// readUnclean reads a resource whose URI stands in the path as it is.
	readUnclean func(*exchange, *http.Request) error

	kinds   map[schema.Kind]*kind
	spec    []byte // openapi.json
	yaml    []byte // openapi.yaml
	idHead  string // of request ids
	idCount atomic.Uint64
	fixed   fixedHeaders
	shapes  *shapes
	bodies  *bodies.Room
	// snapshot is the fleet as streams of events show it.
	snapshot snapshot
}

// fixedHeaders are header values that every answer shares, so that setting them
// costs nothing. They are never changed.
type fixedHeaders struct {
	json, problem, noStore, nosniff []string
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
		if o.Origin, err = origin.New(nil, o.Keys.Configured); err != nil {
			return nil, err
		}
	}
	if o.InForce == nil {
		o.InForce = func() []schema.InForce { return nil }
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = heartbeat
	}
	if o.RemoveServer == nil {
		o.RemoveServer = o.Catalog.RemoveServer
	}
	a := &API{
		o: o, log: o.Log, mux: http.NewServeMux(), limits: o.Calls.Limits(),
		kinds:  kindTable(),
		idHead: schema.NewID("req")[:len("req_")+20],
		fixed: fixedHeaders{
			json: []string{"application/json"}, problem: []string{"application/problem+json"},
			noStore: []string{"no-store"}, nosniff: []string{"nosniff"},
		},
	}
	a.shapes = newShapes()
	a.bodies = bodies.New(smallBodies, largeBodies)
	if a.o.AddServer == nil {
		a.o.AddServer = a.addEntry
	}
	a.openHuma()
	a.registerProbes()
	a.registerServers()
	a.registerTools()
	a.registerCalls()
	a.registerToolCalls()
	a.registerConfirmations()
	a.registerDurable()
	a.registerCallList()
	a.registerBatches()
	a.registerResources()
	a.registerFleet()
	a.registerConfiguration()
	a.registerPages()
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.notFound(w.(*exchange), r) })
	if err := a.finishDocument(); err != nil {
		return nil, err
	}
	return a, nil
}
