package oidc_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is an identity provider with a client of ours.
type fixture struct {
	t     *testing.T
	idp   *oidctest.Provider
	p     *oidc.Provider
	now   time.Time
	agent *http.Client
}

func open(t *testing.T, change func(*settings.OIDC)) *fixture {
	t.Helper()
	r := &fixture{t: t, idp: oidctest.Start(t), now: time.Now()}
	c := settings.OIDCDefaults()
	c.Issuer, c.ClientID, c.ClientSecret, c.Scopes = r.idp.Issuer, r.idp.ClientID, telemetry.Secret(r.idp.Secret), []string{"email", "profile", "groups"}
	if change != nil {
		change(&c)
	}
	back, _ := url.Parse("https://approve.example" + settings.CallbackPath)
	r.p = oidc.New(c, back, func() time.Time { return r.now }, slog.New(slog.DiscardHandler))
	t.Cleanup(r.p.Close)
	r.agent = &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(r.agent.CloseIdleConnections)
	return r
}

// visit begins a flow and signs in at the provider.
func (r *fixture) visit(fresh bool) (oidc.Flow, url.Values) {
	r.t.Helper()
	flow, to, err := r.p.Begin(r.t.Context(), fresh)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, to, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := r.agent.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), "https://approve.example"+settings.CallbackPath+"?") {
		r.t.Fatalf("the provider leads to %s: %v", back, err)
	}
	return flow, back.Query()
}

func (r *fixture) comeIn(fresh bool) (oidc.Person, error) {
	r.t.Helper()
	flow, back := r.visit(fresh)
	return r.p.Finish(r.t.Context(), flow, back)
}

func TestSignInGivesANameDistinctFromKeys(t *testing.T) {
	r := open(t, nil)
	r.idp.SignsIn(oidctest.Claims{"email": "Ada@X.example", "email_verified": true, "groups": []string{"ops", "ops", "dev"}})
	got, err := r.comeIn(false)
	if err != nil {
		t.Fatal(err)
	}
	want := schema.Principal{Name: "oidc:ada@x.example", Owner: "ada@x.example", Groups: []string{"dev", "ops"}}
	if diff := cmp.Diff(want, got.Principal); diff != "" || got.SignedIn.IsZero() {
		t.Errorf("%s, signed in at %v", diff, got.SignedIn)
	}
	asked := r.idp.Asked()[0]
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(asked.Get(name)) < 26 {
			t.Errorf("%s is %q", name, asked.Get(name))
		}
	}
	if asked.Get("code_challenge_method") != "S256" || asked.Has("prompt") || asked.Get("scope") != "openid email profile groups" {
		t.Errorf("asked with %v", asked)
	}
}

func TestInvalidIDTokensAreRefused(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	var secret string
	set := func(name string, value any) func(oidctest.Claims, *rsa.PrivateKey) string {
		return func(c oidctest.Claims, key *rsa.PrivateKey) string {
			if c[name] = value; value == nil {
				delete(c, name)
			}
			return oidctest.Signed(c, key)
		}
	}
	for what, forge := range map[string]func(oidctest.Claims, *rsa.PrivateKey) string{
		"another nonce":       set("nonce", "another"),
		"no nonce":            set("nonce", nil),
		"expired":             set("exp", time.Now().Add(-time.Minute).Unix()),
		"no expiry":           set("exp", nil),
		"another audience":    set("aud", "another-client"),
		"audiences, no party": set("aud", []string{"another-client", "?"}),
		"another issuer":      set("iss", "https://accounts.example"),
		"another party":       set("azp", "another-client"),
		"signed in tomorrow":  set("auth_time", time.Now().Add(24*time.Hour).Unix()),
		"another key":         func(c oidctest.Claims, _ *rsa.PrivateKey) string { return oidctest.Signed(c, other) },
		"unsigned": func(c oidctest.Claims, _ *rsa.PrivateKey) string {
			return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." + part(c) + "."
		},
		"the signature taken off": func(c oidctest.Claims, key *rsa.PrivateKey) string {
			signed := oidctest.Signed(c, key)
			return signed[:strings.LastIndexByte(signed, '.')+1]
		},
		"signed with the client secret": func(c oidctest.Claims, _ *rsa.PrivateKey) string {
			text := part(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + part(c)
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(text))
			return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		},
		"claims changed after signing": func(c oidctest.Claims, key *rsa.PrivateKey) string {
			parts := strings.Split(oidctest.Signed(c, key), ".")
			c["email"] = "boss@x.example"
			return parts[0] + "." + part(c) + "." + parts[2]
		},
		"no token": func(oidctest.Claims, *rsa.PrivateKey) string { return "" },
		"no JWT":   func(oidctest.Claims, *rsa.PrivateKey) string { return "a.b.c" },
	} {
		r := open(t, nil)
		secret = r.idp.Secret
		r.idp.Forge(forge)
		if got, err := r.comeIn(false); schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		r.idp.Forge(nil)
		if _, err := r.comeIn(false); err != nil {
			t.Errorf("after %s a good one is refused: %v", what, err)
		}
	}
}

