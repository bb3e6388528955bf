package mcpface

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/origin"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says what the endpoint is built on. Catalog, Calls, Keys and Log are required.
type Options struct {
	Catalog *catalog.Catalog
	Calls   *calls.Calls
	Keys    *authn.Keys
	Metrics *telemetry.Metrics
	// Traces makes a span of each request; nil: there are none.
	Traces *telemetry.Traces
	// Baggage lets the baggage of callers through to servers.
	Baggage bool
	Log     *slog.Logger
	// Version is the build.
	Version string
	// Draining says that the front door is about to stop: long streams end.
	Draining func() bool
	// Origin decides which web pages may use the face; nil: no page of another origin.
	Origin *origin.Policy
	// FrontDoor is the id of this front door.
	FrontDoor string
	// Want tells workers of which resources somebody wants to hear; what they tell is
	// handed to [Face.Updated]. Without it nobody hears of any.
	Want func(bus.Resources) error
	// ApproverURL is the address of the approver's pages, "" where there are none.
	ApproverURL string
	// Heartbeat is how often a quiet stream sends a comment (15 s).
	Heartbeat time.Duration
	// SessionIdle is after how long an unused session of the legacy era ends (30 min).
	SessionIdle time.Duration
}

const (
	heartbeat   = 15 * time.Second
	sessionIdle = 30 * time.Minute
	lookEvery   = 500 * time.Millisecond
	path        = "/mcp"
	serverPath  = "/servers"
	wellKnown   = "/.well-known/oauth-protected-resource"
)

// Face serves MCP. It is safe for concurrent use. Close ends what it started.
type Face struct {
	o      Options
	log    *slog.Logger
	limits calls.Limits
	fixed  fixedHeaders
	bodies *bodies.Room

	changes atomic.Uint64 // of the catalog, since the start
	shelf   shelf
	hub     hub
	rooms   sessions
	shared  *bus.Sessions // nil: sessions live at this front door alone
	talks   talks

	leaving  context.Context // ends when the front door is about to stop
	endWaits context.CancelFunc
	stop     context.CancelFunc
	wait     sync.WaitGroup
}

// New returns the face. It serves at once.
func New(o Options) (*Face, error) {
	if o.Catalog == nil || o.Calls == nil || o.Keys == nil || o.Log == nil {
		return nil, errors.New("mcpface: Catalog, Calls, Keys and Log are required")
	}
	if o.Origin == nil {
		var err error
		if o.Origin, err = origin.New(nil, o.Keys.Configured); err != nil {
			return nil, err
		}
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = heartbeat
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = sessionIdle
	}
	f := &Face{
		o: o, log: o.Log, limits: o.Calls.Limits(),
		fixed: newFixedHeaders(), bodies: bodies.New(smallBodies, largeBodies),
	}
	f.shelf.open()
	f.hub.open()
	f.rooms.open()
	f.talks.open()
	f.leaving, f.endWaits = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	// The channel stands before the first list is made, so that no change is missed.
	changed, cancel := o.Catalog.Changes()
	f.wait.Go(func() {
		defer cancel()
		f.follow(ctx, changed)
	})
	return f, nil
}

// Close ends all streams and sessions and waits for what the face started. The
// HTTP server is stopped before, so no request is under way any more.
func (f *Face) Close() {
	f.leave()
	f.talks.end()
	f.stop()
	f.wait.Wait()
	f.rooms.endAll()
}

// leave ends waits for people, because the front door is about to stop. It may be called
// more than once.
func (f *Face) leave() {
	f.endWaits()
	f.talks.leave()
}

// follow tells listeners of changes, ends sessions that nobody uses, and notices
// that the front door drains.
func (f *Face) follow(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	again := time.NewTicker(wantEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			f.changes.Add(1)
			f.tell()
		case <-again.C:
			f.wantAll()
		case now := <-tick.C:
			if f.o.Draining() {
				f.leave()
			}
			f.rooms.sweep(now, f.o.SessionIdle)
		}
	}
}

// Serves says that a path is the face's.
func Serves(p string) bool {
	return isServerPath(p) || p == path || strings.HasPrefix(p, path+"/") || p == wellKnown || strings.HasPrefix(p, wellKnown+"/")
}

// isServerPath says that a path is /servers/{server}/mcp, where one who knows the REST API
// looks for the MCP endpoint of a server.
func isServerPath(p string) bool {
	server, ok := strings.CutPrefix(p, serverPath+"/")
	server, ok2 := strings.CutSuffix(server, path)
	return ok && ok2 && server != "" && !strings.Contains(server, "/")
}

// ServeHTTP answers one request: see the package comment for what is served.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(f, w, r)
	defer f.afterPanic(x, r)
	defer x.lot.Release()
	h := w.Header()
	h["Cache-Control"] = f.fixed.noStore
	h["X-Content-Type-Options"] = f.fixed.nosniff
	began := time.Time{}
	debugging := f.log.Enabled(r.Context(), slog.LevelDebug)
	if debugging {
		began = time.Now()
	}
	f.serve(x, r)
	x.close()
	if debugging {
		t := x.span.Trace()
		if t.Parent == "" {
			t = x.meta.trace
		}
		f.log.Debug("request", "method", r.Method, "path", r.URL.Path, "rpc", string(x.msg.method), "status", x.statusSent(), "took", time.Since(began),
			"principal", x.principal.Name, "call", h.Get("Callyard-Call-Id"), "trace", t.ID())
	}
	if x.span != nil {
		x.endSpan()
	}
	if f.o.Metrics != nil {
		f.o.Metrics.HTTPRequest(r.Method, x.statusSent())
	}
}

func (f *Face) serve(x *exchange, r *http.Request) {
	if e := f.o.Origin.Check(r); e != nil {
		x.refuse(http.StatusForbidden, e)
		return
	}
	if p := r.URL.Path; p == wellKnown || strings.HasPrefix(p, wellKnown+"/") {
		f.serveMetadata(x, r)
		return
	}
	if !f.authenticate(x, r) {
		return
	}
	if x.mount, x.known = mountOf(r); !x.known {
		x.refuse(http.StatusNotFound, schema.Errorf(schema.KindNotFound, "There is no such path. /mcp has the tools of all servers, /mcp/{server} those of one."))
		return
	}
	switch r.Method {
	case http.MethodPost:
		f.post(x, r)
	case http.MethodGet:
		f.getStream(x, r)
	case http.MethodDelete:
		f.endSession(x, r)
	default:
		x.w.Header().Set("Allow", "POST, GET, DELETE")
		x.refuse(http.StatusMethodNotAllowed, schema.Errorf(schema.KindInvalidRequest, "This path takes POST, and in the legacy era GET and DELETE of a session."))
	}
}

// mountOf returns the server that a path names, "" for all.
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

func (f *Face) afterPanic(x *exchange, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		x.close()
		panic(v)
	}
	defer x.endSpan()
	f.log.Error("a handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	if x.begun() {
		x.close()
		panic(http.ErrAbortHandler) // the answer has begun; only a broken connection says that it is not whole
	}
	x.fail(&fault{Code: codeInternal, Message: "The front door failed on this request; its log says why.", status: http.StatusInternalServerError})
	x.close()
}
