package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// ServeHTTP answers one request. Around every handler, in this order: panics become a problem
// document, the request gets an ID, requests of web pages of another origin are refused unless
// Options.Origin allows them, and the caller is authenticated.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := a.shared.Begin(w, a.nextID())
	defer a.afterPanic(x, r)
	defer x.Release()
	began := time.Time{}
	debugging := a.log.Enabled(r.Context(), slog.LevelDebug)
	if debugging {
		began = time.Now()
	}
	if a.o.Traces != nil {
		a.beginSpan(x, r)
	}
	a.handle(x, r)
	if x.Span != nil {
		x.EndSpan(r)
	}
	if a.o.Metrics != nil {
		a.o.Metrics.HTTPRequest(r.Method, x.Status)
	}
	if debugging {
		a.logRequest(x, r, time.Since(began))
	}
}

// logRequest is a separate function to keep stacks small: inlined, its variables would occupy the
// stack of every waiting request, and stacks of 16 KiB could not shrink to 8.
//
//go:noinline
func (a *API) logRequest(x *httpapi.Exchange, r *http.Request, took time.Duration) {
	a.log.Debug("request", "id", x.ID, "method", r.Method, "path", r.URL.Path, "status", x.Status, "took", took,
		"principal", x.Principal.Name, "client_id", problem.Printable(r.Header.Get("X-Request-Id"), 64), "call", x.Header().Get("Callyard-Call-Id"), "trace", httpapi.TraceID(x, r))
}

func (a *API) handle(x *httpapi.Exchange, r *http.Request) {
	if err := a.o.Origin.Check(r); err != nil {
		x.Fail(err)
		return
	}
	if !open(r.URL.Path) {
		var err error
		if x.Principal, err = a.o.Keys.Authenticate(r, ""); err != nil {
			if schema.KindOf(err) == schema.KindUnauthenticated {
				x.Set("Www-Authenticate", a.o.Keys.Unauthenticated(r, ""))
			}
			x.Fail(err)
			return
		}
		x.Identified()
	}
	if escaped := r.URL.EscapedPath(); !clean(escaped) {
		// The mux would redirect to another path. The only valid path of this form is a resource
		// URI that was not percent-encoded.
		a.unclean(x, r, escaped)
		return
	}
	a.mux.ServeHTTP(x, r)
}

// open reports whether a path is served without a credential.
func open(path string) bool {
	switch path {
	case "/", "/livez", "/readyz", "/health", "/docs", "/openapi.json", "/openapi.yaml":
		return true
	}
	return strings.HasPrefix(path, "/docs/") || strings.HasPrefix(path, "/problems/")
}

// nextID returns a request ID that is unique among all front doors.
func (a *API) nextID() string {
	buf := make([]byte, 0, 48)
	buf = append(buf, a.idHead...)
	return string(strconv.AppendUint(buf, a.idCount.Add(1), 36))
}

func (a *API) afterPanic(x *httpapi.Exchange, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	a.log.Error("a handler panicked", "id", x.ID, "method", r.Method, "pattern", r.Pattern, "panic", v, "stack", string(debug.Stack()))
	defer x.EndSpan(r)
	if x.Status != 0 {
		panic(http.ErrAbortHandler) // the answer has begun; only closing the connection shows that it is incomplete
	}
	x.Fail(schema.Errorf(schema.KindInternal, "The front door failed on this request; its log has the cause, under request id %s.", x.ID))
}

// clean reports whether the mux accepts the escaped path unchanged.
func clean(escaped string) bool {
	if escaped == "" || escaped[0] != '/' {
		return false
	}
	if !strings.Contains(escaped, "//") && !strings.Contains(escaped, "/.") {
		return true
	}
	cleaned := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned == escaped
}

func (a *API) unclean(x *httpapi.Exchange, r *http.Request, escaped string) {
	rest, ok := strings.CutPrefix(escaped, "/servers/")
	server, uri, found := strings.Cut(rest, "/resources/")
	if ok && found && !strings.Contains(server, "/") && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		id, err1 := url.PathUnescape(server)
		name, err2 := url.PathUnescape(uri)
		if err1 == nil && err2 == nil {
			r.SetPathValue("id", id)
			r.SetPathValue("uri", name)
			httpapi.Serve(x, r, a.readUnclean)
			return
		}
	}
	a.notFound(x, r)
}

// notFound answers requests without a handler: 405 if the path exists with another method, else
// 404.
func (a *API) notFound(x *httpapi.Exchange, r *http.Request) {
	var allowed []string
	if escaped := r.URL.EscapedPath(); clean(escaped) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := a.mux.Handler(probe); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
		x.Set("Allow", strings.Join(allowed, ", "))
		x.Fail(schema.Errorf(problem.KindMethod, "This path does not support %s; it supports %s.", problem.Printable(r.Method, 20), strings.Join(allowed, ", ")))
		return
	}
	x.Fail(schema.Errorf(schema.KindNotFound, "The path does not exist. See the API reference at /docs, or /openapi.json."))
}

// beginSpan begins the span of a request, as a child of the caller's span. Pages, probes and
// metrics get none, because they are requested often and their spans are useless. The path and the
// query are not recorded, because they may contain tokens and arguments.
func (a *API) beginSpan(x *httpapi.Exchange, r *http.Request) {
	if open(r.URL.Path) || r.URL.Path == "/metrics" || r.URL.Path == "/version" {
		return
	}
	x.Span = a.o.Traces.Begin(httpapi.TraceOf(r), telemetry.Server, httpapi.Method(r))
	x.Span.Text(telemetry.KeyHTTPMethod, httpapi.Method(r))
	if t := x.Span.Trace(); t.Parent != "" {
		x.Set("Traceparent", t.Parent)
	}
}