func TestCallbackOfAnotherFlowIsRefused(t *testing.T) {
	r := open(t, nil)
	for what, c := range map[string]struct {
		change func(*oidc.Flow, url.Values)
		kind   schema.Kind
	}{
		"another state":      {func(_ *oidc.Flow, v url.Values) { v.Set("state", "x") }, schema.KindForbidden},
		"no state":           {func(_ *oidc.Flow, v url.Values) { v.Del("state") }, schema.KindForbidden},
		"an empty flow":      {func(f *oidc.Flow, v url.Values) { *f = oidc.Flow{}; v.Del("state") }, schema.KindForbidden},
		"a state twice":      {func(f *oidc.Flow, v url.Values) { v.Add("state", f.State) }, schema.KindForbidden},
		"another provider":   {func(_ *oidc.Flow, v url.Values) { v.Set("iss", "https://accounts.example") }, schema.KindForbidden},
		"another verifier":   {func(f *oidc.Flow, _ url.Values) { f.Verifier = strings.Repeat("x", 43) }, schema.KindForbidden},
		"another code":       {func(_ *oidc.Flow, v url.Values) { v.Set("code", "x") }, schema.KindForbidden},
		"no code":            {func(_ *oidc.Flow, v url.Values) { v.Del("code") }, schema.KindForbidden},
		"too late":           {func(f *oidc.Flow, _ url.Values) { f.Began = f.Began.Add(-11 * time.Minute) }, schema.KindExpired},
		"a refusal":          {func(_ *oidc.Flow, v url.Values) { v.Set("error", "access_denied") }, schema.KindForbidden},
		"a refusal in words": {func(_ *oidc.Flow, v url.Values) { v.Set("error", "<b>Call 555-1234") }, schema.KindForbidden},
	} {
		flow, back := r.visit(false)
		c.change(&flow, back)
		_, err := r.p.Finish(t.Context(), flow, back)
		if schema.KindOf(err) != c.kind || strings.Contains(err.Error(), "555") {
			t.Errorf("%s: %v", what, err)
		}
	}
	flow, back := r.visit(false)
	if _, err := r.p.Finish(t.Context(), flow, back); err != nil {
		t.Fatal(err)
	}
	if _, err := r.p.Finish(t.Context(), flow, back); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("a code counts twice: %v", err)
	}
}

