package authserver

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/kit/urls"
)

// Client is a program to which people can give access.
type Client struct {
	ID, Name string
	// Redirects lists the redirect URIs. They must match exactly, except for the port of a
	// loopback address.
	Redirects []string
	// SecretHash is the hash of the client's secret by authn.Hash, or "" if it has none.
	SecretHash string
	// Keys is the client's key set (RFC 7517). Alternatively KeysFile or KeysURL gives its
	// location. A client with one of them can authenticate only with private_key_jwt.
	Keys              []byte
	KeysFile, KeysURL string
	// Document reports whether the client described itself in a metadata document, so that its
	// name is not verified.
	Document bool
}

// Methods of client authentication at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// Host returns the host of the metadata document, or "" for a configured client.
func (c *Client) Host() string {
	if u, err := url.Parse(c.ID); err == nil && c.Document {
		return u.Host
	}
	return ""
}

// keyed reports whether the client authenticates with a key.
func (c *Client) keyed() bool { return c.Keys != nil || c.KeysFile != "" || c.KeysURL != "" }

// checkKeysFile returns an error if the client's key file contains no usable key.
func (c *Client) checkKeysFile() error {
	if c.KeysFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.KeysFile)
	if err == nil {
		_, err = token.ReadKeys(text)
	}
	if err != nil {
		return fmt.Errorf("jwks_file of the client %s: %w", c.ID, err)
	}
	return nil
}

// proves reports whether the secret is the client's.
func (c *Client) proves(secret string) bool {
	if c.SecretHash == "" {
		return secret == "" && !c.keyed()
	}
	return subtle.ConstantTimeCompare([]byte(authn.Hash(secret)), []byte(c.SecretHash)) == 1
}

// configured returns the configured client with the ID, or nil.
func (s *Server) configured(id string) *Client {
	if i := slices.IndexFunc(s.o.Clients, func(c Client) bool { return c.ID == id }); i >= 0 {
		return &s.o.Clients[i]
	}
	return nil
}

// client returns the client with the ID. For a client that is not configured, it fetches the
// metadata document. The error is suitable for people.
func (s *Server) client(ctx context.Context, id string) (*Client, error) {
	if c := s.configured(id); c != nil {
		return c, nil
	}
	return s.documents.get(ctx, id)
}

// allows reports whether the client has registered a redirect URI.
func (c *Client) allows(redirect string) bool {
	return GoodRedirect(redirect) && slices.ContainsFunc(c.Redirects, func(registered string) bool {
		return redirect == registered || portless(registered) != "" && portless(redirect) == portless(registered)
	})
}

// portless returns an http loopback address without its port, because native programs do not know
// the port before they listen (RFC 8252, section 7.3). It returns "" for any other address.
func portless(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !urls.Loopback(u.Hostname()) {
		return ""
	}
	u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	return u.String()
}

const maxRedirect = 1024

// GoodRedirect reports whether an address is allowed as a redirect URI: https, or http on loopback,
// without parts that parsers could interpret differently, and without the parameters of a response.
func GoodRedirect(address string) bool {
	if address == "" || len(address) > maxRedirect || strings.ContainsAny(address, "#\\\"<>^`{|}") || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Opaque != "" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || slices.ContainsFunc([]string{"code", "state", "iss", "error"}, q.Has) {
		return false
	}
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") && urls.Loopback(u.Hostname())
}
