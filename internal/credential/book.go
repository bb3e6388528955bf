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

	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// early is how long before its end a token is renewed; a tenth of its life if that is less.
	early = time.Minute
	// leased is how long a process has for one renewal; another takes over after that.
	leased = 45 * time.Second
	// redeeming bounds the request of a renewal: less than leased, so that nobody else has
	// taken over when it stores.
	redeeming = 30 * time.Second
	// storing bounds the storing of what a renewal got. The refresh token before it is spent by
	// then, so that it is tried again until shortly before another process may take over.
	storing = 10 * time.Second
	// again is between the first two looks at a renewal that another process makes, and between
	// two tries to store. Each look takes twice as long as the one before, up to seldom: when
	// many tokens end at once, looking must not take the time that renewing needs.
	again  = 50 * time.Millisecond
	seldom = time.Second
	// mostRenewals bounds how many grants at one server a process renews at once.
	mostRenewals = 32
)

// Server says how people connect to one MCP server.
type Server struct {
	ID     schema.ServerID
	URL    string        // a credential is for its origin alone
	Header string        // that carries the credential
	Scheme string        // before the credential; "" for none
	OAuth  *oauth.Client // nil where people store secrets of their own
	Scopes []string      // to ask for; nil: those that the server names
	// Exchange says that OAuth exchanges callers' tokens; nil: people connect.
	Exchange *Exchange

	renewals chan struct{} // one for each renewal under way
}

// DataKeys encrypt what tenants have stored, each with a key of its own that ends with the
// tenant ([datakey.Ring]). An error of Open that has a method Gone says that nobody can read it
// any more.
type DataKeys interface {
	Seal(ctx context.Context, tenant schema.TenantID, plain []byte, place ...string) ([]byte, error)
	Open(ctx context.Context, stored []byte, place ...string) ([]byte, error)
}

// errClosed ends what waits when the book is closed.
var errClosed = errors.New("the process is stopping")

func (s *Server) origin() string { return Origin(s.URL) }

// Book is what people have connected. It is safe for concurrent use.
type Book struct {
	keys    *Keys
	data    DataKeys // nil: there are none
	rows    *bus.Bucket
	servers map[schema.ServerID]*Server
	connect string // the address where people connect
	flight  singleflight.Group
	now     func() time.Time
	log     *slog.Logger
	missing sync.Map // names of keys that rows need and that are not there, which is logged

	mu      sync.Mutex
	closed  bool
	closing chan struct{}  // closed with the book
	work    sync.WaitGroup // one for each flight
}

// Open opens the book. Rows are encrypted with keys, and again with data unless it is nil.
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

// Close waits for the renewals under way, which lose their grant where what they get is not
// stored, and ends the connections to authorization servers. It comes before the end of the
// connection to NATS, and takes less than a minute.
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

// Person is who a principal is here: the person or team behind it, in its tenant. A key
// without an owner is nobody's but its own, even where it is called as a person.
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

// tenantOf is the tenant of what [Person] returned.
func tenantOf(person string) schema.TenantID {
	tenant, rest, _ := strings.Cut(person, "\x00")
	if id := schema.TenantID(tenant); strings.Contains(rest, "\x00") && id.Valid() {
		return id
	}
	return schema.DefaultTenant
}

// Server returns how people connect to a server; nil where they do not.
func (b *Book) Server(id schema.ServerID) *Server {
	if b == nil {
		return nil
	}
	return b.servers[id]
}

// row is what is encrypted.
type row struct {
	Connected time.Time    `json:"connected"`
	Value     string       `json:"value,omitempty"` // a secret of the person's own
	Token     *oauth.Token `json:"token,omitempty"`
	Grant     *oauth.Grant `json:"grant,omitempty"`
	Got       time.Time    `json:"got,omitzero"` // when Token was issued
	// Renewing is until when a process renews the token.
	Renewing time.Time `json:"renewing,omitzero"`
}

