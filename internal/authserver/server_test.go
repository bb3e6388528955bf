package authserver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	resource = "https://tools.example/mcp"
	back     = "https://app.example/callback"
	verifier = "a-verifier-that-is-long-enough-for-the-standard-0123"
)

// installation is an installation with servers that share their tables.
type installation struct {
	t      *testing.T
	nats   *bustest.Server
	keys   *credential.Keys
	log    *bytes.Buffer
	logger *slog.Logger // shared by all servers; its handler guards log
	url    string
	secret string // secret of the client "confidential"

	mu   sync.Mutex
	when time.Time
	gone map[string]bool // people who may no longer sign in
}

func (w *installation) now() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.when }

// pass advances the clock.
func (w *installation) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.when = w.when.Add(d)
}

// newInstallation starts one server at a new address.
func newInstallation(t *testing.T, change func(*authserver.Options)) (*installation, *authserver.Server) {
	t.Helper()
	w := &installation{t: t, nats: bustest.Start(t), log: new(bytes.Buffer), when: time.Now().Truncate(time.Second), gone: map[string]bool{}}
	w.logger = slog.New(slog.NewTextHandler(w.log, nil))
	var err error
	if w.keys, err = credential.NewKeys(); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(nil)
	w.url = "http://" + h.Listener.Addr().String()
	s := w.open(change)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+authserver.MetadataPath, s.ServeMetadata)
	mux.HandleFunc("GET "+authserver.KeysPath, s.ServeKeys)
	mux.HandleFunc("POST "+authserver.TokenPath, s.ServeToken)
	mux.HandleFunc("POST "+authserver.RevokePath, s.ServeRevoke)
	h.Config.Handler = mux
	h.Start()
	t.Cleanup(h.Close)
	return w, s
}

// open starts another server of the same installation.
func (w *installation) open(change func(*authserver.Options)) *authserver.Server {
	w.t.Helper()
	var hash string
	if w.secret == "" {
		w.secret, hash = authn.Generate()
	} else {
		hash = authn.Hash(w.secret)
	}
	o := authserver.Options{
		Issuer: w.url, Resources: []string{"https://tools.example"}, Scopes: []string{"tools:read", "tools:call", "calls:read"}, AdminGroups: []string{"ops"},
		Clients: []authserver.Client{
			{ID: "app", Name: "App", Redirects: []string{back, "http://127.0.0.1/callback"}},
			{ID: "confidential", Redirects: []string{back}, SecretHash: hash},
		},
		TokenLifetime: 10 * time.Minute, GrantLifetime: 24 * time.Hour, Keys: w.keys, Conn: w.nats.Connect(w.t, "approver"), Now: w.now,
		Log: w.logger,
		Current: func(p *authserver.Person) (*authserver.Person, bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return p, !w.gone[p.Name]
		},
	}
	if change != nil {
		change(&o)
	}
	s, err := authserver.Open(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s
}

// request returns a valid authorization request with changes: a value, or "-" to remove one.
func request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {back}, "state": {"s t/8"}, "scope": {"tools:read tools:call offline_access"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {resource},
	}
	return changed(q, changes...)
}

func changed(q url.Values, changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "-" {
			q.Del(changes[i])
		}
	}
	return q
}

var ada = authserver.Person{Name: "oidc:ada@x", Owner: "ada@x", Groups: []string{"ops", "staff"}}

// code returns the code that the client receives after a person's consent.
func (w *installation) code(s *authserver.Server, changes ...string) string {
	w.t.Helper()
	r, err := s.Ask(w.t.Context(), request(changes...), &ada)
	if err != nil {
		w.t.Fatal(err)
	}
	to, err := s.Approve(w.t.Context(), r, &ada)
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, r.Redirect+"?") || u.Query().Get("iss") != w.url || u.Query().Get("state") != "s t/8" {
		w.t.Fatalf("the answer is %s, %v", to, err)
	}
	return u.Query().Get("code")
}

// tokenResponse is a response of the token endpoint.
type tokenResponse struct {
	Status  int
	Header  http.Header
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Expires int    `json:"expires_in"`
	Scope   string `json:"scope"`
	Type    string `json:"token_type"`
	Error   string `json:"error"`
}

// post sends a form to a server. With basic, it authenticates with the Authorization header.
func post(t *testing.T, f http.HandlerFunc, form url.Values, basic ...string) tokenResponse {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode())).WithContext(t.Context())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(basic) == 2 {
		r.SetBasicAuth(url.QueryEscape(basic[0]), url.QueryEscape(basic[1]))
	}
	rec := httptest.NewRecorder()
	f(rec, r)
	g := tokenResponse{Status: rec.Code, Header: rec.Header()}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &g); err != nil {
			t.Fatalf("%s: %v", rec.Body, err)
		}
	}
	return g
}

