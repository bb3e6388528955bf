package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options are the dependencies and settings of an endpoint. Catalog, Calls, Keys and Log are
// required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Keys    *callers.Callers
	Metrics *telemetry.Metrics
	// Traces creates a span for each request. If nil, there are no spans.
	Traces *telemetry.Traces
	// Baggage enables forwarding the callers' baggage to servers.
	Baggage bool
	Log     *slog.Logger
	// Version is the build version.
	Version string
	// Draining reports whether the front door is shutting down. Long-lived streams then end.
	Draining func() bool
	// Origin decides which web pages may use the endpoint. If nil, pages of other origins may not.
	Origin *httpguard.Policy
	// FrontDoor is the ID of this front door.
	FrontDoor string
	// Want notifies workers of the resources that have subscribers. Updates of these are passed to
	// [Endpoint.Updated]. If nil, no client is notified of resource updates.
	Want func(bus.Resources) error
	// ApproverURL is the URL of the approver's pages, or "" if there are none.
	ApproverURL string
	// Connected returns an error of KindConnectRequired if a principal must connect to a server
	// first. If nil, connections are not checked.
	Connected func(ctx context.Context, who *schema.Principal, server schema.ServerID) error
	// Heartbeat is the interval at which a comment is sent on an idle stream (default 15 s).
	Heartbeat time.Duration
	// Waits limits the streams that clients keep open. If nil, the limit is [waits.All].
	Waits *waits.Limit
	// SessionIdle is the time after which an idle session of the legacy era ends (default 30 min).
	SessionIdle time.Duration
}

const (
	heartbeat   = 15 * time.Second
	sessionIdle = 30 * time.Minute
	lookEvery   = 500 * time.Millisecond
	path        = "/mcp"
	serverPath  = "/servers"
	wellKnown   = callers.WellKnown
)

// Endpoint serves MCP over HTTP. It is safe for concurrent use. Close stops its goroutines.
type Endpoint struct {
	o      Options
	log    *slog.Logger
	limits calls.Limits
	fixed  fixedHeaders
	bodies *bodies.Budget

	lists         *lists
	discovery     *discovery
	sessions      *sessions
	subscriptions *subscriptions
	requests      *requests
	tasks         *tasks
	suspended     *suspendedCalls

	leaving  context.Context // canceled when the front door shuts down
	endWaits context.CancelFunc
	stop     context.CancelFunc
	wait     sync.WaitGroup
}

// New returns an endpoint that is ready to serve.
func New(o Options) (*Endpoint, error) {
	if o.Catalog == nil || o.Calls == nil || o.Keys == nil || o.Log == nil {
		return nil, errors.New("mcp: Catalog, Calls, Keys and Log are required")
	}
	if o.Origin == nil {
		var err error
		if o.Origin, err = httpguard.New(nil, o.Keys.Configured); err != nil {
			return nil, err
		}
	}
	o.Waits = cmp.Or(o.Waits, waits.New(waits.All, waits.Each))
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, heartbeat)
	if o.SessionIdle <= 0 {
		o.SessionIdle = sessionIdle
	}
	ep := &Endpoint{o: o, log: o.Log, limits: o.Calls.Limits(), fixed: newFixedHeaders(), bodies: bodies.New(smallBodies, largeBodies)}
	ep.leaving, ep.endWaits = context.WithCancel(context.Background())
	ep.lists = newLists(o)
	ep.discovery = &discovery{catalog: o.Catalog, calls: o.Calls, lists: ep.lists, version: cmp.Or(o.Version, "dev")}
	ep.sessions = newSessions(o.Log)
	held := &heldCalls{calls: o.Calls, approverURL: o.ApproverURL, leaving: ep.leaving}
	ep.tasks = &tasks{calls: o.Calls, held: held}
	ep.suspended = newSuspendedCalls(o.FrontDoor, &ep.wait)
	ep.requests = &requests{calls: o.Calls, catalog: o.Catalog, log: o.Log, lists: ep.lists, held: held, tasks: ep.tasks, suspended: ep.suspended}
	held.tasks, ep.tasks.requests, ep.suspended.requests = ep.tasks, ep.requests, ep.requests
	ep.subscriptions = newSubscriptions(ep.leaving, o, ep.lists, ep.sessions, ep.tasks)
	ctx, stop := context.WithCancel(context.Background())
	ep.stop = stop
	// Subscribe before the first list is built, so that no change is missed.
	changed, cancel := o.Catalog.Changes()
	ep.wait.Go(func() {
		defer cancel()
		ep.follow(ctx, changed)
	})
	return ep, nil
}

// Close ends all streams and sessions and waits for the goroutines of the endpoint. Stop the
// HTTP server first, so that no request is in flight.
func (ep *Endpoint) Close() {
	ep.drain()
	ep.suspended.end()
	ep.stop()
	ep.wait.Wait()
	ep.sessions.endAll()
}

// drain ends waits for people because the front door is shutting down. It may be called
// more than once.
func (ep *Endpoint) drain() {
	ep.endWaits()
	ep.suspended.leave()
}

