package credential

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/callyard/callyard/internal/store/credentialtable"
	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// early is how long before its end a token is renewed.
	early = time.Minute
	// leased is how long a process has for one renewal; another takes over after that.
	leased = 45 * time.Second
	// redeeming bounds the request of a renewal: less than leased, so that nobody else has
	// taken over when it stores.
	redeeming = 30 * time.Second
	// again is between two looks at a renewal that another process makes.
	again = 50 * time.Millisecond
)

// Server says how people connect to one MCP server.
type Server struct {
	ID     schema.ServerID
	URL    string        // a credential is for its origin alone
	Header string        // that carries the credential
	Scheme string        // before the credential; "" for none
	OAuth  *oauth.Client // nil where people store secrets of their own
	Scopes []string      // to ask for; nil: those that the server names
}

func (s *Server) origin() string { return Origin(s.URL) }

// Book is what people have connected. It is safe for concurrent use.
type Book struct {
	keys    *Keys
	rows    *bus.Bucket
	servers map[schema.ServerID]*Server
	connect string // the address where people connect
	flight  singleflight.Group
	now     func() time.Time
}

// Open opens the book. connect is the address of the page where people connect.
func Open(ctx context.Context, c *bus.Conn, keys *Keys, servers []*Server, connect string) (*Book, error) {
	rows, err := credentialtable.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	b := &Book{keys: keys, rows: rows, servers: make(map[schema.ServerID]*Server, len(servers)), connect: connect, now: time.Now}
	for _, s := range servers {
		b.servers[s.ID] = s
	}
	return b, nil
}

// Close ends the connections to authorization servers.
func (b *Book) Close() {
	if b == nil {
		return
	}
	for _, s := range b.servers {
		if s.OAuth != nil {
			s.OAuth.HTTP.CloseIdleConnections()
		}
	}
}

// Person is who a principal is here: the person or team behind it, in its tenant.
func Person(p *schema.Principal) string {
	name := p.Owner
	if name == "" {
		name = p.Name
	}
	if p.Tenant.Is(schema.DefaultTenant) {
		return name
	}
	return string(p.Tenant) + "\x00" + name
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

func (b *Book) place(s *Server, person string) []byte { return place(string(s.ID), s.origin(), person) }

// read returns the row of a person; nil where there is none that is for this server.
func (b *Book) read(ctx context.Context, s *Server, person string) (*row, uint64, error) {
	sealed, revision, err := b.rows.Fresh(ctx, credentialtable.Key(s.ID, person))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	plain, err := b.keys.open(sealed, b.place(s, person))
	if err != nil {
		return nil, revision, err
	}
	r := &row{}
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, revision, errUnreadable
	}
	return r, revision, nil
}

func (b *Book) seal(s *Server, person string, r *row) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, errors.New("the credential cannot be stored")
	}
	return b.keys.seal(plain, b.place(s, person))
}

// store writes what a person has connected, over what was there.
func (b *Book) store(ctx context.Context, s *Server, person string, r *row) error {
	sealed, err := b.seal(s, person, r)
	if err != nil {
		return err
	}
	_, err = b.rows.Put(ctx, credentialtable.Key(s.ID, person), sealed)
	return err
}

// Get returns the credential of a person at a server, renewed where that is due. refused is
// the version that the server did not take, 0 for none: a token of it is renewed, and a
// secret of it is of no use any more. Errors are *schema.Error of a call that did not start,
// of KindConnectRequired where the person has to connect.
func (b *Book) Get(ctx context.Context, server schema.ServerID, person string, refused uint64) (Credential, error) {
	s := b.servers[server]
	if s == nil {
		return Credential{}, schema.Errorf(schema.KindServerFailed, "Server %q requires a credential of each person, and \"credentials.servers\" does not list it. The call did not start.", server)
	}
	got := b.flight.DoChan(fmt.Sprint(server, "\x00", person, "\x00", refused), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*leased)
		defer cancel()
		return b.get(ctx, s, person, refused)
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
	for {
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
		version := r.version()
		current := version != refused
		switch {
		case r.Grant == nil && !current:
			return Credential{}, b.required(s)
		case r.Grant == nil:
			return Credential{Header: s.Header, Value: prefixed(s.Scheme, r.Value), Version: version}, nil
		case current && now.Before(r.Renewing) && usable(r.Token, now, 0), current && usable(r.Token, now, early):
			return Credential{Header: s.Header, Value: prefixed(s.Scheme, r.Token.Access), Version: version}, nil
		case now.Before(r.Renewing): // somebody is at it
			select {
			case <-ctx.Done():
				return Credential{}, unavailable(s, ctx.Err())
			case <-time.After(again):
			}
			continue
		}
		done, err := b.renew(ctx, s, person, r, revision)
		if err != nil {
			return Credential{}, err
		}
		if done {
			refused = 0
		}
	}
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

// renew redeems the refresh token, if no other process was faster. The lease is written
// first, so that no two redeem the same token; the new pair is stored before it is used.
func (b *Book) renew(ctx context.Context, s *Server, person string, r *row, revision uint64) (done bool, err error) {
	key := credentialtable.Key(s.ID, person)
	if r.Grant.Refresh == "" || s.OAuth == nil {
		return false, b.forget(ctx, s, key, revision)
	}
	r.Renewing = b.now().Add(leased)
	sealed, err := b.seal(s, person, r)
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
	if oauth.Ended(err) {
		return false, b.forget(ctx, s, key, revision)
	}
	r.Renewing = time.Time{}
	if err != nil { // it may be there again soon: others may try
		if sealed, sealing := b.seal(s, person, r); sealing == nil {
			_, _ = b.rows.Replace(ctx, key, sealed, revision)
		}
		return false, unavailable(s, err)
	}
	r.Token, r.Grant = token, grant
	if sealed, err = b.seal(s, person, r); err == nil {
		_, err = b.rows.Replace(ctx, key, sealed, revision)
	}
	if err != nil && !errors.Is(err, bus.ErrConflict) { // with a conflict the person has connected again, or disconnected
		return false, unavailable(s, err)
	}
	return true, nil
}

// forget removes a credential of which nothing can be made, and asks the person to connect.
func (b *Book) forget(ctx context.Context, s *Server, key string, revision uint64) error {
	if err := b.rows.Remove(ctx, key, revision); err != nil && !errors.Is(err, bus.ErrConflict) {
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
	return b.connect + "/connect?server=" + url.QueryEscape(string(server))
}

func unavailable(s *Server, err error) error {
	e := schema.Errorf(schema.KindUnavailable, "The caller's credential for server %q cannot be had at the moment: %w. The call did not start.", s.ID, err)
	e.Retryable = true
	return e
}
