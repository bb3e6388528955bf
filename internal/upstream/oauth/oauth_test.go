package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/upstream/oauth"
	"github.com/callyard/callyard/internal/upstream/oauth/oauthtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resource is an MCP server of which only the metadata matters.
func resource(t *testing.T, change func(address string, m map[string]any)) *httptest.Server {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-protected-resource/mcp" {
			http.NotFound(w, r)
			return
		}
		m := map[string]any{"resource": server.URL + "/mcp", "scopes_supported": []string{"read"}}
		change(server.URL, m)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(m)
	}))
	t.Cleanup(server.Close)
	return server
}

func of(issuers ...string) func(string, map[string]any) {
	return func(_ string, m map[string]any) { m["authorization_servers"] = issuers }
}

func httpClient(t *testing.T, trusted ...string) *http.Client {
	t.Helper()
	c := oauth.NewHTTPClient(trusted...)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestAPersonConnectsAndTheGrantIsRefreshed(t *testing.T) {
	as := oauthtest.New(t)
	mcp := resource(t, of(as.URL))
	c := &oauth.Client{RedirectURL: "https://callyard.example/connect/callback", Name: "Callyard", HTTP: httpClient(t, mcp.URL)}
	r, err := oauth.Discover(t.Context(), c.HTTP, mcp.URL+"/mcp", "", oauth.Challenge{})
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != mcp.URL+"/mcp" || fmt.Sprint(r.Scopes) != "[read]" {
		t.Errorf("found %+v", r)
	}
	req, err := c.Begin(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	token, grant, err := c.Finish(t.Context(), req, oauthtest.Agree(t, req.URL))
	if err != nil {
		t.Fatal(err)
	}
	if as.User(token.Access) != "somebody" || as.Scope(token.Access) != "read offline_access" {
		t.Errorf("the token is of %q for %q", as.User(token.Access), as.Scope(token.Access))
	}
	next, after, err := c.Refresh(t.Context(), grant)
	if err != nil || !as.Takes(next.Access) || after.Refresh == grant.Refresh {
		t.Fatalf("refreshed: %v", err)
	}
	if _, _, err := c.Refresh(t.Context(), grant); !c.Ended(err, grant) {
		t.Errorf("the old refresh token: %v", err)
	}
	if err := c.Revoke(t.Context(), after, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Refresh(t.Context(), after); !c.Ended(err, after) {
		t.Errorf("after it was revoked: %v", err)
	}
}

func TestAuthorizationResponseOfAnotherRequestIsRefused(t *testing.T) {
	as := oauthtest.New(t)
	mcp := resource(t, of(as.URL))
	c := &oauth.Client{RedirectURL: "https://callyard.example/cb", HTTP: httpClient(t, mcp.URL)}
	r, err := oauth.Discover(t.Context(), c.HTTP, mcp.URL+"/mcp", "", oauth.Challenge{})
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(q url.Values){
		"another state":  func(q url.Values) { q.Set("state", "x") },
		"no state":       func(q url.Values) { q.Del("state") },
		"two states":     func(q url.Values) { q.Add("state", q.Get("state")) },
		"another issuer": func(q url.Values) { q.Set("iss", as.URL+"/") },
		"no issuer":      func(q url.Values) { q.Del("iss") },
		"two issuers":    func(q url.Values) { q.Add("iss", "x") },
		"no code":        func(q url.Values) { q.Del("code") },
		"a denial":       func(q url.Values) { q.Set("error", "access_denied") },
	} {
		req, err := c.Begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		answer := oauthtest.Agree(t, req.URL)
		change(answer)
		if _, _, err := c.Finish(t.Context(), req, answer); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if n := as.Issued(); n != 0 {
		t.Errorf("%d codes were redeemed", n)
	}
}

// TestForgedMetadataCannotRedirectSecrets has a server, or its authorization server, that lies
// in its metadata.
func TestForgedMetadataCannotRedirectSecrets(t *testing.T) {
	var asked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body)+r.Header.Get("Authorization"), "canary") || r.Method == http.MethodPost {
			asked.Add(1)
		}
	}))
	defer thief.Close()
	as := oauthtest.New(t)
	secret := func() (string, error) { return "canary-secret", nil }
	for what, s := range map[string]struct {
		named  func(string, map[string]any)
		change func(m map[string]any)
		issuer string
		want   string
	}{
		"another issuer than the configured": {named: of(thief.URL), issuer: as.URL, want: "does not name the configured issuer"},
		"the resource of somebody else":      {named: func(a string, m map[string]any) { of(as.URL)(a, m); m["resource"] = "https://bank.example/mcp" }, want: "another resource"},
		"a resource with a slash more":       {named: func(a string, m map[string]any) { of(as.URL)(a, m); m["resource"] = a + "/mcp/" }, want: "another resource"},
		"no issuer":                          {named: of(), want: "names no authorization server"},
		"a plain address":                    {named: of("http://login.example"), want: "not an https URL"},
		"a private address":                  {named: of("https://10.0.0.7"), want: "not public"},
		"the cloud":                          {named: of("https://169.254.169.254"), want: "not public"},
		"another cloud":                      {named: of("https://168.63.129.16"), want: "not public"},
		"another issuer in its metadata":     {named: of(as.URL), change: func(m map[string]any) { m["issuer"] = "https://else.example" }, want: "another issuer"},
		"a plain token endpoint":             {named: of(as.URL), change: func(m map[string]any) { m["token_endpoint"] = "http://login.example/token" }, want: "not an https URL"},
		"no PKCE":                            {named: of(as.URL), change: func(m map[string]any) { delete(m, "code_challenge_methods_supported") }, want: "PKCE"},
		"plain PKCE":                         {named: of(as.URL), change: func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, want: "PKCE"},
		"a script for the browser":           {named: of(as.URL), change: func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, want: "not an https URL"},
	} {
		as.Change = s.change
		mcp := resource(t, s.named)
		c := &oauth.Client{ID: "callyard", Secret: secret, Issuer: s.issuer, RedirectURL: "https://callyard.example/cb", HTTP: httpClient(t, mcp.URL)}
		r, err := oauth.Discover(t.Context(), c.HTTP, mcp.URL+"/mcp", s.issuer, oauth.Challenge{})
		if err == nil {
			_, err = c.Begin(t.Context(), r)
		}
		if err == nil || !strings.Contains(err.Error(), s.want) {
			t.Errorf("%s: %v, want %q", what, err, s.want)
		}
	}
	as.Change = nil
	// A client that is registered with one server does not exist at another.
	c := &oauth.Client{ID: "callyard", Secret: secret, Issuer: "https://login.example", HTTP: httpClient(t, as.URL)}
	m, err := oauth.AuthorizationServer(t.Context(), c.HTTP, as.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Register(t.Context(), m); err == nil {
		t.Error("the client was taken to another authorization server")
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests with a secret went elsewhere", n)
	}
}

