package oauth

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Methods of a client to prove itself at the token endpoint.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// Client is who we are to authorization servers.
type Client struct {
	// ID is the client id that an operator has registered with Issuer, "" where there is
	// none. Secret and Key, of which one may be set, prove it. Method is how Secret is sent;
	// "" is what the server supports.
	ID, Issuer string
	Secret     func() (string, error)
	Key        *Key
	Method     string

	// MetadataURL is the address of the client's metadata document, which is its id for
	// servers that know these; "" where there is none.
	MetadataURL string
	// RedirectURL is where people are sent in the end, and Name what they are shown.
	RedirectURL string
	Name        string

	HTTP *http.Client // of [NewHTTPClient]
}

// Registration is how one authorization server knows the client. It may hold a secret.
type Registration struct {
	Issuer string `json:"issuer"` // it is valid nowhere else
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"` // that the server gave; a configured one is not here
	Method string `json:"method"`           // at the token endpoint
}

// String hides the secret.
func (Registration) String() string { return "[a registration]" }

// GoString hides the secret.
func (r Registration) GoString() string { return r.String() }

// Register makes the client known to an authorization server: as the configured client,
// else by its metadata document, else by dynamic registration (RFC 7591).
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
	if local(c.RedirectURL) {
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

// method is how the configured client proves itself.
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

// withSecret is how a secret is sent (RFC 8414, section 2, has the default).
func withSecret(supported []string) string {
	if slices.Contains(supported, methodPost) && !slices.Contains(supported, methodBasic) {
		return methodPost
	}
	return methodBasic
}

// preferred is what a client asks for that is new to the server.
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
