package web

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says what the pages and the API stand on. Desk, Ledger, Keys and Log
// are required.
type Options struct {
	Desk   *approval.Desk
	Ledger *ledger.Ledger
	Keys   *authn.Keys
	// People is the provider at which people sign in; nil where there is none. It
	// stays the caller's.
	People *oidc.Provider
	// Slack is who of Slack is whom, for the page where people connect; nil where
	// there is no Slack. It stays the caller's.
	Slack *enrol.Book
	// LocalGroups are the groups of [authn.Local], for when there are no keys.
	LocalGroups []string
	// Observers are groups whose members see every approval.
	Observers []string
	// PublicURL is where browsers reach the pages; nil where that is the address
	// that is listened on.
	PublicURL *url.URL
	// HTTPS says that the pages themselves are served over TLS.
	HTTPS bool
	// Lifetime is how long a session lasts, Idle how long one in which nobody asks
	// for anything (0: as long as any), FreshFor how long after a sign-in it counts
	// as fresh.
	Lifetime, Idle, FreshFor time.Duration
	// ArgumentBytes is the most that edited arguments may take.
	ArgumentBytes int
	// Traces makes a span of each request that changes something; nil: there are none.
	Traces  *telemetry.Traces
	Log     *slog.Logger
	Version string
	// Ready returns nil while answers can be taken, else what is missing.
	Ready func() error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Handler serves the pages and the API. It is safe for concurrent use.
type Handler struct {
	o        Options
	mux      *http.ServeMux
	routes   []string // "METHOD /path" of the API, for its document's test
	all      []string // of everything, pages too
	origin   *http.CrossOriginProtection
	pages    *pages
	bodies   *bodies.Room
	sessions *sessions
	shapes   shapes
	live     *live
	peeks    peeks
	secret   [32]byte    // of form tokens; another one after each start
	seal     cipher.AEAD // of sign-ins under way; its key is another one after each start
	https    bool
}

// New returns the handler. [Handler.Close] ends what it started.
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
	h := &Handler{o: o, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(), sessions: newSessions(o.Now, o.Idle)}
	if _, err := rand.Read(h.secret[:]); err != nil {
		return nil, err
	}
	var err error
	if h.seal, err = newSeal(); err != nil {
		return nil, err
	}
	if h.shapes, err = readShapes(); err != nil {
		return nil, err
	}
	h.https = o.HTTPS
	if o.PublicURL != nil {
		h.https = o.PublicURL.Scheme == "https"
		if err := h.origin.AddTrustedOrigin(o.PublicURL.Scheme + "://" + o.PublicURL.Host); err != nil {
			return nil, err
		}
	}
	if h.pages, err = parsePages(); err != nil {
		return nil, err
	}
	h.bodies = bodies.New(smallBodies, largeBodies)
	h.live = newLive(o.Ledger)
	h.registerAPI()
	h.registerPages()
	h.mux.HandleFunc("/", h.notFound)
	return h, nil
}

// handle registers a route. Nothing is served that is not in the list.
func (h *Handler) handle(route string, f http.HandlerFunc) {
	h.all = append(h.all, route)
	h.mux.HandleFunc(route, f)
}

// Close ends every stream of live updates, and takes no new ones. It does not
// wait for them: whoever serves the handler does.
func (h *Handler) Close() { h.live.close() }

// Times within which a request must be read and its answer be written.
const (
	readWithin  = 15 * time.Second
	writeWithin = 30 * time.Second
)

// policy lets a page load from here and nowhere else, and run nothing in line.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Frame-Options", "DENY")
	head.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: with that, browsers send a form's Origin as null.
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if h.https {
		head.Set("Strict-Transport-Security", "max-age=31536000")
	}
	control := http.NewResponseController(w)
	now := time.Now() // deadlines are of the real clock
	_ = control.SetReadDeadline(now.Add(readWithin))
	_ = control.SetWriteDeadline(now.Add(writeWithin)) // a recorder of a test has none
	defer h.afterPanic(w, r)
	if err := h.checkOrigin(r); err != nil {
		problem.Write(w, err)
		return
	}
	if r.Method == http.MethodPost {
		lot := new(bodies.Lot)
		defer lot.Release()
		r = r.WithContext(context.WithValue(r.Context(), lotOf{}, lot))
	}
	if h.o.Traces != nil && r.Method == http.MethodPost {
		h.traced(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// checkOrigin refuses what another web page sends, and names under which nobody
// reaches us on purpose.
func (h *Handler) checkOrigin(r *http.Request) error {
	if err := h.origin.Check(r); err != nil {
		return schema.Errorf(schema.KindForbidden, "The request comes from a web page of another origin; decisions are taken on the approver's own pages.")
	}
	changing := r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
	switch {
	case h.ownHost(r.Host):
	case h.unguarded():
		return schema.Errorf(schema.KindForbidden, "An approver without API keys answers to the names of loopback only. Reach it as 127.0.0.1 or localhost, or configure keys.")
	case changing && h.o.PublicURL != nil:
		return schema.Errorf(schema.KindForbidden, "The request names another host than this approver's public_url; send it there.")
	}
	return nil
}

func (h *Handler) ownHost(host string) bool {
	if h.o.PublicURL != nil && strings.EqualFold(host, h.o.PublicURL.Host) {
		return true
	}
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
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
	problem.Write(w, schema.Errorf(schema.KindInternal, "The approver failed on this request; its log says why."))
}

// fault logs the cause of an error that is ours. That somebody left before the answer
// is none.
func (h *Handler) fault(r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	if e := schema.AsError(err); problem.Status(e.Kind) >= http.StatusInternalServerError {
		cause := errors.Unwrap(e)
		if cause == nil {
			cause = err
		}
		h.o.Log.Error("a request failed", "pattern", r.Pattern, "call", e.CallID, "error", cause)
	}
}

func (h *Handler) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := h.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	switch {
	case len(allowed) == 0:
		problem.Write(w, schema.Errorf(schema.KindNotFound, "There is no such path. GET /openapi.json describes the API, / is the page for people."))
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(append(allowed, http.MethodOptions), ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		problem.Write(w, schema.Errorf(problem.KindMethod, "This path does not take that method; it takes %s.", strings.Join(allowed, ", ")))
	}
}
