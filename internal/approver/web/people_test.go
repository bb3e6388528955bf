package web_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/oidc"
	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// signInFabric is a fabric in which people sign in at a provider.
type signInFabric struct {
	*fabric
	idp *oidctest.Provider
}

func openSignInFabric(t *testing.T, keys []authn.Key, change func(*web.Options)) *signInFabric {
	t.Helper()
	return openSignInFabricWithClaim(t, keys, "", change)
}

// openSignInFabricWithClaim is like openSignInFabric, with a claim that names the tenant.
func openSignInFabricWithClaim(t *testing.T, keys []authn.Key, tenantClaim string, change func(*web.Options)) *signInFabric {
	t.Helper()
	c := &signInFabric{idp: oidctest.Start(t)}
	c.idp.SignsIn(oidctest.Claims{"email": "ada@x.example", "email_verified": true, "groups": []string{"ops"}})
	c.fabric = openAt(t, keys, func(at string, o *web.Options) {
		set := settings.OIDCDefaults()
		set.Issuer, set.ClientID, set.ClientSecret, set.Scopes = c.idp.Issuer, c.idp.ClientID, telemetry.Secret(c.idp.Secret), []string{"email", "groups"}
		set.TenantClaim = tenantClaim
		back, _ := url.Parse(at + settings.CallbackPath)
		o.People = oidc.New(set, back, nil, slog.New(slog.DiscardHandler))
		t.Cleanup(o.People.Close)
		if change != nil {
			change(o)
		}
	})
	return c
}

// leave goes to the provider and returns the address of its redirect.
func (c *signInFabric) leave(b *http.Client, path string) *url.URL {
	c.t.Helper()
	away := c.do(b, "GET", path, "")
	to := away.header.Get("Location")
	if away.status != http.StatusSeeOther || !strings.HasPrefix(to, c.idp.Issuer) {
		c.t.Fatalf("%s leads to %q: %d %s", path, to, away.status, away.body)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, to, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := b.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound {
		c.t.Fatalf("the provider answers %d, %v", resp.StatusCode, err)
	}
	return back
}

// arrive follows the provider's redirect, like a browser that comes from another site.
func (c *signInFabric) arrive(b *http.Client, back *url.URL) answer {
	c.t.Helper()
	return c.do(b, "GET", back.RequestURI(), "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
}

// comeIn performs a complete sign-in.
func (c *signInFabric) comeIn(b *http.Client) answer {
	c.t.Helper()
	return c.arrive(b, c.leave(b, "/sign-in/provider"))
}

func session(a answer) string {
	for _, cookie := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(cookie, "callyard-session=") {
			return cookie
		}
	}
	return ""
}

func TestProviderSignInDecidesUnderThePersonsName(t *testing.T) {
	c := openSignInFabric(t, people(), nil)
	a := c.hold(`{"target":"x"}`, requester(), nil)
	mine := c.hold(`{"target":"mine"}`, schema.Principal{Name: "ada-bot", Owner: "ada@x.example"}, nil)
	b := c.browser()
	signIn := c.do(b, "GET", "/sign-in?next=%2Fhistory", "")
	link := regexp.MustCompile(`href="(/sign-in/provider[^"]*)"`).FindStringSubmatch(signIn.body)
	if link == nil || !strings.Contains(signIn.body, `action="/sign-in"`) {
		t.Fatalf("both ways are not offered: %s", signIn.body)
	}
	got := c.arrive(b, c.leave(b, strings.ReplaceAll(link[1], "&amp;", "&")))
	cookie := session(got)
	if got.status != http.StatusOK || !strings.Contains(got.body, `content="0; url=/history"`) || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Fatalf("%d %q %s", got.status, cookie, got.body)
	}
	if page := c.do(b, "GET", "/", ""); page.status != http.StatusOK || !strings.Contains(page.body, "<span>ada@x.example</span>") || !strings.Contains(page.body, "/a/"+string(a.ID)) {
		t.Errorf("%d %s", page.status, page.body)
	}
	for _, is := range []*ledger.Approval{a, mine} {
		path := "/a/" + is.ID
		page := c.do(b, "GET", string(path), "").body
		if is == mine && (strings.Contains(page, `action="`+string(path)) || !strings.Contains(page, "You requested this call")) {
			t.Errorf("one's own can be decided: %s", page)
		}
		token := c.web.FormToken(cookie, string(path)+"/approve") // forge a form where the page offers none
		got := c.post(b, string(path)+"/approve", url.Values{"token": {token}, "digest": {is.Binding.ArgumentsDigest}})
		if want := map[bool]int{true: http.StatusForbidden, false: http.StatusSeeOther}[is == mine]; got.status != want {
			t.Errorf("approving %s: %d %s", is.Binding.Requester.Name, got.status, got.body)
		}
	}
	if is := c.state(a.ID); is.State != ledger.Approved || is.Decisions[0].By != "oidc:ada@x.example" || is.Decisions[0].Owner != "ada@x.example" {
		t.Errorf("%+v", is)
	}
	if is := c.state(mine.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
		t.Errorf("%+v", is)
	}
}