// follow notifies listeners of changes, ends idle sessions, and detects that the front door
// drains.
func (ep *Endpoint) follow(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	again := time.NewTicker(wantEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			ep.lists.changes.Add(1)
			ep.subscriptions.listsChanged()
		case <-again.C:
			ep.subscriptions.announceAll()
		case now := <-tick.C:
			if ep.o.Draining() {
				ep.drain()
			}
			ep.sessions.sweep(now, ep.o.SessionIdle)
		}
	}
}

// ShareSessions stores sessions in a table from which any front door can load them, so that they
// survive the end of this front door. Call it before the first request, if at all. Pass changes
// of the table to [Endpoint.SessionChanged].
func (ep *Endpoint) ShareSessions(table *sessiontable.Table) { ep.sessions.table = table }

// SessionChanged handles that a session was written or ended at any front door, including this
// one.
func (ep *Endpoint) SessionChanged(key string, revision uint64, ended bool) {
	ep.sessions.changed(key, revision, ended)
}

// Updated notifies the subscribers of resources that these have changed.
func (ep *Endpoint) Updated(r bus.Resources) { ep.subscriptions.updated(r) }

// Serves reports whether a path belongs to the endpoint.
func Serves(p string) bool {
	return isServerPath(p) || p == path || strings.HasPrefix(p, path+"/") || p == wellKnown || strings.HasPrefix(p, wellKnown+"/")
}

// isServerPath reports whether a path is /servers/{server}/mcp. Users of the REST API look for
// the MCP endpoint of a server there.
func isServerPath(p string) bool {
	server, ok := strings.CutPrefix(p, serverPath+"/")
	server, ok2 := strings.CutSuffix(server, path)
	return ok && ok2 && server != "" && !strings.Contains(server, "/")
}

// ServeHTTP answers one request. The package comment lists the routes.
func (ep *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(ep, w, r)
	defer ep.afterPanic(x, r)
	defer x.reservation.Release()
	h := w.Header()
	h["Cache-Control"] = ep.fixed.noStore
	h["X-Content-Type-Options"] = ep.fixed.nosniff
	began := time.Time{}
	debugging := ep.log.Enabled(r.Context(), slog.LevelDebug)
	if debugging {
		began = time.Now()
	}
	ep.serve(x, r)
	x.res.close()
	if debugging {
		t := x.span.Trace()
		if t.Parent == "" {
			t = x.meta.trace
		}
		ep.log.Debug("request", "method", r.Method, "path", r.URL.Path, "rpc", x.msg.method, "status", x.res.statusSent(), "took", time.Since(began),
			"principal", x.principal.Name, "call", h.Get("Callyard-Call-Id"), "trace", t.ID())
	}
	x.endSpan()
	if ep.o.Metrics != nil {
		ep.o.Metrics.HTTPRequest(r.Method, x.res.statusSent())
	}
}

func (ep *Endpoint) serve(x *exchange, r *http.Request) {
	if p := r.URL.Path; p == wellKnown || strings.HasPrefix(p, wellKnown+"/") {
		ep.serveMetadata(x, r) // served to pages of any origin: it is public and the same for every caller
		return
	}
	if e := ep.o.Origin.Check(r); e != nil {
		x.refuse(http.StatusForbidden, e)
		return
	}
	if !ep.authenticate(x, r) {
		return
	}
	if x.mount, x.known = mountOf(r); !x.known {
		x.refuse(http.StatusNotFound, schema.Errorf(schema.KindNotFound, "The path does not exist. /mcp serves the tools of all servers, and /mcp/{server} those of one server."))
		return
	}
	var bad *schema.Error
	if x.searching, bad = modeOf(r); bad != nil {
		x.refuse(http.StatusBadRequest, bad)
		return
	}
	switch r.Method {
	case http.MethodPost:
		ep.post(x, r)
	case http.MethodGet:
		ep.getStream(x, r)
	case http.MethodDelete:
		ep.endSession(x, r)
	default:
		x.res.w.Header().Set("Allow", "POST, GET, DELETE")
		x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This path supports POST, and with the older revisions GET and DELETE of a session."))
	}
}

// mountOf returns the server in a path, or "" for all servers.
func mountOf(r *http.Request) (mount string, ok bool) {
	escaped := r.URL.EscapedPath()
	if isServerPath(escaped) { // the same as /mcp/{server}
		escaped = path + strings.TrimSuffix(strings.TrimPrefix(escaped, serverPath), path)
	}
	escaped = strings.TrimSuffix(strings.TrimPrefix(escaped, path), "/")
	if escaped == "" {
		return "", true
	}
	mount, err := url.PathUnescape(strings.TrimPrefix(escaped, "/"))
	return mount, err == nil && mount != "" && !strings.Contains(escaped[1:], "/")
}

func (ep *Endpoint) afterPanic(x *exchange, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		x.res.close()
		panic(v)
	}
	defer x.endSpan()
	ep.log.Error("a handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if x.res.begun() {
		x.res.close()
		panic(http.ErrAbortHandler) // the answer has begun; only closing the connection shows that it is incomplete
	}
	x.fail(&fault{Code: mcpwire.CodeInternal, Message: "The front door failed on this request; its log has the cause.", status: http.StatusInternalServerError})
	x.res.close()
}
