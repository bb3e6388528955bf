package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/console"
)

// withConsole opens the pages with a console, and a front door that has no servers and requires a
// key.
func withConsole(t *testing.T, keys []authn.Key, groups ...string) *fabric {
	t.Helper()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(keys) > 0 && r.Header.Get("Authorization") != "Bearer door-key" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"type":"/problems/unauthenticated","title":"x","status":401,"detail":"The API key is unknown.","error":"","retryable":false}`))
			return
		}
		if r.URL.Path == "/servers/gone" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/servers/away" {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte(`{"servers":[],"version":"1","go":"x","started":"2026-01-01T00:00:00Z"}`))
	}))
	t.Cleanup(door.Close)
	c, err := console.New(console.Options{FrontDoor: func() string { return door.URL }, ArgumentBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return open(t, keys, func(o *web.Options) { o.Console, o.ConsoleGroups = c, groups })
}

func TestConsoleIsNotServedIfDisabled(t *testing.T) {
	f := open(t, nil, nil)
	for _, path := range []string{"/console", "/console/servers", "/static/console.css"} {
		if got := f.do(f.browser(), "GET", path, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if got := f.do(f.browser(), "GET", "/", ""); strings.Contains(got.body, "/console") {
		t.Error("the navigation leads to a console")
	}
}

func TestWithoutSignInConsoleIsOpenOnLoopback(t *testing.T) {
	f := withConsole(t, nil)
	c := f.browser()
	got := f.do(c, "GET", "/console/servers", "")
	if got.status != http.StatusOK || !strings.Contains(got.body, "There are no servers") || !strings.Contains(got.body, `<a href="/">Approvals</a>`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got = f.do(c, "GET", "/history", ""); !strings.Contains(got.body, `<a href="/console">Overview</a>`) || !strings.Contains(got.body, `<a href="/history" aria-current="page">`) {
		t.Errorf("the approvals: %s", got.body)
	}
	got = f.do(c, "GET", "/console/server?id=gone", "")
	if got.status == http.StatusOK || !strings.Contains(got.body, `<a href="/console/servers" aria-current="page">`) || strings.Contains(got.body, "/history") {
		t.Errorf("a message of the console is in the navigation of the approvals: %d %s", got.status, got.body)
	}
	if got = f.do(c, "GET", "/console", "", "Host", "evil.example"); got.status != http.StatusForbidden {
		t.Errorf("under another name: %d", got.status)
	}
}

func TestPeopleSeeEveryErrorAsAPage(t *testing.T) {
	f := withConsole(t, nil)
	c := f.browser()
	for path, want := range map[string]int{"/nowhere": http.StatusNotFound, "/console/nowhere": http.StatusNotFound, "/console/tool/switch": http.StatusMethodNotAllowed} {
		got := f.do(c, "GET", path, "", "Accept", "text/html,*/*;q=0.8")
		if got.status != want || !strings.Contains(got.body, "</html>") || !strings.Contains(got.body, `href="/console"`) || (want == http.StatusMethodNotAllowed) != (got.header.Get("Allow") == "POST") {
			t.Errorf("%s: %d %v %s", path, got.status, got.header, got.body)
		}
		if got = f.do(c, "GET", path, "", "Accept", "*/*"); got.status != want || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s for a program: %d %v", path, got.status, got.header)
		}
	}
	if got := f.do(c, "GET", "/console/server?id=away", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "<h1>Not available</h1>") {
		t.Errorf("without the front door: %d %s", got.status, got.body)
	}
}

func TestConsoleNeedsItsGroupsAndUsesThePersonsKey(t *testing.T) {
	f := withConsole(t, people(), "auditors")
	if got := f.do(f.browser(), "GET", "/console", ""); got.status != http.StatusSeeOther || got.header.Get("Location") != "/sign-in?next=%2Fconsole" {
		t.Errorf("without a sign-in: %d %v", got.status, got.header)
	}
	ada := f.signedIn("ada")
	for _, path := range []string{"/console", "/console/key", "/console/tools", "/console/events"} {
		if got := f.do(ada, "GET", path, ""); got.status != http.StatusForbidden {
			t.Errorf("%s for a person of no group: %d", path, got.status)
		}
	}
	if got := f.do(ada, "GET", "/console", ""); strings.Contains(got.body, `href="/console"`) || !strings.Contains(got.body, "Back to pending requests") {
		t.Errorf("the refusal leads back to what it refuses: %s", got.body)
	}
	if got := f.do(ada, "GET", "/", ""); strings.Contains(got.body, "/console") {
		t.Error("the navigation leads to a console that the person may not see")
	}
	olga := f.signedIn("olga")
	got := f.do(olga, "GET", "/console/servers", "")
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/console/key?next=%2Fconsole%2Fservers" {
		t.Fatalf("without a key: %d %v", got.status, got.header)
	}
	page := f.do(olga, "GET", "/console/key", "")
	form := url.Values{"token": {formToken(t, page.body, "/console/key")}, "key": {"door-key"}, "next": {"/console/servers"}}
	if got = f.post(olga, "/console/key", form, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"); got.status != http.StatusForbidden {
		t.Errorf("from another site: %d", got.status)
	}
	if got = f.post(olga, "/console/key", url.Values{"key": {"door-key"}}); got.status != http.StatusForbidden {
		t.Errorf("without the token: %d", got.status)
	}
	if got = f.post(olga, "/console/key", form); got.status != http.StatusSeeOther {
		t.Fatalf("with the key: %d %s", got.status, got.body)
	}
	if got = f.do(olga, "GET", "/console/servers", ""); got.status != http.StatusOK {
		t.Errorf("after the key: %d %s", got.status, got.body)
	}
	if strings.Contains(f.log.String(), "door-key") {
		t.Error("the log has the key")
	}
	// Another session of the same person has no key, and after a sign-out no session has one.
	other := f.signedIn("olga")
	if got = f.do(other, "GET", "/console/servers", ""); got.status != http.StatusSeeOther {
		t.Errorf("in another session: %d", got.status)
	}
	page = f.do(olga, "GET", "/", "")
	cookies := olga.Jar.Cookies(mustURL(t, f.url))
	f.post(olga, "/sign-out", url.Values{"token": {formToken(t, page.body, "/sign-out")}})
	olga.Jar.SetCookies(mustURL(t, f.url), cookies)
	if got = f.do(olga, "GET", "/console/servers", ""); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/sign-in") {
		t.Errorf("after the sign-out: %d %v", got.status, got.header)
	}
}

func TestConsoleKeyIsEncryptedWithTheCookieAndExpires(t *testing.T) {
	now := time.Unix(1000, 0)
	v := web.NewVault(func() time.Time { return now }, time.Hour)
	v.Put("ada", "cookie", "door-key")
	if got := v.Get("cookie"); got != "door-key" {
		t.Errorf("the key is %q", got)
	}
	if v.Get("cookie2") != "" || v.Get("") != "" {
		t.Error("another cookie opens it")
	}
	if strings.Contains(v.Dump(), "door-key") {
		t.Error("the key lies open in memory")
	}
	now = now.Add(time.Hour)
	if v.Get("cookie") != "" {
		t.Error("the key outlives its session")
	}
	v.Put("ada", "cookie", "x")
	v.Put("ada", "cookie", "")
	if v.Get("cookie") != "" {
		t.Error("a key that was forgotten is there")
	}
}
