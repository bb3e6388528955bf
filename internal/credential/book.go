package credential

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// early is the time before its expiry at which a token is renewed, or a tenth of its lifetime
	// if that is less.
	early = time.Minute
	// leased is the lease of a process for one renewal. After that, another process may renew.
	leased = 45 * time.Second
	// redeeming is the timeout of the renewal request. It is less than leased, so that no other
	// process has acquired the lease when the result is stored.
	redeeming = 30 * time.Second
	// storing is the timeout for storing a renewed token. The old refresh token is spent by then,
	// so storing is retried until shortly before another process may acquire the lease.
	storing = 10 * time.Second
	// again is the first interval for polling a renewal in another process, and the interval for
	// retrying to store. The polling interval doubles up to seldom, so that polling does not use
	// the time that renewals need when many tokens expire at once.
	again  = 50 * time.Millisecond
	seldom = time.Second
	// mostRenewals limits the concurrent renewals per server in a process.
	mostRenewals = 32
)

// Server configures how people connect to one MCP server.
type Server struct {
	ID     schema.ServerID
	URL    string        // credentials are bound to its origin
	Header string        // the header that carries the credential
	Scheme string        // prefix of the credential, or ""
	OAuth  *oauth.Client // nil if people store their own secrets
	Scopes []string      // scopes to request; nil means those that the server names
	// Exchange makes OAuth exchange callers' tokens. If nil, people connect.
	Exchange *Exchange

	renewals chan struct{} // a slot for each renewal in flight
}

// DataKeys encrypts the rows of tenants, each tenant with its own key that is deleted with the
// tenant ([datakey.Ring]). If an error of Open has a method Gone, the row can never be read again.
type DataKeys interface {
	Seal(ctx context.Context, tenant schema.TenantID, plain []byte, place ...string) ([]byte, error)
	Open(ctx context.Context, stored []byte, place ...string) ([]byte, error)
}

// errClosed is returned to waiters when the book is closed.
var errClosed = errors.New("the process is stopping")

func (s *Server) origin() string { return Origin(s.URL) }

// Book stores the credentials that people have connected. It is safe for concurrent use.
type Book struct {
	keys    *Keys
	data    DataKeys // nil if there are none
	rows    *bus.Bucket
	servers map[schema.ServerID]*Server
	connect string // the address where people connect
	flight  singleflight.Group
	now     func() time.Time
	log     *slog.Logger
	missing sync.Map // names of missing keys that were already logged

	mu      sync.Mutex
	closed  bool
	closing chan struct{}  // closed with the book
	work    sync.WaitGroup // one for each singleflight call
}

// Open opens the book. Rows are encrypted with keys, and again with data if it is not nil.
// connect is the address of the page where people connect.
func Open(ctx context.Context, c *bus.Conn, keys *Keys, data DataKeys, servers []*Server, connect string, log *slog.Logger) (*Book, error) {
	rows, err := credentialtable.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	b := &Book{keys: keys, data: data, rows: rows, servers: make(map[schema.ServerID]*Server, len(servers)), connect: connect, now: time.Now, log: log, closing: make(chan struct{})}
	for _, s := range servers {
		s.renewals = make(chan struct{}, mostRenewals)
		b.servers[s.ID] = s
	}
	return b, nil
}

// Close waits for the renewals in flight, and closes the connections to authorization servers. A
// renewal whose result cannot be stored loses its grant. Close must be called before the connection
// to NATS is closed, and takes less than a minute.
func (b *Book) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	b.mu.Unlock()
	b.work.Wait()
	for _, s := range b.servers {
		if s.OAuth != nil {
			s.OAuth.HTTP.CloseIdleConnections()
		}
	}
}

// Person returns the identity of a principal for this package: the person or team that owns it, in
// its tenant. A key without an owner has its own identity, even if its name equals that of a person.
func Person(p *schema.Principal) string {
	name := "name\x00" + p.Name
	if p.Owner != "" {
		name = "owner\x00" + p.Owner
	}
	if p.Tenant.Is(schema.DefaultTenant) {
		return name
	}
	return string(p.Tenant) + "\x00" + name
}

// tenantOf returns the tenant of a result of [Person].
func tenantOf(person string) schema.TenantID {
	tenant, rest, _ := strings.Cut(person, "\x00")
	if id := schema.TenantID(tenant); strings.Contains(rest, "\x00") && id.Valid() {
		return id
	}
	return schema.DefaultTenant
}

// Server returns the configuration of a server, or nil if people cannot connect to it.
func (b *Book) Server(id schema.ServerID) *Server {
	if b == nil {
		return nil
	}
	return b.servers[id]
}

