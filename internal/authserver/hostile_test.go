package authserver_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authserver"
)

func TestInvalidRequestRedirectsOnlyToAVerifiedURI(t *testing.T) {
	w, s := newInstallation(t, nil)
	for name, c := range map[string]struct {
		changes []string
		error   string // the error sent to the client; "" means none
	}{
		"no client":                 {[]string{"client_id", "-"}, ""},
		"an unknown client":         {[]string{"client_id", "https://evil.example/client.json"}, ""},
		"no redirect URI":           {[]string{"redirect_uri", "-"}, ""},
		"another host":              {[]string{"redirect_uri", "https://evil.example/callback"}, ""},
		"another path":              {[]string{"redirect_uri", back + "/x"}, ""},
		"another query":             {[]string{"redirect_uri", back + "?x=1"}, ""},
		"a fragment":                {[]string{"redirect_uri", back + "#x"}, ""},
		"another port":              {[]string{"redirect_uri", "https://app.example:444/callback"}, ""},
		"user information":          {[]string{"redirect_uri", "https://app.example@evil.example/callback"}, ""},
		"loopback, another path":    {[]string{"redirect_uri", "http://127.0.0.1:4000/other"}, ""},
		"loopback, another name":    {[]string{"redirect_uri", "http://localhost:4000/callback"}, ""},
		"loopback that is none":     {[]string{"redirect_uri", "http://127.0.0.1.evil.example/callback"}, ""},
		"a script":                  {[]string{"redirect_uri", "javascript:alert(1)"}, ""},
		"the implicit grant":        {[]string{"response_type", "token"}, "unsupported_response_type"},
		"a fragment answer":         {[]string{"response_mode", "fragment"}, "invalid_request"},
		"no PKCE":                   {[]string{"code_challenge", "-", "code_challenge_method", "-"}, "invalid_request"},
		"PKCE without a method":     {[]string{"code_challenge_method", "-"}, "invalid_request"},
		"plain PKCE":                {[]string{"code_challenge", verifier, "code_challenge_method", "plain"}, "invalid_request"},
		"a short challenge":         {[]string{"code_challenge", "abc"}, "invalid_request"},
		"no resource":               {[]string{"resource", "-"}, "invalid_target"},
		"the resource of another":   {[]string{"resource", "https://evil.example/mcp"}, "invalid_target"},
		"a resource that begins so": {[]string{"resource", "https://tools.example.evil.example/mcp"}, "invalid_target"},
		"a resource above":          {[]string{"resource", "https://tools.example/mcp/../x"}, "invalid_target"},
		"a resource with a query":   {[]string{"resource", resource + "?a=b"}, "invalid_target"},
		"a resource, encoded":       {[]string{"resource", "https://tools.example/%6dcp"}, "invalid_target"},
		"a resource in capitals":    {[]string{"resource", "HTTPS://tools.example/mcp"}, "invalid_target"},
		"a resource and a slash":    {[]string{"resource", resource + "/"}, "invalid_target"},
		"scopes of nobody":          {[]string{"scope", "openid approve"}, "invalid_scope"},
		"a request object":          {[]string{"request", "eyJ"}, "invalid_request"},
		"a long state":              {[]string{"state", strings.Repeat("x", 2000)}, "invalid_request"},
	} {
		_, err := s.Ask(t.Context(), request(c.changes...), &ada)
		var r *authserver.Refusal
		if !errors.As(err, &r) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		u, err := url.Parse(r.Back)
		if err != nil || u.Query().Get("error") != c.error || c.error != "" && (!strings.HasPrefix(r.Back, back+"?") || u.Query().Get("iss") != w.url) || c.error == "" && r.Back != "" {
			t.Errorf("%s: leads to %q, want %q", name, r.Back, c.error)
		}
	}
	for _, twice := range []string{"client_id", "redirect_uri", "resource", "state", "scope", "code_challenge"} {
		q := request()
		q.Add(twice, q.Get(twice))
		if _, err := s.Ask(t.Context(), q, &ada); err == nil {
			t.Errorf("%s twice is taken", twice)
		}
	}
	if r, err := s.Ask(t.Context(), request("redirect_uri", "http://127.0.0.1:49152/callback"), &ada); err != nil || r.Redirect != "http://127.0.0.1:49152/callback" {
		t.Errorf("a port of loopback: %v", err)
	}
}

