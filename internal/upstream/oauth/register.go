package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/callyard/callyard/internal/kit/urls"
)

// Client authentication methods at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// Client is the identity of Callyard at authorization servers.
type Client struct {
	// ID is the client id that an operator registered with Issuer, or "" if there is none. Secret
	// or Key authenticates it; at most one may be set. Method is the authentication method for
	// Secret; if empty, it is one that the server supports.
	ID, Issuer string
	Secret     func() (string, error)
	Key        *Key
	Method     string

	// MetadataURL is the address of the client id metadata document, which is the client id at
	// servers that support such documents. It is "" if there is none.
	MetadataURL string
	// RedirectURL is the redirect address. Name is the name of the client shown to people.
	RedirectURL string
	Name        string

	HTTP *http.Client // of [NewHTTPClient]
}

// Registration is the registration of the client at one authorization server. It may hold a secret.
type Registration struct {
	Issuer string `json:"issuer"` // the only issuer that it is valid for
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"` // issued by the server; a configured secret is not stored here
	Method string `json:"method"`           // at the token endpoint
}

// String hides the secret.
func (Registration) String() string { return "[a registration]" }

// GoString hides the secret.
func (r Registration) GoString() string { return r.String() }

// Register registers the client at an authorization server: as the configured client, otherwise by
// its metadata document, otherwise by dynamic registration (RFC 7591).
func (c *Client) Register(ctx context.Context, m *Metadata) (Registration, error) {
	r := Registration{Issuer: m.Issuer}
	switch {
	case c.ID != "":
		if c.Issuer != "" && !sameIssuer(c.Issuer, m.Issuer) {
			return r, errors.New("the client is registered with another authorization server")
		}
		r.ID, r.Method = c.ID, c.method(m.TokenEndpointAuthMethodsSupported)
		return r, nil
	case c.MetadataURL != "" && m.ClientIDMetadataDocumentSupported:
		r.ID, r.Method = c.MetadataURL, methodNone
		return r, nil
	case m.RegistrationEndpoint == "":
		return r, errors.New("the authorization server does not register clients; register one there and configure its client_id")
	}
	wanted := &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{c.RedirectURL}, ClientName: c.Name, ResponseTypes: []string{"code"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ApplicationType: "web",
		TokenEndpointAuthMethod: preferred(m.TokenEndpointAuthMethodsSupported),
	}
	if u, err := url.Parse(c.RedirectURL); err == nil && urls.Loopback(u.Hostname()) {
		wanted.ApplicationType = "native"
	}
	got, err := oauthex.RegisterClient(ctx, m.RegistrationEndpoint, wanted, c.HTTP)
	if err != nil {
		return r, wordRegistration(err)
	}
	r.ID, r.Secret, r.Method = got.ClientID, got.ClientSecret, got.TokenEndpointAuthMethod
	if !visible(r.ID) || !visible(r.Secret) {
		return r, errors.New("the authorization server registered the client under an id or secret that cannot be sent")
	}
	switch {
	case r.Secret == "":
		r.Method = methodNone
	case r.Method == "":
		r.Method = withSecret(m.TokenEndpointAuthMethodsSupported)
	case r.Method != methodBasic && r.Method != methodPost && r.Method != methodNone:
		return r, errors.New("the authorization server registered the client with an unknown method of authentication")
	}
	return r, nil
}

// method returns the authentication method of the configured client.
func (c *Client) method(supported []string) string {
	switch {
	case c.Key != nil:
		return methodKey
	case c.Secret == nil:
		return methodNone
	case c.Method != "":
		return c.Method
	}
	return withSecret(supported)
}

// withSecret returns the method for sending a secret (the default is in RFC 8414, section 2).
func withSecret(supported []string) string {
	if slices.Contains(supported, methodPost) && !slices.Contains(supported, methodBasic) {
		return methodPost
	}
	return methodBasic
}

// preferred returns the method to request in a new registration.
func preferred(supported []string) string {
	for _, m := range []string{methodBasic, methodPost, methodNone} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return ""
}

func wordRegistration(err error) error {
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		if code := errorCode(refused.ErrorCode); code != "" {
			return errors.New("the authorization server refused to register the client: " + code)
		}
	}
	return errors.New("the authorization server did not register the client")
}
