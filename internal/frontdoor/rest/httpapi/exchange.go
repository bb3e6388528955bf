package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/schema"
)

// Exchange is one request and its answer on their way through the handlers. It
// is the ResponseWriter that handlers get, so that what the middleware knows
// (who asks, the request id) travels without copying the request.
type Exchange struct {
	http.ResponseWriter
	ID        string           // of the request
	Principal schema.Principal // who asks
	Query     url.Values       // the parameters, as the operation describes them
	Span      *telemetry.Span  // nil where there are no traces
	Status    int              // of the answer; 0 until it began; handlers only read it

	before, after string // see Changes

	shared      *Shared
	reservation bodies.Reservation // of memory for the body

	// values backs the header values of this answer, so that setting one costs
	// no allocation of its own.
	values [6]string
	used   int
}

// Shared is what all exchanges have in common. It is safe for concurrent use.
type Shared struct {
	// Callers tells what a credential lacks; it is set before the first request.
	Callers *callers.Callers
	// Judge says what is shown to a principal; it is set like Callers, or nil: everything is.
	Judge func(*schema.Principal) catalog.Judge
	// Acts records what operators do; nil: nothing is recorded. It is set like Callers.
	Acts Acts
	// Apart reports whether a tenant is kept from some servers; nil: none is. It is set like
	// Callers.
	Apart    func(schema.TenantID) bool
	Problems *Problems
	bodies   *bodies.Budget
	waits    *waits.Limit
	draining func() bool // reports whether the front door is shutting down
	fixed    fixedHeaders
	refusals refusals
}

// fixedHeaders are header values that every answer shares, so that setting them
// costs nothing. They are never changed.
type fixedHeaders struct {
	json, problem, noStore, nosniff []string
}

// NewShared returns what exchanges share: where faults of ours are logged, the memory for
// bodies, how many requests may wait, and whether the front door is shutting down.
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

// Begin returns the exchange of a request with this id, and sets the headers that every
// answer has. The caller releases it once the handler has returned.
func (s *Shared) Begin(w http.ResponseWriter, id string) *Exchange {
	x := &Exchange{ResponseWriter: w, shared: s, ID: id}
	x.Set("X-Request-Id", id)
	h := w.Header()
	h["Cache-Control"] = s.fixed.noStore
	h["X-Content-Type-Options"] = s.fixed.nosniff
	return x
}

// Seen returns the catalog as it is shown to whoever asks: every list goes by it.
func (x *Exchange) Seen(c *catalog.Catalog) *catalog.Seen {
	if x.shared.Judge == nil {
		return catalog.SeenBy(c, x.Principal.Tenant, nil)
	}
	return catalog.SeenBy(c, x.Principal.Tenant, x.shared.Judge(&x.Principal))
}

// Operated returns the catalog for the lists by which operators look after servers: with the
// scope admin also what the policy denies is there, because operators have to see what a rule
// is about. For others it is as in Seen.
func (x *Exchange) Operated(c *catalog.Catalog) *catalog.Seen {
	if x.Principal.Has(scope.Admin) {
		return catalog.TenantsOf(c).Seen(x.Principal.Tenant)
	}
	return x.Seen(c)
}

// Release gives back the memory that the body took.
func (x *Exchange) Release() { x.reservation.Release() }

// WriteHeader notes the status and passes it on. While the front door drains, it asks the
// client to close the connection, also when the request arrived before the drain began.
func (x *Exchange) WriteHeader(status int) {
	if x.Status == 0 && status >= http.StatusOK {
		x.Status = status
		if x.shared.draining() {
			x.Header().Set("Connection", "close")
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer began and passes the bytes on.
func (x *Exchange) Write(p []byte) (int, error) {
	if x.Status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Set sets a header; key is in canonical form.
func (x *Exchange) Set(key, value string) {
	if x.used == len(x.values) {
		x.Header()[key] = []string{value}
		return
	}
	x.values[x.used] = value
	x.Header()[key] = x.values[x.used : x.used+1 : x.used+1]
	x.used++
}

const (
	// deadlineFrom is the size from which an answer may block on a reader that
	// is slow; smaller ones fit in the socket's buffer.
	deadlineFrom = 64 << 10
	// slowest is the least number of bytes a second that a client must take or
	// send, patience the time it has in addition to that.
	slowest  = 64 << 10
	patience = 15 * time.Second
)

// TimeFor returns how long a client may take to send or to read that number of bytes.
func TimeFor(bytes int) time.Duration {
	return patience + time.Duration(bytes/slowest)*time.Second
}

// SendJSON answers with JSON as it is.
func (x *Exchange) SendJSON(status int, body []byte) { x.Send(status, x.shared.fixed.json, body) }

// SendValue answers with v as encoding/json writes it, HTML escaped.
func (x *Exchange) SendValue(status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		x.Fail(schema.Errorf(schema.KindInternal, "The answer cannot be encoded: %w", err))
		return
	}
	x.SendJSON(status, body)
}

// Send answers with the bytes as they are. contentType is one of the fixed header
// values.
func (x *Exchange) Send(status int, contentType []string, body []byte) {
	h := x.Header()
	h["Content-Type"] = contentType
	x.Set("Content-Length", strconv.Itoa(len(body)))
	defer x.limitWrite(len(body))()
	x.WriteHeader(status)
	_, _ = x.Write(body) // a client that went away is noticed by the server
}

// limitWrite bounds how long the client may take to read that number of bytes, until done
// is called.
func (x *Exchange) limitWrite(size int) (done func()) {
	if size <= deadlineFrom {
		return func() {}
	}
	rc := http.NewResponseController(x.ResponseWriter)
	// A writer without deadlines (a test's recorder) does without.
	_ = rc.SetWriteDeadline(time.Now().Add(TimeFor(size)))
	return func() { _ = rc.SetWriteDeadline(time.Time{}) }
}

// Reserve makes the memory budget of the body hold size bytes; false says that they are not
// left.
func (x *Exchange) Reserve(size int) bool { return x.reservation.Grow(x.shared.bodies, size) }

// Wait counts a request that is about to wait for something to happen, until done is called.
// The error, KindQuota or KindUnavailable, says that too many wait already. The connection
// of such a request is closed: kept open it would take half of what a waiting one takes.
func (x *Exchange) Wait() (done func(), err error) {
	if done, err = x.shared.waits.Take(x.Principal.Name); err != nil {
		x.Set("Connection", "close")
	}
	return done, err
}

// MayDo returns nil where the credential has what another operation needs, else the error to
// answer with. It is for requests of which a part needs more than their own operation.
func (x *Exchange) MayDo(operation string) error {
	need, known := scope.OfOperation(operation)
	if !known {
		return schema.Errorf(schema.KindForbidden, "There is no operation %s.", operation)
	}
	return x.allow(&need)
}

// allow returns nil where the credential has what the operation needs, else the error to
// answer with.
func (x *Exchange) allow(need *scope.Need) error {
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
		return schema.Errorf(schema.KindForbidden, "Only the default tenant changes what all tenants share.")
	}
	if need.AllServers && x.shared.Apart != nil && x.shared.Apart(x.Principal.Tenant) {
		return schema.Errorf(schema.KindForbidden, "This tells of the servers of all tenants, and your tenant does not see all of them.")
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