func TestACodeIsForOneClientOneRequestAndOneUse(t *testing.T) {
	w, s := newInstallation(t, nil)
	for name, changes := range map[string][]string{
		"another client":        {"client_id", "https://other.example/client.json"},
		"another redirect URI":  {"redirect_uri", "http://127.0.0.1/callback"},
		"no redirect URI":       {"redirect_uri", "-"},
		"another verifier":      {"code_verifier", verifier + "x"},
		"no verifier":           {"code_verifier", "-"},
		"a made-up code":        {"code", "cyc_" + strings.Repeat("A", 64)},
		"no code":               {"code", "-"},
		"a refresh token":       {"grant_type", "refresh_token", "refresh_token", "cyr_" + strings.Repeat("A", 75)},
		"the password grant":    {"grant_type", "password"},
		"the client's own":      {"grant_type", "client_credentials"},
		"another resource":      {"resource", "https://tools.example/other"},
		"a secret that is none": {"client_secret", "x"},
		"no client":             {"client_id", "-"},
	} {
		g := post(t, s.ServeToken, redemption(w.code(s), changes...))
		if g.Status != http.StatusBadRequest && g.Status != http.StatusUnauthorized || g.Access != "" || g.Error == "" {
			t.Errorf("%s: %+v", name, g)
		}
	}
	code := w.code(s)
	q := redemption(code)
	q.Add("resource", "https://tools.example/other")
	if g := post(t, s.ServeToken, q); g.Error != "invalid_request" {
		t.Errorf("two resources: %+v", g)
	}
	w.pass(time.Minute)
	if g := post(t, s.ServeToken, redemption(code)); g.Error != "invalid_grant" {
		t.Errorf("late: %+v", g)
	}
	code = w.code(s)
	first := post(t, s.ServeToken, redemption(code))
	if g := post(t, s.ServeToken, redemption(code)); first.Status != http.StatusOK || g.Error != "invalid_grant" {
		t.Fatalf("%+v then %+v", first, g)
	}
	if g := post(t, s.ServeToken, renewal(first.Refresh)); g.Error != "invalid_grant" {
		t.Errorf("the refresh token of a code that was used twice: %+v", g)
	}
	if !strings.Contains(w.log.String(), "used twice") {
		t.Error("nothing is in the log")
	}
}

func TestConcurrentCodeRedemptionRevokesTheGrant(t *testing.T) {
	w, s := newInstallation(t, nil)
	servers := []*authserver.Server{s, w.open(nil)}
	code := w.code(s)
	answers := make([]tokenResponse, 8)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = post(t, servers[i%2].ServeToken, redemption(code)) })
	}
	wait.Wait()
	won := 0
	for _, g := range answers {
		if g.Status != http.StatusOK {
			continue
		}
		won++
		if g := post(t, s.ServeToken, renewal(g.Refresh)); g.Error != "invalid_grant" {
			t.Errorf("its refresh token: %+v", g)
		}
	}
	if won > 1 {
		t.Errorf("%d of them got tokens", won)
	}
}

func TestReusedRefreshTokenRevokesTheGrant(t *testing.T) {
	w, s := newInstallation(t, nil)
	first := w.login(s)
	second := post(t, s.ServeToken, renewal(first.Refresh))
	again := post(t, s.ServeToken, renewal(first.Refresh)) // the response was lost
	if second.Status != http.StatusOK || second.Refresh == first.Refresh || again.Refresh != second.Refresh {
		t.Fatalf("%+v\n%+v", second, again)
	}
	w.pass(time.Minute)
	third := post(t, s.ServeToken, renewal(second.Refresh, "scope", "tools:read"))
	if third.Scope != "tools:read" {
		t.Errorf("%+v", third)
	}
	if g := post(t, s.ServeToken, renewal(third.Refresh, "scope", "admin")); g.Error != "invalid_scope" {
		t.Errorf("more scopes: %+v", g)
	}
	if g := post(t, s.ServeToken, renewal(third.Refresh, "client_id", "https://other.example/c")); g.Error != "invalid_grant" {
		t.Errorf("another client: %+v", g)
	}
	if g := post(t, s.ServeToken, renewal(third.Refresh, "resource", "https://tools.example/other")); g.Error != "invalid_target" {
		t.Errorf("another resource: %+v", g)
	}
	made := []byte(third.Refresh)
	made[30]++ // the ID, serial number or MAC of another token
	if g := post(t, s.ServeToken, renewal(string(made))); g.Error != "invalid_grant" {
		t.Errorf("made up: %+v", g)
	}
	if g := post(t, s.ServeToken, renewal(third.Refresh)); g.Status != http.StatusOK || g.Scope != "tools:read tools:call" {
		t.Fatalf("what was refused ended the grant: %+v", g)
	} else {
		third = g
	}
	w.pass(time.Minute)
	if g := post(t, s.ServeToken, renewal(first.Refresh)); g.Error != "invalid_grant" {
		t.Errorf("the first one, late: %+v", g)
	}
	if g := post(t, s.ServeToken, renewal(third.Refresh)); g.Error != "invalid_grant" {
		t.Errorf("the last one after that: %+v", g)
	}
}

func TestConcurrentRefreshesGetTheSameToken(t *testing.T) {
	w, s := newInstallation(t, nil)
	servers := []*authserver.Server{s, w.open(nil)}
	first := w.login(s)
	answers := make([]tokenResponse, 8)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = post(t, servers[i%2].ServeToken, renewal(first.Refresh)) })
	}
	wait.Wait()
	for _, g := range answers {
		if g.Status != http.StatusOK || g.Refresh != answers[0].Refresh {
			t.Errorf("%+v", g)
		}
	}
}

