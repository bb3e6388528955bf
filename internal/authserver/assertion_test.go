package authserver_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/authserver"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// setOf returns a key set of the public keys.
func setOf(t testing.TB, keys ...*tokentest.Key) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keyedClients returns a server with the clients "batch" and "other", which authenticate with keys.
func keyedClients(t *testing.T) (w *installation, s *authserver.Server, batch, other *tokentest.Key) {
	t.Helper()
	batch, other = tokentest.NewKey(t, "k1", jose.ES256), tokentest.NewKey(t, "k1", jose.ES256)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, setOf(t, other), 0o600); err != nil {
		t.Fatal(err)
	}
	w, s = newInstallation(t, func(o *authserver.Options) {
		o.Clients = append(o.Clients, authserver.Client{ID: "batch", Redirects: []string{back}, Keys: setOf(t, batch)}, authserver.Client{ID: "other", Redirects: []string{back}, KeysFile: file})
	})
	return w, s, batch, other
}

var assertions atomic.Int64

// asserted returns an assertion of a client with changed claims; nil removes one.
func (w *installation) asserted(k *tokentest.Key, client string, header tokentest.Header, changes tokentest.Claims) string {
	w.t.Helper()
	now := w.now()
	c := tokentest.Claims{"iss": client, "sub": client, "aud": w.url, "jti": fmt.Sprint("jti ", assertions.Add(1)), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	h := tokentest.Header{"typ": "JWT"}
	maps.Copy(h, header)
	return k.Sign(w.t, c, h)
}

// with returns a redemption by a client that presents an assertion.
func with(assertion, code string, changes ...string) url.Values {
	return changed(redemption(code, "client_id", "-", "client_assertion_type", assertionType, "client_assertion", assertion), changes...)
}

func TestClientAssertionIsAcceptedOnce(t *testing.T) {
	w, s, batch, other := keyedClients(t)
	used := w.asserted(batch, "batch", nil, nil)
	g := post(t, s.ServeToken, with(used, w.code(s, "client_id", "batch")))
	if g.Status != http.StatusOK {
		t.Fatalf("%+v", g)
	}
	again := renewal(g.Refresh, "client_id", "-", "client_assertion_type", assertionType, "client_assertion", used)
	if a := post(t, w.open(func(o *authserver.Options) {
		o.Clients = []authserver.Client{{ID: "batch", Redirects: []string{back}, Keys: setOf(t, batch)}}
	}).ServeToken, again); a.Error != "invalid_client" {
		t.Errorf("a replay at another approver: %+v", a)
	}
	if a := post(t, s.ServeToken, changed(again, "client_assertion", w.asserted(batch, "batch", tokentest.Header{"typ": nil}, tokentest.Claims{"aud": w.url + authserver.TokenPath}))); a.Status != http.StatusOK {
		t.Errorf("for the token endpoint: %+v", a)
	} else {
		g = a
	}
	if a := post(t, s.ServeToken, renewal(g.Refresh, "client_id", "batch")); a.Error != "invalid_client" {
		t.Errorf("without one: %+v", a)
	}
	revocation := url.Values{"token": {g.Refresh}, "client_assertion_type": {assertionType}, "client_assertion": {w.asserted(batch, "batch", nil, nil)}}
	if a := post(t, s.ServeRevoke, revocation); a.Status != http.StatusOK {
		t.Errorf("revoking: %+v", a)
	}
	if a := post(t, s.ServeToken, changed(again, "refresh_token", g.Refresh, "client_assertion", w.asserted(batch, "batch", nil, nil))); a.Error != "invalid_grant" {
		t.Errorf("after that: %+v", a)
	}
	if a := post(t, s.ServeToken, with(w.asserted(other, "other", nil, nil), w.code(s, "client_id", "other"))); a.Status != http.StatusOK {
		t.Errorf("keys in a file: %+v", a)
	}
}

func TestAClientWhoseFileHasNoKeysStopsTheStart(t *testing.T) {
	w, _ := newInstallation(t, nil)
	empty := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(empty, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".none"} {
		_, err := authserver.Open(t.Context(), authserver.Options{
			Issuer: w.url, Resources: []string{"https://tools.example"}, Clients: []authserver.Client{{ID: "batch", Redirects: []string{back}, KeysFile: file}},
			Keys: w.keys, Conn: w.nats.Connect(t, "approver"), Log: slog.New(slog.DiscardHandler),
		})
		if err == nil || !strings.Contains(err.Error(), "jwks_file of the client batch") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestConcurrentUseOfAnAssertionSucceedsOnce(t *testing.T) {
	w, s, batch, _ := keyedClients(t)
	shown, answers := w.asserted(batch, "batch", nil, nil), make([]tokenResponse, 6)
	var wait sync.WaitGroup
	for i := range answers {
		code := w.code(s, "client_id", "batch")
		wait.Go(func() { answers[i] = post(t, s.ServeToken, with(shown, code)) })
	}
	wait.Wait()
	won := 0
	for _, g := range answers {
		if g.Status == http.StatusOK {
			won++
		} else if g.Error != "invalid_client" {
			t.Errorf("%+v", g)
		}
	}
	if won != 1 {
		t.Errorf("%d of them got tokens", won)
	}
}

func TestNoForgedAssertionIsTaken(t *testing.T) {
	w, s, batch, other := keyedClients(t)
	rsa := tokentest.NewKey(t, "k1", jose.RS256)
	now := w.now()
	claims := func(name string, value any) string {
		return w.asserted(batch, "batch", nil, tokentest.Claims{name: value})
	}
	header := func(name jose.HeaderKey, value any) string {
		return w.asserted(batch, "batch", tokentest.Header{name: value}, nil)
	}
	good := w.asserted(batch, "batch", nil, nil)
	parts := strings.Split(good, ".")
	list := map[string]string{
		"the key of another client":      w.asserted(other, "batch", nil, nil),
		"a key of nobody":                w.asserted(tokentest.NewKey(t, "k1", jose.ES256), "batch", nil, nil),
		"another kind of key":            w.asserted(rsa, "batch", nil, nil),
		"an unknown kid":                 header("kid", "k2"),
		"a kid that is a path":           header("kid", "../../k1"),
		"alg none":                       header("alg", "none"),
		"alg none without a signature":   strings.Join([]string{"eyJhbGciOiJub25lIn0", parts[1], ""}, "."),
		"HS256 with the public key":      header("alg", "HS256"),
		"another alg":                    header("alg", "ES384"),
		"a key in the header":            header("jwk", tokentest.NewKey(t, "k1", jose.ES256).Public()),
		"the address of a key":           header("jku", "https://evil.example/jwks"),
		"a certificate":                  header("x5c", []string{"MA=="}),
		"a critical extension":           header("crit", []string{"x"}),
		"an access token by type":        header("typ", "at+jwt"),
		"an ID token by type":            header("typ", "id_token+jwt"),
		"no signature":                   parts[0] + "." + parts[1] + ".",
		"another payload":                parts[0] + "." + strings.Split(claims("jti", "x"), ".")[1] + "." + parts[2],
		"another server":                 claims("aud", "https://evil.example"),
		"the resource":                   claims("aud", resource),
		"the issuer with a slash":        claims("aud", w.url+"/"),
		"the server and another":         claims("aud", []string{w.url, "https://evil.example"}),
		"no audience":                    claims("aud", nil),
		"an empty list of audiences":     claims("aud", []string{}),
		"an audience that is an object":  claims("aud", map[string]string{w.url: ""}),
		"another issuer":                 claims("iss", "other"),
		"another subject":                claims("sub", "other"),
		"no subject":                     claims("sub", nil),
		"no jti":                         claims("jti", nil),
		"a long jti":                     claims("jti", strings.Repeat("x", 300)),
		"a jti that is a number":         claims("jti", 7),
		"an expired one":                 claims("exp", now.Add(-time.Minute).Unix()),
		"no end":                         claims("exp", nil),
		"an end that is a text":          claims("exp", "9999999999"),
		"an end far ahead":               claims("exp", now.Add(time.Hour).Unix()),
		"one that is not valid yet":      claims("nbf", now.Add(time.Minute).Unix()),
		"one of tomorrow":                claims("iat", now.Add(24*time.Hour).Unix()),
		"a long one":                     claims("x", strings.Repeat("x", 9<<10)),
		"no JWT":                         "x",
		"nothing":                        "",
		"two claims of one name":         batch.SignBytes(t, fmt.Appendf(nil, `{"iss":"batch","sub":"batch","aud":"https://evil.example","aud":%q,"jti":"a","exp":%d}`, w.url, now.Add(time.Minute).Unix()), tokentest.Header{"typ": "JWT"}),
		"a list of claims":               batch.SignBytes(t, []byte(`[]`), tokentest.Header{"typ": "JWT"}),
		"a client without keys":          w.asserted(batch, "app", nil, nil),
		"a client that is not known":     w.asserted(batch, "nobody", nil, nil),
		"a client with a document":       w.asserted(batch, "https://evil.example/client.json", nil, nil),
		"an assertion of another client": w.asserted(other, "other", nil, nil),
	}
	for name, assertion := range list {
		if g := post(t, s.ServeToken, with(assertion, w.code(s, "client_id", "batch"))); g.Status == http.StatusOK || g.Access != "" || g.Error != "invalid_client" && g.Error != "invalid_grant" {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if len(list) < 40 {
		t.Errorf("%d forgeries", len(list))
	}
	for name, changes := range map[string][]string{
		"another type":   {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"},
		"no type":        {"client_assertion_type", "-"},
		"a secret":       {"client_secret", "x"},
		"another id":     {"client_id", "other"},
		"of a public id": {"client_id", "app"},
	} {
		if g := post(t, s.ServeToken, with(w.asserted(batch, "batch", nil, nil), w.code(s, "client_id", "batch"), changes...)); g.Status == http.StatusOK || g.Error == "" {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if g := post(t, s.ServeToken, with(good, w.code(s, "client_id", "batch")), "batch", "x"); g.Error != "invalid_request" {
		t.Errorf("with a header: %+v", g)
	}
	if g := post(t, s.ServeToken, with(good, w.code(s, "client_id", "batch"))); g.Status != http.StatusOK {
		t.Errorf("the good one: %+v", g)
	}
}

func TestClientKeysAreReloadedForAnUnknownKey(t *testing.T) {
	first, second := tokentest.NewKey(t, "k1", jose.ES256), tokentest.NewKey(t, "k2", jose.ES256)
	var set atomic.Value
	var asked atomic.Int32
	set.Store(setOf(t, first))
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(set.Load().([]byte))
	}))
	t.Cleanup(keys.Close)
	w, s := newInstallation(t, func(o *authserver.Options) {
		o.Clients = append(o.Clients, authserver.Client{ID: "batch", Redirects: []string{back}, KeysURL: keys.URL})
	})
	try := func(k *tokentest.Key) int {
		return post(t, s.ServeToken, with(w.asserted(k, "batch", nil, nil), w.code(s, "client_id", "batch"))).Status
	}
	if a, b := try(first), try(first); a != http.StatusOK || b != http.StatusOK || asked.Load() != 1 {
		t.Errorf("%d, %d, read %d times", a, b, asked.Load())
	}
	set.Store(setOf(t, first, second))
	for range 20 {
		if try(second) == http.StatusOK {
			t.Error("it was read again at once")
		}
	}
	w.pass(time.Minute)
	if a, b := try(second), try(first); a != http.StatusOK || b != http.StatusOK || asked.Load() != 2 {
		t.Errorf("after the change: %d, %d, read %d times", a, b, asked.Load())
	}
	keys.Close()
	w.pass(10 * time.Minute)
	if a := try(first); a != http.StatusServiceUnavailable {
		t.Errorf("its keys are away: %d", a)
	}
}

func TestClientAuthenticatesAsItsMetadataDocumentSays(t *testing.T) {
	p := publish(t)
	w, s := newInstallation(t, func(o *authserver.Options) {
		o.Hosts = []string{"127.0.0.1"}
		o.HTTP = p.Client()
		o.HTTP.CheckRedirect = authserver.NoRedirect
	})
	key := tokentest.NewKey(t, "k1", jose.ES256)
	inline := map[string]any{"token_endpoint_auth_method": "private_key_jwt", "jwks": json.RawMessage(setOf(t, key))}
	asking := []string{"client_id", p.id()}
	p.publish(inline)
	code := w.code(s, asking...)
	if g := post(t, s.ServeToken, redemption(code, asking...)); g.Error != "invalid_client" {
		t.Errorf("without an assertion: %+v", g)
	}
	if g := post(t, s.ServeToken, with(w.asserted(tokentest.NewKey(t, "k1", jose.ES256), p.id(), nil, nil), code)); g.Error != "invalid_client" {
		t.Errorf("with another key: %+v", g)
	}
	g := post(t, s.ServeToken, with(w.asserted(key, p.id(), nil, nil), code))
	if g.Status != http.StatusOK {
		t.Fatalf("%+v", g)
	}
	if a := post(t, s.ServeToken, renewal(g.Refresh, asking...)); a.Error != "invalid_client" {
		t.Errorf("refreshing without an assertion: %+v", a)
	}
	if a := post(t, s.ServeRevoke, url.Values{"client_id": {p.id()}, "token": {g.Refresh}}); a.Error != "invalid_client" {
		t.Errorf("revoking without an assertion: %+v", a)
	}
	shown := []string{"client_id", "-", "client_assertion_type", assertionType, "client_assertion"}
	if g = post(t, s.ServeToken, renewal(g.Refresh, append(shown, w.asserted(key, p.id(), nil, nil))...)); g.Status != http.StatusOK {
		t.Errorf("refreshing: %+v", g)
	}
	// After invalid_client, programs throw their tokens away. That its host is down is no reason for that.
	w.pass(10 * time.Minute)
	p.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
	if a := post(t, s.ServeToken, renewal(g.Refresh, append(shown, w.asserted(key, p.id(), nil, nil))...)); a.Status != http.StatusServiceUnavailable || a.Error != "temporarily_unavailable" {
		t.Errorf("refreshing while the document is away: %+v", a)
	}
	w.pass(time.Minute)
	p.publish(inline)
	if g = post(t, s.ServeToken, renewal(g.Refresh, append(shown, w.asserted(key, p.id(), nil, nil))...)); g.Status != http.StatusOK {
		t.Errorf("refreshing when it is back: %+v", g)
	}
	// A request without a valid code must not make the server fetch anything.
	before := p.asked.Load()
	w.pass(10 * time.Minute)
	if a := post(t, s.ServeToken, with(w.asserted(key, p.id(), nil, nil), "cyc_"+strings.Repeat("A", 64))); a.Error != "invalid_grant" || p.asked.Load() != before {
		t.Errorf("%+v, and %d documents were read", a, p.asked.Load()-before)
	}
	for name, change := range map[string]map[string]any{
		"no keys":        {"jwks": nil},
		"keys in two":    {"jwks_uri": p.URL + "/jwks"},
		"keys elsewhere": {"jwks": nil, "jwks_uri": "https://evil.example/jwks"},
		"keys in clear":  {"jwks": nil, "jwks_uri": "http://127.0.0.1/jwks"},
		"a private key":  {"jwks": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Private, KeyID: "k1"}}}},
		"no public key":  {"jwks": map[string]any{"keys": []any{map[string]any{"kty": "oct", "k": "AAAA"}}}},
		"another method": {"token_endpoint_auth_method": "client_secret_jwt"},
	} {
		w.pass(10 * time.Minute)
		doc := map[string]any{}
		for _, from := range []map[string]any{inline, change} {
			maps.Copy(doc, from)
		}
		p.publish(doc)
		if _, err := s.Ask(t.Context(), request(asking...), &ada); err == nil || !strings.Contains(err.Error(), "cannot be verified") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.pass(10 * time.Minute)
	p.answers(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/jwks" {
			_, _ = rw.Write(setOf(t, key))
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"client_id": p.id(), "redirect_uris": []string{back}, "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": p.URL + "/jwks"})
	})
	if g := post(t, s.ServeToken, with(w.asserted(key, p.id(), nil, nil), w.code(s, asking...))); g.Status != http.StatusOK {
		t.Errorf("keys at an address: %+v", g)
	}
}

func FuzzAnAssertionNamesAClientOrIsRefused(f *testing.F) {
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0.eyJpc3MiOiJiYXRjaCJ9.AAAA")
	f.Add(`{"payload":"e30","signatures":[]}`)
	read := authserver.AssertionReader("https://as.example")
	f.Fuzz(func(t *testing.T, raw string) {
		if client, err := read(url.Values{"client_assertion_type": {assertionType}, "client_assertion": {raw}}); err == nil && client == "" {
			t.Error("an assertion of nobody")
		}
	})
}
