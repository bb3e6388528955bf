package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/httpguard"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/tenants"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures a handler. Desk, Ledger, Keys and Log are required.
type Options struct {
	Desk   *approval.Desk
	Ledger *ledger.Ledger
	Keys   *authn.Keys
	// People is the identity provider for sign-ins; nil if there is none. The caller must close
	// it.
	People *oidc.Provider
	// Slack maps Slack accounts to principals, for the page where people connect. It is nil if
	// there is no Slack. The caller must close it.
	Slack *enrol.Book
	// Credentials holds the credentials at MCP servers, which people connect here. If nil, there
	// are none. The caller must close it.
	Credentials *credential.Book
	// Authorization lets people give programs access. If nil, they cannot. The caller must close
	// it.
	Authorization *authserver.Server
	// Tenants determines the servers that people of each tenant may see. If nil, they see all.
	Tenants *tenants.Book
	// Console is the console to serve in addition to the approvals; nil if there is none. The
	// caller must close it. Members of ConsoleGroups may use it, or everyone if no sign-in is
	// required.
	Console       *console.Console
	ConsoleGroups []string
	// Deliveries returns the deliveries of approval events, or nil if there are none. Members of
	// DeliveryAdmins may list them and send them again, or everyone if no sign-in is required.
	Deliveries     func() *notify.Webhooks
	DeliveryAdmins []string
	// Audit records actions of operators. If nil, they are not recorded.
	Audit *audit.Log
	// LocalGroups lists the groups of [authn.Local], which is used if there are no keys.
	LocalGroups []string
	// Observers lists the groups whose members see every approval.
	Observers []string
	// PublicURL is the address at which browsers reach the pages. If nil, it is the listen
	// address.
	PublicURL *url.URL
	// HTTPS reports whether the pages themselves are served over TLS.
	HTTPS bool
	// Lifetime is the lifetime of a session, Idle the time after which an idle session ends (0
	// means no limit), and FreshFor the time for which a sign-in counts as fresh.
	Lifetime, Idle, FreshFor time.Duration
	// ArgumentBytes is the maximum size of edited arguments, in bytes.
	ArgumentBytes int
	// Traces creates a span for each request that changes something. If nil, there are none.
	Traces  *telemetry.Traces
	Log     *slog.Logger
	Version string
	// Ready returns nil if decisions can be recorded, else the reason why not.
	Ready func() error
	// Now returns the current time. If nil, time.Now is used.
	Now func() time.Time
}

// open reports whether no sign-in is required: there are neither keys nor a provider, and every
// client on loopback is the principal "local".
func (o *Options) open() bool { return !o.Keys.Configured() && o.People == nil }

const readyPattern = "GET /readyz"

// fault logs the cause of an internal error. It ignores disconnected clients. It also ignores
// errors about readiness: probes cause them every few seconds, and the component that is not ready
// logs the reason.
func (o *Options) fault(ctx context.Context, pattern string, err error) {
	if ctx.Err() != nil || pattern == readyPattern {
		return
	}
	if e := schema.AsError(err); problem.Status(e.Kind) >= http.StatusInternalServerError {
		o.Log.Error("a request failed", "pattern", pattern, "call", e.CallID, "error", cmp.Or(errors.Unwrap(e), err))
	}
}

// Handler serves the pages and the API. It is safe for concurrent use.
type Handler struct {
	o      *Options
	routes *routes
	origin *http.CrossOriginProtection
	access *access
	site   *site
	api    *api
	live   *pageUpdates
}

// routes is the multiplexer together with the list of its routes. Nothing else is served.
type routes struct {
	mux *http.ServeMux
	all []string // "METHOD /path"
}