func TestGrantEndsByPersonTimeOrRevocation(t *testing.T) {
	w, s := newInstallation(t, nil)
	g := w.login(s)
	if a := post(t, s.ServeRevoke, url.Values{"client_id": {"https://other.example/c"}, "token": {g.Refresh}}); a.Status != http.StatusOK {
		t.Errorf("%+v", a)
	}
	g = post(t, s.ServeToken, renewal(g.Refresh))
	if a := post(t, s.ServeRevoke, url.Values{"client_id": {"app"}, "token": {g.Refresh}}); g.Status != http.StatusOK || a.Status != http.StatusOK {
		t.Fatalf("%+v, %+v", g, a)
	}
	if g = post(t, s.ServeToken, renewal(g.Refresh)); g.Error != "invalid_grant" {
		t.Errorf("revoked: %+v", g)
	}
	g = w.login(s)
	w.pass(24*time.Hour - time.Minute)
	if g = post(t, s.ServeToken, renewal(g.Refresh)); g.Status != http.StatusOK || g.Expires != 60 {
		t.Errorf("shortly before its end: %+v", g)
	}
	w.pass(time.Minute)
	if g = post(t, s.ServeToken, renewal(g.Refresh)); g.Error != "invalid_grant" {
		t.Errorf("at its end: %+v", g)
	}
	g, code := w.login(s), w.code(s)
	w.mu.Lock()
	w.gone[ada.Name] = true
	w.mu.Unlock()
	if a := post(t, s.ServeToken, renewal(g.Refresh)); a.Error != "invalid_grant" {
		t.Errorf("somebody who left refreshes: %+v", a)
	}
	if a := post(t, s.ServeToken, redemption(code)); a.Error != "invalid_grant" {
		t.Errorf("somebody who left redeems: %+v", a)
	}
}

func TestGrantLosesAdminWithThePersonsGroup(t *testing.T) {
	var demoted atomic.Bool
	w, s := newInstallation(t, func(o *authserver.Options) {
		o.Current = func(p *authserver.Person) (*authserver.Person, bool) {
			now := *p
			if demoted.Load() {
				now.Groups = []string{"staff"}
			}
			return &now, true
		}
	})
	g, code := w.login(s, "scope", "admin tools:read"), w.code(s, "scope", "admin tools:read")
	only := w.login(s, "scope", "admin")
	if g.Scope != "admin tools:read" || only.Scope != "admin" {
		t.Fatalf("%+v, %+v", g, only)
	}
	demoted.Store(true)
	if a := post(t, s.ServeToken, redemption(code)); a.Scope != "tools:read" {
		t.Errorf("a code that was not redeemed yet: %+v", a)
	}
	if a := post(t, s.ServeToken, renewal(g.Refresh, "scope", "admin")); a.Error != "invalid_scope" {
		t.Errorf("a refresh for admin alone: %+v", a)
	}
	if a := post(t, s.ServeToken, renewal(g.Refresh)); a.Scope != "tools:read" {
		t.Errorf("a refresh: %+v", a)
	}
	if a := post(t, s.ServeToken, renewal(only.Refresh)); a.Error != "invalid_scope" || a.Access != "" {
		t.Errorf("a refresh of a grant of admin alone: %+v", a)
	}
}

func TestConfidentialClientNeedsItsSecret(t *testing.T) {
	w, s := newInstallation(t, nil)
	asking := []string{"client_id", "confidential"}
	form := func() url.Values { return redemption(w.code(s, asking...), "client_id", "-") }
	for name, g := range map[string]tokenResponse{
		"none":         post(t, s.ServeToken, changed(form(), asking...)),
		"a wrong one":  post(t, s.ServeToken, changed(form(), "client_id", "confidential", "client_secret", "x")),
		"a wrong head": post(t, s.ServeToken, form(), "confidential", "x"),
	} {
		if g.Status != http.StatusUnauthorized || g.Error != "invalid_client" || g.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %+v", name, g)
		}
	}
	if g := post(t, s.ServeToken, changed(form(), "client_id", "confidential", "client_secret", w.secret), "confidential", w.secret); g.Error != "invalid_request" {
		t.Errorf("twice: %+v", g)
	}
	if g := post(t, s.ServeToken, form(), "confidential", w.secret); g.Status != http.StatusOK {
		t.Errorf("%+v", g)
	}
	if g := post(t, s.ServeToken, changed(form(), "client_id", "confidential", "client_secret", w.secret)); g.Status != http.StatusOK {
		t.Errorf("%+v", g)
	}
	if g := post(t, s.ServeToken, url.Values{"x": {strings.Repeat("x", 20<<10)}}); g.Error != "invalid_request" {
		t.Errorf("a long form: %+v", g)
	}
	rec := httptest.NewRecorder()
	s.ServeToken(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?"+form().Encode(), strings.NewReader("{}")))
	if rec.Code != http.StatusBadRequest {
		t.Errorf("no form: %d", rec.Code)
	}
}