// row is the plaintext of a stored row.
type row struct {
	Connected time.Time    `json:"connected"`
	Value     string       `json:"value,omitempty"` // the person's own secret
	Token     *oauth.Token `json:"token,omitempty"`
	Grant     *oauth.Grant `json:"grant,omitempty"`
	Got       time.Time    `json:"got,omitzero"` // the time at which Token was issued
	// Renewing is the end of the lease of the process that renews the token.
	Renewing time.Time `json:"renewing,omitzero"`

	former bool // whether the row is not encrypted with the newest key
}

// version distinguishes successive credentials of the row. It is never 0.
func (r *row) version() uint64 {
	value := r.Value
	if r.Token != nil {
		value = r.Token.Access
	}
	sum := sha256.Sum256([]byte(value))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// margin returns the time before its expiry at which the token is renewed, or 0 if it cannot be.
func (r *row) margin() time.Duration {
	if r.Grant == nil || r.Grant.Refresh == "" || r.Token == nil || r.Token.Expires.IsZero() {
		return 0
	}
	return max(0, min(early, r.Token.Expires.Sub(r.Got)/10))
}

// Credential is the credential for a call. Printing it does not reveal it.
type Credential struct {
	Header, Value string
	// Version changes with the credential.
	Version uint64
}

// String hides the credential.
func (Credential) String() string { return "[a credential]" }

// GoString hides the credential.
func (c Credential) GoString() string { return c.String() }

// Get returns the credential of a person at a server, and renews it if that is due. refused is
// the version that the server rejected; 0 means none. A rejected token is renewed, and a rejected
// secret is no longer used. Errors are *schema.Error of a call that did not start, of
// KindConnectRequired if the person must connect.
func (b *Book) Get(ctx context.Context, server schema.ServerID, person string, refused uint64) (Credential, error) {
	s := b.servers[server]
	if s == nil || s.Exchange != nil {
		return Credential{}, schema.Errorf(schema.KindServerFailed, "Server %q requires a credential of each person, and \"credentials.servers\" does not list it. The call did not start.", server)
	}
	return b.once(ctx, s, fmt.Sprint(server, "\x00", person, "\x00", refused), func(ctx context.Context) (Credential, error) {
		return b.get(ctx, s, person, refused)
	})
}

// once joins the work in flight for the key, or starts it. The wait ends with ctx, the work does
// not.
func (b *Book) once(ctx context.Context, s *Server, key string, work func(ctx context.Context) (Credential, error)) (Credential, error) {
	got := b.flight.DoChan(key, func() (any, error) {
		b.mu.Lock()
		closed := b.closed
		if !closed {
			b.work.Add(1)
		}
		b.mu.Unlock()
		if closed {
			return nil, unavailable(s, errClosed)
		}
		defer b.work.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*leased)
		defer cancel()
		return work(ctx)
	})
	select {
	case <-ctx.Done():
		return Credential{}, ctx.Err()
	case r := <-got:
		if r.Err != nil {
			return Credential{}, r.Err
		}
		return r.Val.(Credential), nil
	}
}

func (b *Book) get(ctx context.Context, s *Server, person string, refused uint64) (Credential, error) {
	for wait := again; ; wait = min(2*wait, seldom) {
		r, revision, err := b.read(ctx, s, person)
		switch {
		case errors.Is(err, errUnreadable):
			// It is bound to another origin, or its key is gone, so it is useless.
			return Credential{}, b.required(s)
		case err != nil:
			return Credential{}, unavailable(s, err)
		case r == nil:
			return Credential{}, b.required(s)
		}
		now := b.now()
		current := r.version() != refused
		switch {
		case r.Grant == nil && !current:
			return Credential{}, b.required(s)
		case r.Grant == nil, current && now.Before(r.Renewing) && usable(r.Token, now, 0), current && usable(r.Token, now, r.margin()):
			b.rewrap(ctx, s, person, r, revision)
			return s.credential(r), nil
		case now.Before(r.Renewing): // another caller is renewing it
			select {
			case <-ctx.Done():
				return Credential{}, unavailable(s, ctx.Err())
			case <-b.closing:
				return Credential{}, unavailable(s, errClosed)
			case <-time.After(wait):
			}
			continue
		}
		before := *r
		done, err := b.renewInTurn(ctx, s, person, r, revision)
		switch {
		case done: // regardless of its lifetime: another renewal would not give a longer one
			return s.credential(r), nil
		case schema.KindOf(err) == schema.KindUnavailable && current && usable(before.Token, b.now(), 0):
			return s.credential(&before), nil
		case err != nil:
			return Credential{}, err
		}
	}
}

// credential returns the credential of the row.
func (s *Server) credential(r *row) Credential {
	value := prefixed(s.Scheme, r.Value)
	if r.Token != nil {
		value = prefixed(s.Scheme, r.Token.Access)
	}
	return Credential{Header: s.Header, Value: value, Version: r.version()}
}

func usable(t *oauth.Token, now time.Time, margin time.Duration) bool {
	return t != nil && (t.Expires.IsZero() || now.Add(margin).Before(t.Expires))
}

