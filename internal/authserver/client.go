package authserver

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/token"
)

// Client is a program that people may give access to.
type Client struct {
	ID, Name string
	// Redirects are where people may be led back, exactly; of one on loopback the port may
	// differ.
	Redirects []string
	// SecretHash is that of the client's secret, as authn.Hash makes it; "": it has none.
	SecretHash string
	// Keys is its key set (RFC 7517), KeysFile or KeysURL where that is; with one of them it
	// authenticates with private_key_jwt, and in no other way.
	Keys              []byte
	KeysFile, KeysURL string
	// Document says that the client described itself: nobody here vouches for its name.
	Document bool
}

// Methods with which a client authenticates at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// Host is the host of the metadata document; "" for a client of the configuration.
func (c *Client) Host() string {
	if u, err := url.Parse(c.ID); err == nil && c.Document {
		return u.Host
	}
	return ""
}

// keyed reports whether the client authenticates with a key.
func (c *Client) keyed() bool { return c.Keys != nil || c.KeysFile != "" || c.KeysURL != "" }

// checkKeysFile returns an error where the file with the client's keys has none.
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

// configured returns the client of the configuration that has the id; nil: there is none.
func (s *Server) configured(id string) *Client {
	if i := slices.IndexFunc(s.o.Clients, func(c Client) bool { return c.ID == id }); i >= 0 {
		return &s.o.Clients[i]
	}
	return nil
}

// client finds a client by its id. It reads the metadata document of one that is not in the
// configuration. The error is for people.
func (s *Server) client(ctx context.Context, id string) (*Client, error) {
	if c := s.configured(id); c != nil {
		return c, nil
	}
	return s.documents.get(ctx, id)
}

// allows reports whether the client has registered an address to lead people to.
func (c *Client) allows(redirect string) bool {
	return GoodRedirect(redirect) && slices.ContainsFunc(c.Redirects, func(registered string) bool {
		return redirect == registered || portless(registered) != "" && portless(redirect) == portless(registered)
	})
}

// portless is an http address on loopback without its port, which native programs do not know
// before they listen (RFC 8252, section 7.3); "" for any other address.
func portless(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !Loopback(u.Hostname()) {
		return ""
	}
	u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
	return u.String()
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

const maxRedirect = 1024

// GoodRedirect reports whether a client can register an address at all: https, or http on
// loopback, without what would make two readers see two addresses, and without the parameters
// of an answer.
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
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") && Loopback(u.Hostname())
}
