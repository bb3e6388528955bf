package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

const (
	appBack     = "http://127.0.0.1:9/callback?x=1"
	appVerifier = "a-verifier-that-is-long-enough-for-the-standard-0123"
)

// openWithAuthorization is like open, with an authorization server whose only client is "app".
func openWithAuthorization(t *testing.T, keys []authn.Key) *fabric {
	t.Helper()
	return openAt(t, keys, func(at string, o *web.Options) {
		sealing, err := credential.NewKeys()
		if err != nil {
			t.Fatal(err)
		}
		s, err := authserver.Open(t.Context(), authserver.Options{
			Issuer: at, Resources: []string{"https://tools.example"}, Scopes: []string{"tools:read", "tools:call"}, AdminGroups: []string{"ops"},
			Clients:       []authserver.Client{{ID: "app", Name: "App <b>\u202e", Redirects: []string{appBack}}},
			TokenLifetime: 10 * time.Minute, GrantLifetime: time.Hour, Keys: sealing, Conn: bustest.Start(t).Connect(t, "approver"), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		o.Authorization = s
	})
}

// authorize returns the address to which the program sends a person.
func authorize(changes ...string) string {
	sum := sha256.Sum256([]byte(appVerifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {appBack}, "state": {"a&b"}, "scope": {"tools:call tools:read admin"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {"https://tools.example/mcp"},
	}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return authserver.AuthorizePath + "?" + q.Encode()
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// consent returns the form of a page with an answer.
func consent(page, answer string) url.Values {
	form := url.Values{"answer": {answer}}
	_, page, _ = strings.Cut(page, `action="/oauth/authorize"`)
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

var continues = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]+)"`)

// continuesTo returns the address to which a page continues, or nil.
func continuesTo(t *testing.T, a answer) *url.URL {
	t.Helper()
	m := continues.FindStringSubmatch(a.body)
	if m == nil {
		return nil
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestProgramCallsInTheNameOfThePersonWhoGrantedAccess(t *testing.T) {
	f := openWithAuthorization(t, people())
	b := f.browser()
	away := f.do(b, "GET", authorize(), "")
	to, _ := url.Parse(away.header.Get("Location"))
	if away.status != http.StatusSeeOther || to.Path != "/sign-in" {
		t.Fatalf("%d %s", away.status, to)
	}
	page := f.do(b, "GET", to.String(), "")
	in := f.post(b, "/sign-in", url.Values{"token": {formToken(t, page.body, "/sign-in")}, "key": {f.keys["ada"]}, "next": {to.Query().Get("next")}})
	page = f.do(b, "GET", in.header.Get("Location"), "")
	for _, want := range []string{"App &lt;b&gt;", "127.0.0.1:9", "https://tools.example/mcp", "Call all tools in your name", "Change settings"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if page.status != http.StatusOK || strings.Contains(page.body, "\u202e") || page.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(page.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || page.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", page.status, page.header)
	}
	back := continuesTo(t, f.post(b, authserver.AuthorizePath, consent(page.body, "allow")))
	if back == nil || !strings.HasPrefix(back.String(), appBack+"&") || back.Query().Get("state") != "a&b" || back.Query().Get("iss") != f.url || back.Query().Get("error") != "" {
		t.Fatalf("led to %v", back)
	}
	got := f.post(f.browser(), authserver.TokenPath, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {back.Query().Get("code")}, "redirect_uri": {appBack}, "code_verifier": {appVerifier},
	}, "Origin", "https://inspector.example", "Sec-Fetch-Site", "cross-site")
	var tokens struct {
		Access string `json:"access_token"`
		Scope  string `json:"scope"`
	}
	if err := json.Unmarshal([]byte(got.body), &tokens); err != nil || got.status != http.StatusOK || tokens.Scope != "tools:call tools:read admin" || got.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %s", got.status, got.body)
	}
	claims, _ := base64.RawURLEncoding.DecodeString(strings.Split(tokens.Access, ".")[1])
	if !strings.Contains(string(claims), `"sub":"ada"`) || !strings.Contains(string(claims), `"owner":"ada@x"`) {
		t.Errorf("%s", claims)
	}
	back = continuesTo(t, f.post(b, authserver.AuthorizePath, consent(page.body, "deny")))
	if back == nil || back.Query().Get("error") != "access_denied" || back.Query().Has("code") || back.Query().Get("iss") != f.url {
		t.Errorf("denied: led to %v", back)
	}
}

func TestConsentNeedsThePersonsOwnForm(t *testing.T) {
	f := openWithAuthorization(t, people())
	ada, bob := f.signedIn("ada"), f.signedIn("bob")
	page := f.do(ada, "GET", authorize(), "")
	form := consent(page.body, "allow")
	with := func(changes ...string) url.Values {
		changed := consent(page.body, "allow")
		for i := 0; i < len(changes); i += 2 {
			changed.Set(changes[i], changes[i+1])
		}
		return changed
	}
	for what, a := range map[string]answer{
		"another page":            f.post(ada, authserver.AuthorizePath, form, "Sec-Fetch-Site", "cross-site"),
		"another origin":          f.post(ada, authserver.AuthorizePath, form, "Origin", "https://evil.example"),
		"without a token":         f.post(ada, authserver.AuthorizePath, with("token", "")),
		"the token of a person":   f.post(bob, authserver.AuthorizePath, form),
		"the token of a form":     f.post(ada, authserver.AuthorizePath, with("token", formToken(t, page.body, "/sign-out"))),
		"nobody":                  f.post(f.browser(), authserver.AuthorizePath, form),
		"no answer":               f.post(ada, authserver.AuthorizePath, with("answer", "")),
		"another redirect URI":    f.post(ada, authserver.AuthorizePath, with("redirect_uri", "https://evil.example/")),
		"another resource":        f.post(ada, authserver.AuthorizePath, with("resource", "https://evil.example/mcp")),
		"plain PKCE":              f.post(ada, authserver.AuthorizePath, with("code_challenge_method", "plain")),
		"answered by the address": f.do(ada, "GET", authorize("answer", "allow"), ""),
	} {
		if back := continuesTo(t, a); back != nil || strings.Contains(a.body, "cyc_") || strings.Contains(a.header.Get("Location"), "cyc_") {
			t.Errorf("%s: %d, led to %v", what, a.status, back)
		}
	}
	if a := f.post(bob, authserver.AuthorizePath, consent(f.do(bob, "GET", authorize(), "").body, "allow")); continuesTo(t, a) == nil {
		t.Errorf("the form itself does not work: %d %s", a.status, a.body)
	}
}

func TestInvalidAuthorizationRequestIsNotRedirected(t *testing.T) {
	f := openWithAuthorization(t, people())
	ada := f.signedIn("ada")
	for what, path := range map[string]string{
		"an unknown client": authorize("client_id", "https://evil.example/c"), "another address": authorize("redirect_uri", "https://evil.example/"), "no PKCE": authorize("code_challenge", ""),
		"another resource": authorize("resource", "https://evil.example/"), "no scope": authorize("scope", "openid"),
	} {
		a := f.do(ada, "GET", path, "")
		if a.status != http.StatusBadRequest || continuesTo(t, a) != nil || a.header.Get("Location") != "" || strings.Contains(a.body, `href="https://evil`) {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	if a := f.do(f.browser(), "GET", authorize("state", strings.Repeat("x", 3000)), ""); a.status != http.StatusUnauthorized {
		t.Errorf("a long request before a sign-in: %d", a.status)
	}
	for _, path := range []string{authserver.MetadataPath, authserver.KeysPath} {
		if a := f.do(f.browser(), "GET", path, "", "Sec-Fetch-Site", "cross-site", "Origin", "https://inspector.example"); a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json" || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	if a := f.do(f.browser(), "OPTIONS", authserver.TokenPath, "", "Origin", "https://inspector.example"); a.status != http.StatusNoContent {
		t.Errorf("a preflight: %d", a.status)
	}
}