// New returns the handler. [Handler.Close] releases its resources.
func New(o Options) (*Handler, error) {
	if o.Desk == nil || o.Ledger == nil || o.Keys == nil || o.Log == nil {
		return nil, errors.New("web: Desk, Ledger, Keys and Log are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	h := &Handler{o: &o, routes: &routes{mux: http.NewServeMux()}, origin: http.NewCrossOriginProtection()}
	if o.PublicURL != nil {
		if err := h.origin.AddTrustedOrigin(o.PublicURL.Scheme + "://" + o.PublicURL.Host); err != nil {
			return nil, err
		}
	}
	h.access = newAccess(h.o)
	bodies := newBodyReader()
	site := newSite(h.o, h.access, bodies, h.routes)
	h.site = site
	approvals, permissions := &approvals{o: h.o}, &permissions{o: h.o}
	permissionPages := &permissionPages{site, permissions}
	grantPages := newGrantPages(site)
	var err error
	if h.api, err = newAPI(h.o, h.access, bodies, h.routes, approvals, permissions, permissionPages.list, grantPages); err != nil {
		return nil, err
	}
	signIn, err := newSignInPages(site)
	if err != nil {
		return nil, err
	}
	h.live = newLive(o.Ledger, h.access)
	(&approvalPages{site, approvals}).register()
	(&bulkPages{site, approvals}).register()
	permissionPages.register()
	grantPages.register()
	signIn.register()
	(&slackPages{site}).register()
	(&connectPages{site}).register()
	(&authorizePages{site, o.Authorization}).register(h.origin)
	if o.Console != nil {
		(&consolePages{site}).register()
		for _, name := range []string{"console.css", "console.js"} {
			h.routes.HandleFunc("GET /static/"+name, serveConsoleFile(name))
		}
	}
	h.routes.HandleFunc("GET /events", h.live.serve)
	h.routes.HandleFunc("GET /static/{file}", serveStatic)
	h.routes.mux.HandleFunc("/", h.notFound)
	return h, nil
}

// HandleFunc registers a handler.
func (r *routes) HandleFunc(route string, f func(http.ResponseWriter, *http.Request)) {
	r.all = append(r.all, route)
	r.mux.HandleFunc(route, f)
}

// ServeHTTP serves a request by its route.
func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// Close ends all event streams and refuses new ones. It does not wait for them; the HTTP server
// does.
func (h *Handler) Close() { h.live.close() }

// Deadlines for reading a request and writing its response.
const (
	readWithin  = 15 * time.Second
	writeWithin = 30 * time.Second
)

// policy lets a page load files only from its own origin, and run no inline scripts.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Frame-Options", "DENY")
	head.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer, because browsers would then send a form's Origin as null.
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if h.access.https {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
	control := http.NewResponseController(w)
	now := time.Now() // deadlines use the real clock
	_ = control.SetReadDeadline(now.Add(readWithin))
	_ = control.SetWriteDeadline(now.Add(writeWithin)) // the recorder of a test does not support it
	defer h.afterPanic(w, r)
	if err := h.checkOrigin(r); err != nil {
		problem.Write(w, err)
		return
	}
	if r.Method == http.MethodPost {
		reservation := new(bodies.Reservation)
		defer reservation.Release()
		reservation.By(h.sender(r))
		r = r.WithContext(context.WithValue(r.Context(), reservationKey{}, reservation))
	}
	if h.o.Traces != nil && r.Method == http.MethodPost {
		h.traced(w, r)
		return
	}
	h.routes.ServeHTTP(w, r)
}

// checkOrigin refuses requests from pages of other origins, and requests with an unknown host name.
func (h *Handler) checkOrigin(r *http.Request) error {
	if err := h.origin.Check(r); err != nil {
		return schema.Errorf(schema.KindForbidden, "The request comes from a web page of another origin; open the approver's own pages.")
	}
	changing := r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
	switch {
	case h.o.ownHost(r.Host):
	case h.o.open():
		return schema.Errorf(schema.KindForbidden, "An approver without API keys answers only on loopback names. Use 127.0.0.1 or localhost, or configure keys.")
	case changing && h.o.PublicURL != nil:
		return schema.Errorf(schema.KindForbidden, "The Host header differs from this approver's public_url; send the request to public_url.")
	}
	return nil
}

// ownHost reports whether the host is one of ours.
func (o *Options) ownHost(host string) bool {
	if o.PublicURL != nil && strings.EqualFold(host, o.PublicURL.Host) {
		return true
	}
	return httpguard.Loopback(host)
}

func (h *Handler) afterPanic(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	h.o.Log.Error("a handler panicked", "method", r.Method, "pattern", r.Pattern, "panic", v, "stack", string(debug.Stack()))
	problem.Write(w, schema.Errorf(schema.KindInternal, "The approver failed to handle this request; see its log."))
}

func (h *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := h.routes.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	switch {
	case len(allowed) == 0:
		h.refuse(w, r, schema.Errorf(schema.KindNotFound, "This path does not exist. GET /openapi.json describes the API; / is the page for people."))
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		h.refuse(w, r, schema.Errorf(problem.KindMethod, "This path accepts only %s.", strings.Join(allowed, ", ")))
	}
}

// refuse writes an error as a page for a person in a browser, and as a problem for a program.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.site.showError(w, r, err)
		return
	}
	problem.Write(w, err)
}