func redemption(code string, changes ...string) url.Values {
	return changed(url.Values{"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {code}, "redirect_uri": {back}, "code_verifier": {verifier}, "resource": {resource}}, changes...)
}

func renewal(refresh string, changes ...string) url.Values {
	return changed(url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {refresh}, "resource": {resource}}, changes...)
}

// login runs the complete flow up to the tokens.
func (w *installation) login(s *authserver.Server, changes ...string) tokenResponse {
	w.t.Helper()
	g := post(w.t, s.ServeToken, redemption(w.code(s, changes...)))
	if g.Status != http.StatusOK || g.Type != "Bearer" || g.Header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%+v", g)
	}
	return g
}

// frontDoor returns a verifier of tokens like that of a front door.
func (w *installation) frontDoor(change func(*settings.Issuer)) *token.Verifier {
	w.t.Helper()
	i := settings.Issuer{Name: "people", Issuer: w.url, Claims: settings.ClaimNames{Owner: "owner"}}
	if change != nil {
		change(&i)
	}
	v, err := token.New([]settings.Issuer{i}, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(v.Close)
	return v
}

func TestAFrontDoorAcceptsTheTokensForTheirResourceOnly(t *testing.T) {
	w, s := newInstallation(t, nil)
	g := w.login(s)
	if g.Scope != "tools:read tools:call" || g.Expires != 600 {
		t.Errorf("%+v", g)
	}
	v := w.frontDoor(nil)
	tok, err := v.Verify(t.Context(), g.Access, resource)
	if err != nil {
		t.Fatal(err)
	}
	if p := tok.Principal; p.Name != "people:oidc:ada@x" || p.Owner != "ada@x" || len(p.Groups) != 2 || tok.Client != "app" || !tok.Scopes.Has("tools:call") || tok.Scopes.Has("admin") {
		t.Errorf("%+v", tok)
	}
	if _, err := v.Verify(t.Context(), g.Access, "https://tools.example/other"); err == nil {
		t.Error("it is accepted at another resource")
	}
}

// Nobody approves the calls of their own programs: the approver compares the owners.
func TestTokenNamesItsPersonWithoutOwnerClaimSetting(t *testing.T) {
	w, s := newInstallation(t, nil)
	tok, err := w.frontDoor(func(i *settings.Issuer) { i.Claims.Owner = "" }).Verify(t.Context(), w.login(s).Access, resource)
	if err != nil || tok.Principal.Owner != ada.Owner {
		t.Errorf("%+v, %v", tok, err)
	}
}

func TestTenantTokenIsRefusedWithoutTenantClaimSetting(t *testing.T) {
	w, s := newInstallation(t, nil)
	r, err := s.Ask(t.Context(), request(), &ada)
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Approve(t.Context(), r, &authserver.Person{Name: "oidc:acme/bo", Owner: "bo", Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(to)
	g := post(t, s.ServeToken, redemption(u.Query().Get("code")))
	if _, err := w.frontDoor(nil).Verify(t.Context(), g.Access, resource); err == nil || !strings.Contains(err.Error(), "claims.tenant") {
		t.Errorf("without the setting: %v", err)
	}
	tok, err := w.frontDoor(func(i *settings.Issuer) { i.Claims.Tenant = scope.TenantClaim }).Verify(t.Context(), g.Access, resource)
	if err != nil || tok.Principal.Tenant != "acme" {
		t.Errorf("%+v, %v", tok, err)
	}
}

func TestAdminScopeNeedsPermission(t *testing.T) {
	_, s := newInstallation(t, nil)
	for scope, want := range map[string][2]string{
		"admin tools:read":               {"admin tools:read", "tools:read"},
		"tools:call:files openid":        {"tools:call:files", "tools:call:files"},
		"":                               {"tools:read tools:call", "tools:read tools:call"},
		"calls:read calls:read approve ": {"calls:read", "calls:read"},
	} {
		for i, p := range []*authserver.Person{&ada, {Name: "bob", Groups: []string{"staff"}}} {
			r, err := s.Ask(t.Context(), request("scope", scope), p)
			if err != nil || strings.Join(r.Scopes, " ") != want[i] {
				t.Errorf("%q of %s: %+v, %v", scope, p.Name, r, err)
			}
		}
	}
}

func TestMetadataConformsToTheSpecification(t *testing.T) {
	w, s := newInstallation(t, func(o *authserver.Options) { o.Hosts = []string{"*"} })
	rec := httptest.NewRecorder()
	s.ServeMetadata(rec, httptest.NewRequest(http.MethodGet, authserver.MetadataPath, nil))
	var m struct {
		Issuer    string   `json:"issuer"`
		PKCE      []string `json:"code_challenge_methods_supported"`
		Methods   []string `json:"token_endpoint_auth_methods_supported"`
		Iss       bool     `json:"authorization_response_iss_parameter_supported"`
		Documents bool     `json:"client_id_metadata_document_supported"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || m.Issuer != w.url || len(m.PKCE) != 1 || m.PKCE[0] != "S256" || m.Methods[0] != "none" || !m.Iss || !m.Documents {
		t.Errorf("%s, %v", rec.Body, err)
	}
}

func TestGrantsAreEncryptedInTheTables(t *testing.T) {
	w, s := newInstallation(t, nil)
	code := w.code(s)
	g := post(t, s.ServeToken, redemption(code))
	js := bustest.JetStream(t, w.nats.URL)
	rows := 0
	for _, bucket := range []string{"callyard_oauth_keys", "callyard_oauth_grants"} {
		kv, err := js.KeyValue(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		names, err := kv.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			e, err := kv.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			rows++
			for _, secret := range []string{code[4:], g.Refresh[4:], "ada@x", "app.example"} {
				if bytes.Contains(e.Value(), []byte(secret)) || strings.Contains(name, secret) {
					t.Errorf("%s/%s has %q", bucket, name, secret)
				}
			}
		}
	}
	if rows != 2 {
		t.Errorf("%d rows", rows)
	}
	if strings.Contains(w.log.String(), code[4:]) || strings.Contains(w.log.String(), g.Refresh[4:]) {
		t.Error("the log has a secret")
	}
}

func TestASigningKeyIsReplacedWithoutATokenBeingRefused(t *testing.T) {
	w, s := newInstallation(t, nil)
	ids := map[string]bool{}
	published := func() (list []string) {
		rec := httptest.NewRecorder()
		s.ServeKeys(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, authserver.KeysPath, nil))
		var set struct{ Keys []map[string]string }
		if err := json.Unmarshal(rec.Body.Bytes(), &set); err != nil || strings.Contains(rec.Body.String(), `"d"`) {
			t.Fatalf("%s, %v", rec.Body, err)
		}
		for _, k := range set.Keys {
			list = append(list, k["kid"])
		}
		return list
	}
	before := published()
	for hour := range 24 * 65 {
		w.pass(time.Hour)
		if hour%8 != 0 {
			continue
		}
		access := w.login(s).Access
		head, _, _ := strings.Cut(access, ".")
		text, _ := base64.RawURLEncoding.DecodeString(head)
		var h struct{ Kid, Typ, Alg string }
		if err := json.Unmarshal(text, &h); err != nil || h.Typ != "at+jwt" || h.Alg != "ES256" {
			t.Fatalf("%s, %v", text, err)
		}
		ids[h.Kid] = true
		// A client with keys that are eight hours old can verify it.
		if !strings.Contains(strings.Join(before, " "), h.Kid) {
			t.Fatalf("after %d hours it is signed with a key that was not published before", hour)
		}
		if before = published(); len(before) > 3 {
			t.Fatalf("%d keys are published", len(before))
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d keys signed in 65 days", len(ids))
	}
}

// While NATS does not answer, requests for the keys would wait one after the other.
func TestRequestsForTheKeysDoNotWaitForEachOther(t *testing.T) {
	w, s := newInstallation(t, nil)
	w.pass(2 * time.Minute) // the cached keys must be read again
	unanswered := w.nats.Silence(t, "KV_"+bus.BucketOAuthKeys)
	ask := func(ctx context.Context) {
		s.ServeKeys(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, authserver.KeysPath, http.NoBody))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan struct{})
	go func() {
		defer close(first)
		ask(ctx)
	}()
	polltest.Until(t, "the first request reads the keys", func() bool { return unanswered() == 1 })
	ended, end := context.WithCancel(t.Context())
	end()
	ask(ended)
	select {
	case <-first:
		t.Error("a request that had ended waited for the first one")
	default:
	}
	cancel()
	<-first
	if n := unanswered(); n != 1 {
		t.Errorf("%d reads of the keys", n)
	}
}

func TestTwoServersShareKeysAndGrants(t *testing.T) {
	w, s := newInstallation(t, nil)
	other := w.open(nil)
	g := post(t, other.ServeToken, redemption(w.code(s)))
	if g.Status != http.StatusOK {
		t.Fatalf("%+v", g)
	}
	if _, err := w.frontDoor(nil).Verify(context.WithoutCancel(t.Context()), g.Access, resource); err != nil {
		t.Error(err)
	}
	if g = post(t, s.ServeToken, renewal(g.Refresh)); g.Status != http.StatusOK {
		t.Errorf("%+v", g)
	}
}