func TestSignInCallbackIsBoundToTheBrowser(t *testing.T) {
	c := openSignInFabric(t, people(), nil)
	for what, f := range map[string]func(b *http.Client) answer{
		"the way back of another browser": func(b *http.Client) answer {
			return c.arrive(b, c.leave(c.browser(), "/sign-in/provider"))
		},
		"the way back of another, in a browser that left too": func(b *http.Client) answer {
			c.leave(b, "/sign-in/provider")
			return c.arrive(b, c.leave(c.browser(), "/sign-in/provider"))
		},
		"an older way back": func(b *http.Client) answer {
			old := c.leave(b, "/sign-in/provider")
			c.leave(b, "/sign-in/provider")
			return c.arrive(b, old)
		},
		"another state": func(b *http.Client) answer {
			back := c.leave(b, "/sign-in/provider")
			q := back.Query()
			q.Set("state", "x")
			back.RawQuery = q.Encode()
			return c.arrive(b, back)
		},
		"a passage that was tampered with": func(b *http.Client) answer {
			back := c.leave(b, "/sign-in/provider")
			at := mustURL(t, c.url)
			for _, k := range b.Jar.Cookies(at) {
				if k.Name == "callyard-passage" {
					first := map[bool]string{true: "B", false: "A"}[k.Value[40] == 'A']
					b.Jar.SetCookies(at, []*http.Cookie{{Name: k.Name, Value: k.Value[:40] + first + k.Value[41:], Path: "/"}})
				}
			}
			return c.arrive(b, back)
		},
		"twice": func(b *http.Client) answer {
			back := c.leave(b, "/sign-in/provider")
			if got := c.arrive(b, back); got.status != http.StatusOK {
				t.Errorf("the first time: %d", got.status)
			}
			return c.arrive(b, back)
		},
		"a refusal of the provider": func(b *http.Client) answer {
			back := c.leave(b, "/sign-in/provider")
			back.RawQuery = url.Values{"state": {back.Query().Get("state")}, "error": {"access_denied"}, "error_description": {"<script>Call 555</script>"}}.Encode()
			return c.arrive(b, back)
		},
		"a token for another sign-in": func(b *http.Client) answer {
			c.idp.SignsIn(oidctest.Claims{"email": "ada@x.example", "email_verified": true, "nonce": "another"})
			defer c.idp.SignsIn(oidctest.Claims{"email": "ada@x.example", "email_verified": true})
			return c.comeIn(b)
		},
	} {
		got := f(c.browser())
		if got.status != http.StatusForbidden || session(got) != "" || strings.Contains(got.body, "555") || !strings.Contains(got.body, `href="/sign-in"`) {
			t.Errorf("%s: %d %q %s", what, got.status, session(got), got.body)
		}
	}
	b := c.browser()
	back := c.leave(b, "/sign-in/provider")
	before := c.idp.Tokens()
	for _, method := range []string{"HEAD", "OPTIONS", "POST"} {
		if got := c.do(b, method, back.RequestURI(), ""); session(got) != "" || c.idp.Tokens() != before {
			t.Errorf("%s spends the code: %d", method, got.status)
		}
	}
	if got := c.arrive(b, back); got.status != http.StatusOK || session(got) == "" {
		t.Errorf("afterwards the good way does not lead in: %d %s", got.status, got.body)
	}
}