func TestFreshSignInNeedsARecentAuthTime(t *testing.T) {
	r := open(t, nil)
	for what, c := range map[string]struct {
		auth  any
		fresh bool
		ok    bool
		zero  bool
	}{
		"just now":              {time.Now().Unix(), true, true, false},
		"an hour ago":           {time.Now().Add(-time.Hour).Unix(), true, false, false},
		"the provider is mute":  {nil, true, false, false},
		"no number":             {"now", true, false, false},
		"mute, nobody asks":     {nil, false, true, true},
		"long ago, nobody asks": {time.Now().Add(-time.Hour).Unix(), false, true, false},
	} {
		r.idp.SignsIn(oidctest.Claims{"auth_time": c.auth})
		got, err := r.comeIn(c.fresh)
		if (err == nil) != c.ok || c.ok && got.SignedIn.IsZero() != c.zero {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if what == "long ago, nobody asks" && time.Since(got.SignedIn) < 59*time.Minute {
			t.Errorf("a sign-in of an hour ago counts as one of %v", got.SignedIn)
		}
		asked := r.idp.Asked()
		if last := asked[len(asked)-1]; c.fresh && (last.Get("prompt") != "login" || last.Get("max_age") != "0") {
			t.Errorf("%s: asked with %v", what, last)
		}
	}
}

func TestClaimsMapToPrincipalsAsConfigured(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*settings.OIDC)
		claims oidctest.Claims
		want   *schema.Principal
	}{
		"an address that nobody verified": {nil, oidctest.Claims{"email": "boss@x.example", "email_verified": false}, nil},
		"an address without a word":       {nil, oidctest.Claims{"email": "boss@x.example", "email_verified": nil}, nil},
		"verified, in a text":             {nil, oidctest.Claims{"email": "a@x.example", "email_verified": "true", "groups": nil}, &schema.Principal{Name: "oidc:a@x.example", Owner: "a@x.example"}},
		"two signs":                       {nil, oidctest.Claims{"email": "a@x.example@y.example", "email_verified": true}, nil},
		"by subject": {func(c *settings.OIDC) { c.NameClaim = "sub" }, oidctest.Claims{"sub": "local", "email": nil, "groups": "ops"},
			&schema.Principal{Name: "oidc:local", Owner: "local", Groups: []string{"ops"}}},
		"by a claim that is a number": {func(c *settings.OIDC) { c.NameClaim = "employee" }, oidctest.Claims{"employee": 7}, nil},
		"a name with a hidden sign":   {func(c *settings.OIDC) { c.NameClaim = "nick" }, oidctest.Claims{"nick": "ada\u200b"}, nil},
		"a name of blanks":            {func(c *settings.OIDC) { c.NameClaim = "nick" }, oidctest.Claims{"nick": "  "}, nil},
		"our domain": {func(c *settings.OIDC) { c.EmailDomains = []string{"X.example"} }, oidctest.Claims{"email": "a@x.example", "email_verified": true, "groups": nil},
			&schema.Principal{Name: "oidc:a@x.example", Owner: "a@x.example"}},
		"a domain that ends like ours": {func(c *settings.OIDC) { c.EmailDomains = []string{"x.example"} }, oidctest.Claims{"email": "a@evilx.example", "email_verified": true}, nil},
		"below our domain":             {func(c *settings.OIDC) { c.EmailDomains = []string{"x.example"} }, oidctest.Claims{"email": "a@y.x.example", "email_verified": true}, nil},
		"our domain, not verified, by subject": {func(c *settings.OIDC) { c.NameClaim, c.EmailDomains = "sub", []string{"x.example"} },
			oidctest.Claims{"email": "a@x.example", "email_verified": false}, nil},
		"mapped groups": {func(c *settings.OIDC) {
			c.NameClaim, c.GroupsClaim, c.GroupMap = "sub", "realm_access.roles", map[string][]string{"/ops": {"ops", "all"}}
		}, oidctest.Claims{"sub": "s", "realm_access": map[string]any{"roles": []string{"/ops", "admins"}}},
			&schema.Principal{Name: "oidc:s", Owner: "s", Groups: []string{"all", "ops"}}},
		"groups of another shape": {func(c *settings.OIDC) { c.NameClaim = "sub" }, oidctest.Claims{"sub": "s", "groups": map[string]any{"ops": true}}, &schema.Principal{Name: "oidc:s", Owner: "s"}},
	} {
		r := open(t, c.change)
		r.idp.SignsIn(c.claims)
		got, err := r.comeIn(false)
		if c.want == nil {
			if schema.KindOf(err) != schema.KindForbidden {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
			continue
		}
		if diff := cmp.Diff(*c.want, got.Principal); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
	}
}

func TestSignInRecoversSoonAfterProviderOutage(t *testing.T) {
	r := open(t, nil)
	r.idp.Down(true)
	for range 2 {
		if _, _, err := r.p.Begin(t.Context(), false); schema.KindOf(err) != schema.KindUnavailable {
			t.Fatalf("%v", err)
		}
	}
	r.idp.Down(false)
	r.now = r.now.Add(3 * time.Second)
	flow, back := r.visit(false)
	r.idp.Down(true)
	if _, err := r.p.Finish(t.Context(), flow, back); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.p.Finish(ctx, flow, back); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("a caller that left: %v", err)
	}
}

func TestInvalidOIDCSettingsAreRefused(t *testing.T) {
	good := settings.OIDCDefaults()
	good.Issuer, good.ClientID = "https://accounts.example", "id"
	if faults := good.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	if faults := settings.OIDCDefaults().Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	for key, change := range map[string]func(*settings.OIDC){
		"issuer":             func(c *settings.OIDC) { c.Issuer = "http://accounts.example" },
		"client_id":          func(c *settings.OIDC) { c.ClientID = "" },
		"client_secret_file": func(c *settings.OIDC) { c.ClientSecret, c.ClientSecretFile = "a", "b" },
		"redirect_url":       func(c *settings.OIDC) { c.RedirectURL = "https://approve.example/elsewhere" },
		"name_claim":         func(c *settings.OIDC) { c.NameClaim = "" },
		"groups_claim":       func(c *settings.OIDC) { c.GroupsClaim = "" },
		"email_domains":      func(c *settings.OIDC) { c.EmailDomains = []string{"*.example"} },
	} {
		c := good
		change(&c)
		faults := c.Validate()
		if len(faults) != 1 || !strings.HasPrefix(faults[0].String(), key) {
			t.Errorf("%s: %v", key, faults)
		}
	}
	if faults := (settings.OIDC{ClientID: "id"}).Validate(); len(faults) != 1 {
		t.Errorf("a client without a provider: %v", faults)
	}
}

func TestTheSecretIsReadFromItsFileEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, func(c *settings.OIDC) { c.ClientSecret, c.ClientSecretFile = "", file })
	if _, err := r.comeIn(false); schema.KindOf(err) != schema.KindForbidden {
		t.Errorf("with a wrong secret: %v", err)
	}
	if err := os.WriteFile(file, []byte(r.idp.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.comeIn(false); err != nil {
		t.Error(err)
	}
}
