package credential

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/pkg/schema"
)

// Paths of the pages where people connect.
const (
	ConnectPath  = "/connect"
	CallbackPath = "/connect/callback"    // followed by the server's ID
	ClientPath   = "/connect/client.json" // the client's metadata document
)

// CallbackURL returns the redirect URI for one server. Each server has its own, so that no
// authorization server receives the code of another (RFC 9700, section 4.4.2.2). connect is the
// address of the pages.
func CallbackURL(connect string, server schema.ServerID) string {
	return connect + CallbackPath + "/" + url.PathEscape(string(server))
}

// maxSecret is the maximum size of a stored secret, in bytes.
const maxSecret = 8 << 10

// Connection is a person's connection to one server, for display.
type Connection struct {
	Server    *Server
	Connected time.Time // zero if not connected
}

// Connections returns all servers that people can connect to, sorted by name, with the person's
// connections.
func (b *Book) Connections(ctx context.Context, person string) ([]Connection, error) {
	var all []Connection
	for _, id := range slices.Sorted(maps.Keys(b.servers)) {
		s := b.servers[id]
		if s.Exchange != nil {
			continue
		}
		r, _, err := b.read(ctx, s, person)
		if err != nil && !errors.Is(err, errUnreadable) {
			return nil, unavailable(s, err)
		}
		c := Connection{Server: s}
		if r != nil {
			c.Connected = r.Connected
		}
		all = append(all, c)
	}
	return all, nil
}

// Begin creates the authorization request with which a person connects. The caller binds it
// to that person's browser.
func (b *Book) Begin(ctx context.Context, server schema.ServerID) (*oauth.Request, error) {
	s := b.servers[server]
	if s == nil || s.OAuth == nil || s.Exchange != nil {
		return nil, schema.Errorf(schema.KindNotFound, "There is no server of this name to connect to.")
	}
	r, err := oauth.Discover(ctx, s.OAuth.HTTP, s.URL, s.OAuth.Issuer, oauth.Challenge{})
	if err == nil {
		if len(s.Scopes) > 0 {
			r.Scopes = s.Scopes
		}
		var req *oauth.Request
		if req, err = s.OAuth.Begin(ctx, r); err == nil {
			return req, nil
		}
	}
	return nil, schema.Errorf(schema.KindServerFailed, "Connecting to server %q failed: %w.", server, err)
}

// Finish redeems and stores the person's grant. answer is the query of the redirect.
func (b *Book) Finish(ctx context.Context, server schema.ServerID, person string, req *oauth.Request, answer url.Values) error {
	s := b.servers[server]
	if s == nil || s.OAuth == nil || s.Exchange != nil {
		return schema.Errorf(schema.KindNotFound, "There is no server of this name to connect to.")
	}
	token, grant, err := s.OAuth.Finish(ctx, req, answer)
	if err != nil {
		return schema.Errorf(schema.KindForbidden, "You are not connected to server %q: %w.", server, err)
	}
	return b.store(ctx, s, person, &row{Connected: b.now().UTC(), Token: token, Grant: grant, Got: b.now().UTC()})
}

// SetSecret stores a person's own secret, such as an API key.
func (b *Book) SetSecret(ctx context.Context, server schema.ServerID, person, secret string) error {
	s := b.servers[server]
	switch {
	case s == nil || s.OAuth != nil:
		return schema.Errorf(schema.KindNotFound, "There is no server of this name that takes a key.")
	case secret == "":
		return schema.Errorf(schema.KindInvalidRequest, "The key is empty.")
	case len(secret) > maxSecret || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c >= 0x7f }):
		return schema.Errorf(schema.KindInvalidRequest, "The key is too long, or holds a character that is not allowed in headers.")
	}
	return b.store(ctx, s, person, &row{Connected: b.now().UTC(), Value: secret})
}

// Disconnect removes a person's credential at a server, and revokes it at the authorization server.
// A failed revocation is not an error.
func (b *Book) Disconnect(ctx context.Context, server schema.ServerID, person string) error {
	s := b.servers[server]
	if s == nil {
		return schema.Errorf(schema.KindNotFound, "There is no server of this name.")
	}
	r, _, err := b.read(ctx, s, person)
	if err != nil && !errors.Is(err, errUnreadable) {
		return unavailable(s, err)
	}
	if err := b.rows.Delete(ctx, keyOf(s, person)); err != nil {
		return unavailable(s, err)
	}
	if r != nil && r.Grant != nil && s.OAuth != nil {
		_ = s.OAuth.Revoke(ctx, r.Grant, r.Token)
	}
	return nil
}

// Metadata returns the client's metadata document (draft-ietf-oauth-client-id-metadata-document),
// which authorization servers read at [ClientPath].
func (b *Book) Metadata() []byte {
	back := []string{}
	for _, id := range slices.Sorted(maps.Keys(b.servers)) {
		if b.servers[id].OAuth != nil && b.servers[id].Exchange == nil {
			back = append(back, b.servers[id].OAuth.RedirectURL)
		}
	}
	text, err := json.Marshal(map[string]any{
		"client_id": b.connect + ClientPath, "client_name": "Callyard", "client_uri": b.connect, "redirect_uris": back,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
	if err != nil {
		return nil // strings always marshal
	}
	return text
}

// Flow is a connection in progress in one browser.
type Flow struct {
	Server  schema.ServerID `json:"server"`
	Person  string          `json:"person"`
	Owner   string          `json:"owner"` // the name of the person in the log
	Until   time.Time       `json:"until"`
	Request *oauth.Request  `json:"request"`
}

const flowPlace = "a flow in a browser"

// SealFlow returns the encrypted flow for storage in the browser. Any approver with the same keys
// can open it. It omits the fields that Finish does not need, because browser storage is limited.
func (b *Book) SealFlow(f *Flow) ([]byte, error) {
	small, request := *f, *f.Request
	request.URL, request.Grant.Scopes = "", nil
	small.Request = &request
	plain, err := json.Marshal(&small)
	if err != nil {
		return nil, err
	}
	return b.keys.seal(plain, place(flowPlace))
}

// OpenFlow decrypts a result of SealFlow. It returns false for anything else, and after the expiry.
func (b *Book) OpenFlow(sealed []byte) (*Flow, bool) {
	plain, err := b.keys.open(sealed, place(flowPlace))
	f := &Flow{}
	if err != nil || json.Unmarshal(plain, f) != nil || f.Request == nil || !b.now().Before(f.Until) {
		return nil, false
	}
	return f, true
}