func TestSignInCallbackRedirectsToOwnPagesOnly(t *testing.T) {
	c := openSignInFabric(t, nil, nil)
	for to, want := range map[string]string{"/history": "/history", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", "/sign-out": "/", "javascript:alert(1)": "/"} {
		b := c.browser()
		got := c.arrive(b, c.leave(b, "/sign-in/provider?next="+url.QueryEscape(to)))
		if !strings.Contains(got.body, `content="0; url=`+want+`"`) || strings.Contains(got.body, "evil") {
			t.Errorf("%q: %s", to, got.body)
		}
	}
	local := strings.Replace(c.url, "127.0.0.1", "localhost", 1)
	got := c.do(c.browser(), "GET", "/sign-in/provider?next=%2Fhistory", "", "Host", mustURL(t, local).Host)
	if want := c.url + "/sign-in/provider?arrived=1&next=%2Fhistory"; got.header.Get("Location") != want {
		t.Errorf("under another name of ours it leads to %q", got.header.Get("Location"))
	}
	if got := c.do(c.browser(), "GET", "/sign-in/provider", "", "Host", "evil.example"); strings.Contains(got.header.Get("Location"), "evil") {
		t.Errorf("a foreign name leads to %q", got.header.Get("Location"))
	}
}

func TestFreshProviderSignInIsRequestedAndVerified(t *testing.T) {
	c := openSignInFabric(t, nil, nil)
	a := c.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.FreshLogin = true })
	path := "/a/" + a.ID
	who := func(since time.Duration) {
		c.idp.SignsIn(oidctest.Claims{"email": "ada@x.example", "email_verified": true, "groups": []string{"ops"}, "auth_time": time.Now().Add(-since).Unix()})
	}
	b := c.browser()
	who(time.Hour)
	if got := c.comeIn(b); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	approve := func() answer {
		page := c.do(b, "GET", string(path), "")
		return c.post(b, string(path)+"/approve", url.Values{"token": {formToken(t, page.body, string(path)+"/approve")}, "digest": {a.Binding.ArgumentsDigest}})
	}
	// Just signed in here, but authenticated at the provider long ago.
	if got := approve(); got.status != http.StatusForbidden || !strings.Contains(got.body, "fresh sign-in") {
		t.Errorf("with an old sign-in: %d", got.status)
	}
	link := regexp.MustCompile(`href="(/sign-in/provider[^"]*)"`).FindStringSubmatch(c.do(b, "GET", "/sign-in?next="+string(path), "").body)
	if link == nil || !strings.Contains(link[1], "fresh=1") {
		t.Fatalf("no fresh one is offered: %v", link)
	}
	again := strings.ReplaceAll(link[1], "&amp;", "&")
	if got := c.arrive(b, c.leave(b, again)); got.status != http.StatusForbidden || session(got) != "" {
		t.Errorf("the provider did not ask again: %d %s", got.status, got.body)
	}
	asked := c.idp.Asked()
	if last := asked[len(asked)-1]; last.Get("prompt") != "login" || last.Get("max_age") != "0" {
		t.Errorf("the provider was asked with %v", last)
	}
	old := b.Jar.Cookies(mustURL(t, c.url))
	who(0)
	if got := c.arrive(b, c.leave(b, again)); got.status != http.StatusOK || !strings.Contains(got.body, `content="0; url=`+string(path)+`"`) {
		t.Fatalf("fresh: %d %s", got.status, got.body)
	}
	if got := approve(); got.status != http.StatusSeeOther {
		t.Errorf("after a fresh sign-in: %d %s", got.status, got.body)
	}
	for _, k := range old {
		if k.Name == "callyard-session" {
			if got := c.do(c.browser(), "GET", "/", "", "Cookie", k.Name+"="+k.Value); got.status != http.StatusSeeOther {
				t.Errorf("the session before still lives: %d", got.status)
			}
		}
	}
}

