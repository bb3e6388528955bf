package httpapi

import (
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/schema"
)

// Exchange is one request and its answer on their way through the handlers. Handlers receive it as
// their ResponseWriter, so that the data of the middleware (the caller, the request ID) is passed
// on without copying the request.
type Exchange struct {
	http.ResponseWriter
	ID        string           // request ID
	Principal schema.Principal // the caller
	Query     url.Values       // the validated parameters
	Span      *telemetry.Span  // nil if tracing is off
	Status    int              // of the answer; 0 until it has begun; read-only for handlers

	before, after string // see Changes

	shared      *Shared
	reservation bodies.Reservation // memory budget of the body

	// values backs the header values of this answer, so that setting one does not allocate.
	values [6]string
	used   int
}

// Shared is the state that all exchanges share. It is safe for concurrent use.
type Shared struct {
	// Callers checks credentials. Set it before the first request.
	Callers *callers.Callers
	// Judge returns the permissions that filter the catalog for a principal. Set it like Callers.
	// If nil, every principal sees everything.
	Judge func(*schema.Principal) catalog.Judge
	// Acts records the actions of operators. Set it like Callers. If nil, nothing is recorded.
	Acts Acts
	// Apart reports whether some servers are hidden from a tenant. Set it like Callers. If nil, no
	// servers are hidden.
	Apart    func(schema.TenantID) bool
	Problems *Problems
	bodies   *bodies.Budget
	waits    *waits.Limit
	draining func() bool // reports whether the front door is shutting down
	fixed    fixedHeaders
	refusals refusals
}

// fixedHeaders are header values shared by all answers, so that setting them does not allocate.
// They are never modified.
type fixedHeaders struct {
	json, problem, noStore, nosniff []string
}

// NewShared returns the shared state of exchanges: the log for internal errors, the memory budget
// for bodies, the limit of waiting requests, and whether the front door is shutting down.
func NewShared(log *slog.Logger, budget *bodies.Budget, waiting *waits.Limit, draining func() bool) *Shared {
	return &Shared{
		Problems: &Problems{log}, bodies: budget, waits: waiting, draining: draining,
		refusals: newRefusals(),
		fixed: fixedHeaders{
			json: []string{"application/json"}, problem: []string{problem.MediaType},
			noStore: []string{"no-store"}, nosniff: []string{"nosniff"},
		},
	}
}

// Begin returns the exchange of a request with this ID, and sets the headers common to all answers.
// The caller must call Release after the handler has returned.
func (s *Shared) Begin(w http.ResponseWriter, id string) *Exchange {
	x := &Exchange{ResponseWriter: w, shared: s, ID: id}
	x.Set("X-Request-Id", id)
	h := w.Header()
	h["Cache-Control"] = s.fixed.noStore
	h["X-Content-Type-Options"] = s.fixed.nosniff
	return x
}

// Seen returns the catalog as the caller may see it. Every list uses it.
func (x *Exchange) Seen(c *catalog.Catalog) *catalog.Seen {
	if x.shared.Judge == nil {
		return catalog.SeenBy(c, x.Principal.Tenant, nil)
	}
	return catalog.SeenBy(c, x.Principal.Tenant, x.shared.Judge(&x.Principal))
}

// Operated returns the catalog for the lists that operators use to manage servers. With the scope
// admin it includes entries that the policy denies, because operators must see the targets of a
// rule. For other callers it is the same as Seen.
func (x *Exchange) Operated(c *catalog.Catalog) *catalog.Seen {
	if x.Principal.Has(scope.Admin) {
		return catalog.TenantsOf(c).Seen(x.Principal.Tenant)
	}
	return x.Seen(c)
}

// Identified lets the body count as one of the principal, which must be set.
func (x *Exchange) Identified() { x.reservation.By(&x.Principal) }

// Release returns the memory budget of the body.
func (x *Exchange) Release() { x.reservation.Release() }

// WriteHeader records the status and forwards it. While the front door drains, it asks the client
// to close the connection, even if the request arrived before the drain began.
func (x *Exchange) WriteHeader(status int) {
	if x.Status == 0 && status >= http.StatusOK {
		x.Status = status
		if x.shared.draining() {
			x.Header().Set("Connection", "close")
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write records that the answer has begun and forwards the bytes.
func (x *Exchange) Write(p []byte) (int, error) {
	if x.Status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Set sets a header. key must be in canonical form.
func (x *Exchange) Set(key, value string) {
	if x.used == len(x.values) {
		x.Header()[key] = []string{value}
		return
	}
	x.values[x.used] = value
	x.Header()[key] = x.values[x.used : x.used+1 : x.used+1]
	x.used++
}

// SendJSON answers with JSON, verbatim.
func (x *Exchange) SendJSON(status int, body []byte) { x.Send(status, x.shared.fixed.json, body) }

// Send answers with the bytes, unchanged. contentType is one of the fixed header values.
func (x *Exchange) Send(status int, contentType []string, body []byte) {
	h := x.Header()
	h["Content-Type"] = contentType
	x.Set("Content-Length", strconv.Itoa(len(body)))
	defer bodies.LimitWrite(x.ResponseWriter, len(body))()
	x.WriteHeader(status)
	_, _ = x.Write(body) // the server detects a disconnected client
}

// Reserve grows the memory reservation of the body to size bytes. It returns false if that is not
// available.
func (x *Exchange) Reserve(size int) bool { return x.reservation.Grow(x.shared.bodies, size) }

// Wait counts a request that is about to wait for an event, until done is called. It returns an
// error of KindQuota or KindUnavailable if too many requests wait already. The connection of a
// refused request is closed: kept open it would take half the memory of a waiting one.
func (x *Exchange) Wait() (done func(), err error) {
	if done, err = x.shared.waits.Take(&x.Principal); err != nil {
		x.Set("Connection", "close")
	}
	return done, err
}

// MayDo returns nil if the credential permits another operation, else the error to answer with. It
// is for requests with a part that requires more than their own operation.
func (x *Exchange) MayDo(operation string) error {
	need, known := scope.OfOperation(operation)
	if !known {
		return schema.Errorf(schema.KindForbidden, "There is no operation %s.", operation)
	}
	return x.allow(&need)
}

// allow returns nil if the credential meets the needs of the operation, else the error to answer
// with.
func (x *Exchange) allow(need *scope.Requirement) error {
	scopes := need.Scopes
	if len(need.InDefault) > 0 && x.Principal.Tenant.Is(schema.DefaultTenant) {
		scopes = need.InDefault
	}
	if !x.Principal.Has(scopes...) {
		header, err := x.shared.Callers.Insufficient("", scopes...)
		x.Set("Www-Authenticate", header)
		return err
	}
	if need.DefaultTenant && !x.Principal.Tenant.Is(schema.DefaultTenant) {
		return schema.Errorf(schema.KindForbidden, "Only credentials of the default tenant can use this operation, because it concerns all tenants.")
	}
	if need.AllServers && x.shared.Apart != nil && x.shared.Apart(x.Principal.Tenant) {
		return schema.Errorf(schema.KindForbidden, "The answer would cover the servers of all tenants, and your tenant does not see all of them. Use a credential of the default tenant.")
	}
	return nil
}

// Handler answers a request, or returns the error to answer with.
type Handler func(*Exchange, *http.Request) error

// Serve runs a handler and answers with its error, if any.
func Serve(x *Exchange, r *http.Request, h Handler) {
	if err := h(x, r); err != nil {
		x.Fail(err)
	}
}