// version tells credentials of the row apart; it is never 0.
func (r *row) version() uint64 {
	value := r.Value
	if r.Token != nil {
		value = r.Token.Access
	}
	sum := sha256.Sum256([]byte(value))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// margin is how long before its end the token is renewed: nothing where it cannot be.
func (r *row) margin() time.Duration {
	if r.Grant == nil || r.Grant.Refresh == "" || r.Token == nil || r.Token.Expires.IsZero() {
		return 0
	}
	return max(0, min(early, r.Token.Expires.Sub(r.Got)/10))
}

// Credential is what a call needs. It is not shown when it is printed.
type Credential struct {
	Header, Value string
	// Version changes with the credential.
	Version uint64
}

// String hides the credential.
func (Credential) String() string { return "[a credential]" }

// GoString hides the credential.
func (c Credential) GoString() string { return c.String() }

// Get returns the credential of a person at a server, renewed where that is due. refused is
// the version that the server did not take, 0 for none: a token of it is renewed, and a
// secret of it is of no use any more. Errors are *schema.Error of a call that did not start,
// of KindConnectRequired where the person has to connect.
func (b *Book) Get(ctx context.Context, server schema.ServerID, person string, refused uint64) (Credential, error) {
	s := b.servers[server]
	if s == nil || s.Exchange != nil {
		return Credential{}, schema.Errorf(schema.KindServerFailed, "Server %q requires a credential of each person, and \"credentials.servers\" does not list it. The call did not start.", server)
	}
	return b.once(ctx, s, fmt.Sprint(server, "\x00", person, "\x00", refused), func(ctx context.Context) (Credential, error) {
		return b.get(ctx, s, person, refused)
	})
}

// once joins the work under way for the key, or begins it. It ends with ctx, and the work does
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
			// It is of another origin, or of a key that is gone: nobody can use it.
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
		case r.Grant == nil:
			return s.credential(r), nil
		case current && now.Before(r.Renewing) && usable(r.Token, now, 0), current && usable(r.Token, now, r.margin()):
			return s.credential(r), nil
		case now.Before(r.Renewing): // somebody is at it
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
		case done: // whatever its life: another renewal would give no better one
			return s.credential(r), nil
		case schema.KindOf(err) == schema.KindUnavailable && current && usable(before.Token, b.now(), 0):
			return s.credential(&before), nil
		case err != nil:
			return Credential{}, err
		}
	}
}

// credential is what a call needs of the row.
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

// renewInTurn is renew when fewer than mostRenewals are under way.
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

// renew redeems the refresh token, if no other process was faster. The lease is written
// first, so that no two redeem the same token; the new pair is stored before it is used. With
// done the row has the new pair; without, and without an error, it is to be read again.
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
		return false, nil // read again what the other one does
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
	if err != nil { // it may be there again soon: others may try
		if sealed, sealing := b.seal(ctx, s, person, r); sealing == nil {
			_, _ = b.rows.Replace(ctx, key, sealed, revision)
		}
		if errors.Is(err, oauth.ErrOtherServer) {
			return false, b.required(s) // and the grant stays: the settings may be wrong
		}
		return false, unavailable(s, err)
	}
	r.Token, r.Grant, r.Got = token, grant, b.now().UTC()
	return b.keep(ctx, s, person, r, revision)
}

// keep stores what a renewal got, in the place of the row that it began with.
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
		select {
		case <-ctx.Done():
			return false, unavailable(s, err)
		case <-time.After(again):
		}
	}
}

// lost looks at what stands in the place of what a renewal got: that itself, where the answer
// to an earlier try was lost, a new connection of the person, or nothing.
func (b *Book) lost(ctx context.Context, s *Server, person string, r *row) (done bool, err error) {
	now, _, err := b.read(ctx, s, person)
	switch {
	case err != nil:
		return false, nil // it is read again
	case now == nil: // the person has disconnected, which did not end this pair
		_ = s.OAuth.Revoke(ctx, r.Grant, r.Token)
	}
	return now != nil && now.version() == r.version(), nil
}

// forget removes a credential of which nothing can be made, and asks the person to connect. It
// returns nil where another one stands there now.
func (b *Book) forget(ctx context.Context, s *Server, key string, revision uint64) error {
	switch err := b.rows.Remove(ctx, key, revision); {
	case errors.Is(err, bus.ErrConflict):
		return nil
	case err != nil:
		return unavailable(s, err)
	}
	return b.required(s)
}

// required asks the person to connect.
func (b *Book) required(s *Server) error {
	e := schema.Errorf(schema.KindConnectRequired, "Server %q requires your own credential; connect at %s. The call did not start.", s.ID, b.ConnectURL(s.ID))
	e.ConnectURL = b.ConnectURL(s.ID)
	return e
}

// ConnectURL is the address where people connect to a server.
func (b *Book) ConnectURL(server schema.ServerID) string {
	return b.connect + ConnectPath + "?server=" + url.QueryEscape(string(server))
}

func unavailable(s *Server, err error) error {
	return schema.Errorf(schema.KindUnavailable, "The caller's credential for server %q is not available now: %w. The call did not start.", s.ID, err).RetryableAfter(0)
}
