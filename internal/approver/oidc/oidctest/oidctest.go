// Package oidctest provides a real OpenID Connect provider for tests. It can also forge tokens. It
// must not be used outside tests.
package oidctest

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
)

// Claims holds the claims of an ID token.
type Claims = map[string]any

// Provider is an identity provider on loopback. Its methods are safe for concurrent use.
type Provider struct {
	Issuer, ClientID, Secret string

	mock *mockoidc.MockOIDC
	mu   sync.Mutex
	// The fields below determine the next sign-ins.
	claims Claims
	forge  func(claims Claims, key *rsa.PrivateKey) string
	down   bool
	asked  []url.Values
	tokens int
}

// Start runs a provider until the test ends. It signs every visitor in immediately, with the claims
// of the last [Provider.SignsIn].
func Start(t testing.TB) *Provider {
	t.Helper()
	mock, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{mock: mock}
	// Do not use its Run method: that panics when it ends.
	mux := http.NewServeMux()
	for path, f := range map[string]http.HandlerFunc{
		mockoidc.AuthorizationEndpoint: mock.Authorize, mockoidc.TokenEndpoint: mock.Token,
		mockoidc.JWKSEndpoint: mock.JWKS, mockoidc.DiscoveryEndpoint: mock.Discovery,
	} {
		mux.Handle(path, p.stand(f))
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mock.Server = s.Config
	// Under this name it is a different site from 127.0.0.1, like real providers.
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	mock.Server.Addr = net.JoinHostPort("localhost", port)
	p.Issuer, p.ClientID, p.Secret = mock.Issuer(), mock.ClientID, mock.ClientSecret
	return p
}

// SignsIn sets the claims of the next sign-ins. The provider adds the others.
func (p *Provider) SignsIn(claims Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = maps.Clone(claims)
}

// Forge replaces the creation of ID tokens. nil restores the default.
func (p *Provider) Forge(f func(claims Claims, key *rsa.PrivateKey) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = f
}

// Down sets whether the provider fails all requests.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Asked returns the parameters of all sign-ins so far.
func (p *Provider) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]url.Values(nil), p.asked...)
}

// Tokens returns the number of code exchanges, successful or not.
func (p *Provider) Tokens() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens
}

// stand wraps the mock with a lock, because it is not safe for concurrent use.
func (p *Provider) stand(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		switch r.URL.Path {
		case mockoidc.AuthorizationEndpoint:
			p.asked = append(p.asked, r.URL.Query())
		case mockoidc.TokenEndpoint:
			p.tokens++
			p.token(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	var answer map[string]any
	if rec.Code == http.StatusOK && json.Unmarshal(body, &answer) == nil {
		raw, _ := answer["id_token"].(string)
		answer["id_token"] = p.remade(raw)
		body, _ = json.Marshal(answer)
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = bytes.NewReader(body).WriteTo(w)
}

func (p *Provider) remade(raw string) string {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return raw
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	claims := Claims{}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return raw
	}
	claims["auth_time"] = time.Now().Unix()
	for name, value := range p.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	if p.forge != nil {
		return p.forge(claims, p.mock.Keypair.PrivateKey)
	}
	return Signed(claims, p.mock.Keypair.PrivateKey)
}

// Signed returns an ID token like the provider's.
func Signed(claims Claims, key *rsa.PrivateKey) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	pair := mockoidc.Keypair{PrivateKey: key, PublicKey: &key.PublicKey}
	if kid, err := pair.KeyID(); err == nil {
		token.Header["kid"] = kid
	}
	signed, _ := token.SignedString(key) // a key that cannot sign makes a token that does not verify
	return signed
}