func prefixed(scheme, value string) string {
	if scheme == "" {
		return value
	}
	return scheme + " " + value
}

// renewInTurn calls renew once fewer than mostRenewals are in flight.
func (b *Book) renewInTurn(ctx context.Context, s *Server, person string, r *row, revision uint64) (done bool, err error) {
	select {
	case s.renewals <- struct{}{}:
	case <-ctx.Done():
		return false, unavailable(s, ctx.Err())
	case <-b.closing:
		return false, unavailable(s, errClosed)
	}
	defer func() { <-s.renewals }()
	return b.renew(ctx, s, person, r, revision)
}

// renew redeems the refresh token, unless another process was faster. It writes the lease first, so
// that no other process redeems the same token, and stores the new pair before it is used. If done
// is true, the row has the new pair. If done is false and there is no error, the caller must read
// the row again.
func (b *Book) renew(ctx context.Context, s *Server, person string, r *row, revision uint64) (done bool, err error) {
	key := keyOf(s, person)
	if r.Grant.Refresh == "" || s.OAuth == nil {
		return false, b.forget(ctx, s, key, revision)
	}
	r.Renewing = b.now().Add(leased)
	sealed, err := b.seal(ctx, s, person, r)
	if err != nil {
		return false, unavailable(s, err)
	}
	revision, err = b.rows.Replace(ctx, key, sealed, revision)
	if errors.Is(err, bus.ErrConflict) {
		return false, nil // read the result of the other process
	}
	if err != nil {
		return false, unavailable(s, err)
	}
	redeem, cancel := context.WithTimeout(ctx, redeeming)
	token, grant, err := s.OAuth.Refresh(redeem, r.Grant)
	cancel()
	if s.OAuth.Ended(err, r.Grant) {
		return false, b.forget(ctx, s, key, revision)
	}
	r.Renewing = time.Time{}
	if err != nil { // the failure may be temporary: release the lease
		if sealed, sealing := b.seal(ctx, s, person, r); sealing == nil {
			_, _ = b.rows.Replace(ctx, key, sealed, revision)
		}
		if errors.Is(err, oauth.ErrOtherServer) {
			return false, b.required(s) // the grant is kept, because the settings may be wrong
		}
		return false, unavailable(s, err)
	}
	r.Token, r.Grant, r.Got = token, grant, b.now().UTC()
	return b.keep(ctx, s, person, r, revision)
}

// keep stores the result of a renewal over the row that the renewal began with.
func (b *Book) keep(ctx context.Context, s *Server, person string, r *row, revision uint64) (done bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storing)
	defer cancel()
	sealed, err := b.seal(ctx, s, person, r)
	if err != nil {
		return false, unavailable(s, err)
	}
	for {
		_, err = b.rows.Replace(ctx, keyOf(s, person), sealed, revision)
		if err == nil {
			return true, nil
		}
		if errors.Is(err, bus.ErrConflict) {
			return b.lost(ctx, s, person, r)
		}
		if !sleep.For(again, ctx.Done()) {
			return false, unavailable(s, err)
		}
	}
}

// lost handles a conflict while storing a renewal. The stored row may be this renewal's (the
// response to an earlier attempt was lost), a new connection of the person, or absent.
func (b *Book) lost(ctx context.Context, s *Server, person string, r *row) (done bool, err error) {
	now, _, err := b.read(ctx, s, person)
	switch {
	case err != nil:
		return false, nil // the caller reads it again
	case now == nil: // the person has disconnected, but this new pair is still valid
		_ = s.OAuth.Revoke(ctx, r.Grant, r.Token)
	}
	return now != nil && now.version() == r.version(), nil
}

// forget removes an unusable credential, and returns an error that asks the person to connect. It
// returns nil if the row has changed in the meantime.
func (b *Book) forget(ctx context.Context, s *Server, key string, revision uint64) error {
	switch err := b.rows.Remove(ctx, key, revision); {
	case errors.Is(err, bus.ErrConflict):
		return nil
	case err != nil:
		return unavailable(s, err)
	}
	return b.required(s)
}

// required returns the error that asks the person to connect.
func (b *Book) required(s *Server) error {
	e := schema.Errorf(schema.KindConnectRequired, "Server %q requires your own credential; connect at %s. The call did not start.", s.ID, b.ConnectURL(s.ID))
	e.ConnectURL = b.ConnectURL(s.ID)
	return e
}

// ConnectURL returns the address where people connect to a server.
func (b *Book) ConnectURL(server schema.ServerID) string {
	return b.connect + ConnectPath + "?server=" + url.QueryEscape(string(server))
}

func unavailable(s *Server, err error) error {
	return schema.Errorf(schema.KindUnavailable, "The caller's credential for server %q is not available now: %w. The call did not start.", s.ID, err).RetryableAfter(0)
}
