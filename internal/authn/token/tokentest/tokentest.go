// Package tokentest provides an issuer of access tokens for tests. It publishes its keys and can
// forge tokens. It must not be used outside tests.
package tokentest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/settings"
)

// Claims holds the claims of a token.
type Claims = map[string]any

// Header holds members of the header of a token.
type Header = map[jose.HeaderKey]any

// Key is a key of an issuer.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewKey creates a key for ES256, RS256 or EdDSA.
func NewKey(t testing.TB, id string, algorithm jose.SignatureAlgorithm) *Key {
	t.Helper()
	k := &Key{ID: id, Algorithm: algorithm}
	var err error
	switch algorithm {
	case jose.ES256:
		k.Private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, k.Private, err = ed25519.GenerateKey(rand.Reader)
	default:
		k.Private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Public returns the key in the form of an entry of a key set.
func (k *Key) Public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"}
}

// Sign returns a signed token with the claims. The members of header are added to alg, kid and typ; a
// nil member removes one.
func (k *Key) Sign(t testing.TB, claims any, header Header) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return k.SignBytes(t, payload, header)
}

// SignBytes is Sign for any payload.
func (k *Key) SignBytes(t testing.TB, payload []byte, header Header) string {
	t.Helper()
	h := map[string]any{"kid": k.ID, "typ": "at+jwt"}
	for name, value := range header {
		if h[string(name)] = value; value == nil {
			delete(h, string(name))
		}
	}
	h["alg"] = string(k.Algorithm)
	if alg, ok := header["alg"]; ok {
		h["alg"] = alg
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return k.SignRaw(t, text, payload)
}

// SignRaw signs a header and a payload verbatim.
func (k *Key) SignRaw(t testing.TB, header, payload []byte) string {
	t.Helper()
	input := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return input + "." + base64.RawURLEncoding.EncodeToString(k.signature(t, input))
}

// signature signs as specified in RFC 7518 for ES256, RS256 and EdDSA.
func (k *Key) signature(t testing.TB, input string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(input))
	var out []byte
	var err error
	switch p := k.Private.(type) {
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, p, sum[:]); err == nil {
			out = make([]byte, 64)
			r.FillBytes(out[:32])
			s.FillBytes(out[32:])
		}
	case *rsa.PrivateKey:
		out, err = rsa.SignPKCS1v15(rand.Reader, p, crypto.SHA256, sum[:])
	case ed25519.PrivateKey:
		out = ed25519.Sign(p, []byte(input))
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Issuer is an issuer on the loopback interface. Its methods are safe for concurrent use.
type Issuer struct {
	URL     string
	Fetches atomic.Int64 // number of fetches of the key set

	mu   sync.Mutex
	keys []*Key
	down bool
}

// Start runs an issuer with one key until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{keys: []*Key{NewKey(t, "key-1", jose.ES256)}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.Fetches.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.down {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(KeySet(i.keys...))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.URL = s.URL
	return i
}

// KeySet returns the key set of these keys as JSON.
func KeySet(keys ...*Key) []byte {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.Public())
	}
	raw, _ := json.Marshal(set) // public keys always encode
	return raw
}

// Key returns the current signing key.
func (i *Issuer) Key() *Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Rotate replaces the signing key. The old keys stay in the key set.
func (i *Issuer) Rotate(t testing.TB) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, NewKey(t, "key-"+strconv.Itoa(len(i.keys)+1), jose.ES256))
}

// Down sets whether the key set can be fetched.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Entry returns the configuration entry of the issuer.
func (i *Issuer) Entry(name string) settings.Issuer {
	return settings.Issuer{Name: name, Issuer: i.URL}
}

// Claims returns valid claims for a subject and an audience, with changes. A nil value removes a
// claim.
func (i *Issuer) Claims(subject, audience string, change Claims) Claims {
	now := time.Now()
	c := Claims{"iss": i.URL, "sub": subject, "aud": audience, "exp": now.Add(10 * time.Minute).Unix(), "iat": now.Add(-2 * time.Second).Unix(), "jti": "1", "client_id": "app"}
	maps.Copy(c, change)
	for name, value := range c {
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

// Token returns a valid token with these scopes.
func (i *Issuer) Token(t testing.TB, subject, audience, scopes string) string {
	t.Helper()
	return i.Key().Sign(t, i.Claims(subject, audience, Claims{"scope": scopes}), nil)
}
