// Package oidctest gives tests a provider of identities that really speaks
// OpenID Connect, and that lies on demand. It must not be used outside tests.
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

// Claims are those of an ID token.
type Claims = map[string]any

// Provider is a provider of identities on loopback. Its methods are safe for
// concurrent use.
type Provider struct {
	Issuer, ClientID, Secret string

	mock *mockoidc.MockOIDC
	mu   sync.Mutex
	// The fields below say how the next people come in.
	claims Claims
	forge  func(claims Claims, key *rsa.PrivateKey) string
	down   bool
	asked  []url.Values
	tokens int
}

// Start runs a provider until the test ends. Whoever goes there is signed in at
// once, just now, as [Provider.SignsIn] said last.
func Start(t testing.TB) *Provider {
	t.Helper()
	mock, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{mock: mock}
	// Not its own Run: that panics when it ends.
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
	// Under this name it is another site than 127.0.0.1, as providers are.
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	mock.Server.Addr = net.JoinHostPort("localhost", port)
	p.Issuer, p.ClientID, p.Secret = mock.Issuer(), mock.ClientID, mock.ClientSecret
	return p
}

// SignsIn sets who signs in from now on; what is not named there is as the
// provider makes it.
func (p *Provider) SignsIn(claims Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = maps.Clone(claims)
}

// Forge replaces how ID tokens are made; nil: as they should be.
func (p *Provider) Forge(f func(claims Claims, key *rsa.PrivateKey) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forge = f
}

// Down sets whether the provider fails.
func (p *Provider) Down(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// Asked returns the parameters of the sign-ins so far.
func (p *Provider) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]url.Values(nil), p.asked...)
}

// Tokens is how often a code was exchanged, well or not.
func (p *Provider) Tokens() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens
}

// stand is between the network and the mock, which minds no concurrency.
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

// Signed makes an ID token as the provider does.
func Signed(claims Claims, key *rsa.PrivateKey) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	pair := mockoidc.Keypair{PrivateKey: key, PublicKey: &key.PublicKey}
	if kid, err := pair.KeyID(); err == nil {
		token.Header["kid"] = kid
	}
	signed, _ := token.SignedString(key) // a key that cannot sign makes a token that does not verify
	return signed
}