func TestWithProviderSignInLocalAccessIsRefused(t *testing.T) {
	c := openSignInFabric(t, nil, nil)
	a := c.hold(`{"target":"x"}`, requester(), nil)
	for _, p := range []string{"/", "/history", "/a/" + string(a.ID), "/review?id=" + string(a.ID)} {
		if got := c.do(c.browser(), "GET", p, ""); got.status != http.StatusSeeOther {
			t.Errorf("%s: %d", p, got.status)
		}
	}
	for _, p := range []string{"/approvals", "/approvals/" + string(a.ID), "/permissions", "/events"} {
		if got := c.do(c.browser(), "HEAD", p, ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", p, got.status)
		}
	}
	for path, body := range map[string]string{"/approvals/" + string(a.ID) + "/decisions": `{"kind":"deny"}`, "/decisions": `{"decisions":[{"id":"` + string(a.ID) + `","kind":"deny"}]}`} {
		if got := c.do(c.browser(), "POST", path, body, "Content-Type", "application/json", "Authorization", "Bearer x"); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	b := c.browser()
	page := c.do(b, "GET", "/sign-in", "")
	if strings.Contains(page.body, "API key") {
		t.Error("keys are offered where there are none")
	}
	if got := c.post(b, "/sign-in", url.Values{"token": {c.web.FormToken(session(page), "/sign-in")}, "key": {"x"}, "next": {"/"}}); got.status != http.StatusUnauthorized || session(got) != "" {
		t.Errorf("a key where there are none: %d", got.status)
	}
	if is := c.state(a.ID); is.State != ledger.Pending {
		t.Errorf("%+v", is)
	}
}

func TestIdleSessionEnds(t *testing.T) {
	now := time.Now()
	clock := &now
	f := open(t, people(), func(o *web.Options) {
		o.Now, o.Lifetime, o.Idle = func() time.Time { return *clock }, 2*time.Hour, 10*time.Minute
	})
	c := f.signedIn("ada")
	step := func(header ...string) int {
		now = now.Add(9 * time.Minute)
		return f.do(c, "GET", "/", "", header...).status
	}
	for range 3 {
		if got := step("Sec-Fetch-Mode", "navigate"); got != http.StatusOK {
			t.Fatalf("while somebody looks: %d", got)
		}
	}
	// Live updates of a page do not count as activity.
	if got := step("Sec-Fetch-Mode", "cors"); got != http.StatusOK {
		t.Errorf("the script, in time: %d", got)
	}
	if got := step("Sec-Fetch-Mode", "cors"); got != http.StatusSeeOther {
		t.Errorf("the script kept the session: %d", got)
	}
	c = f.signedIn("ada")
	began := now
	for step() == http.StatusOK {
		if now.Sub(began) > 2*time.Hour {
			t.Fatal("a session in use outlives its lifetime")
		}
	}
	if now.Sub(began) < 2*time.Hour {
		t.Errorf("a session in use ends after %v", now.Sub(began))
	}
}

func TestProviderOutageIsReportedAndKeysStillWork(t *testing.T) {
	c := openSignInFabric(t, people(), nil)
	c.idp.Down(true)
	got := c.do(c.browser(), "GET", "/sign-in/provider", "")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "cannot be used at the moment") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := c.do(c.signedIn("ada"), "GET", "/", ""); got.status != http.StatusOK {
		t.Errorf("with a key: %d", got.status)
	}
}