func TestTokenEndpointRedirectsAreNotFollowed(t *testing.T) {
	var asked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	for _, status := range []int{302, 307, 308} {
		as := httptest.NewServer(http.RedirectHandler(thief.URL, status))
		c := &oauth.Client{ID: "callyard", Secret: func() (string, error) { return "canary-secret", nil }, HTTP: httpClient(t, as.URL)}
		reg, err := c.Register(t.Context(), &oauth.Metadata{TokenEndpoint: as.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Credentials(t.Context(), as.URL, reg, nil, "", ""); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), thief.URL) {
			t.Errorf("%d: %v", status, err)
		}
		as.Close()
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestErrorsRevealNothingOfAHostileResponse(t *testing.T) {
	for _, body := range []string{
		`{"error":"canary"}`, `{"error":"invalid_grant","error_description":"canary"}`, `canary`, `{"access_token":"canary","token_type":"DPoP"}`,
		`{"access_token":"can\nary","token_type":"bearer"}`, `{"access_token":"canary"}`, `{"access_token":["canary"],"token_type":"bearer"}`, strings.Repeat("canary", 100_000),
	} {
		as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		c := &oauth.Client{ID: "callyard", HTTP: httpClient(t, as.URL)}
		_, err := c.Credentials(context.Background(), as.URL, oauth.Registration{ID: "callyard", Method: "none"}, nil, "", "")
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%.60s: %v", body, err)
		}
		as.Close()
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	for _, v := range []any{
		oauth.Grant{Refresh: "canary", Client: oauth.Registration{Secret: "canary"}}, &oauth.Grant{Refresh: "canary"}, oauth.Registration{Secret: "canary"},
		oauth.Token{Access: "canary"}, &oauth.Token{Access: "canary"}, oauth.Request{State: "canary", Verifier: "canary"},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "canary") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}
