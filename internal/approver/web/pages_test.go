package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestDecisionWorksWithoutJavaScript(t *testing.T) {
	f := open(t, people(), nil)
	for kind, want := range map[string]ledger.State{"approve": ledger.Approved, "deny": ledger.Denied, "revoke": ledger.Revoked, "extend": ledger.Pending, "edit": ledger.Approved} {
		a := f.hold(`{"target":"x"}`, requester(), nil)
		c := f.signedIn("ada")
		path := "/a/" + a.ID
		page := f.do(c, "GET", string(path), "")
		form := url.Values{"token": {formToken(t, page.body, string(path)+"/"+kind)}, "digest": {a.Binding.ArgumentsDigest}}
		switch kind {
		case "edit":
			form.Set("arguments", "{\r\n  \"target\": \"y\"\r\n}")
		case "deny":
			form.Set("preset", "Wrong target")
		}
		got := f.post(c, string(path)+"/"+kind, form, "Origin", f.url)
		if got.status != http.StatusSeeOther || got.header.Get("Location") != string(path)+"?done="+kind {
			t.Errorf("%s: %d %s", kind, got.status, got.body)
			continue
		}
		is := f.state(a.ID)
		if is.State != want || is.Decisions[0].By != "ada" || is.Decisions[0].Channel != "web" {
			t.Errorf("%s: %+v", kind, is)
		}
		if kind == "deny" && is.Decisions[0].Reason != "Wrong target" {
			t.Errorf("the preset is lost: %+v", is.Decisions)
		}
		if kind == "edit" {
			if raw, err := f.ledger.Arguments(t.Context(), schema.DefaultTenant, a.ID); err != nil || string(raw) != "{\n  \"target\": \"y\"\n}" {
				t.Errorf("%q %v", raw, err)
			}
		}
		if after := f.do(c, "GET", got.header.Get("Location"), ""); after.status != http.StatusOK || !strings.Contains(after.body, `class="notice success"`) {
			t.Errorf("%s: the page does not say what was done: %d", kind, after.status)
		}
	}
}

func TestInvalidEditKeepsTheInput(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	c := f.signedIn("ada")
	path := "/a/" + a.ID
	token := formToken(t, f.do(c, "GET", string(path), "").body, string(path)+"/edit")
	got := f.post(c, string(path)+"/edit", url.Values{"token": {token}, "digest": {a.Binding.ArgumentsDigest}, "arguments": {`{"target":17}`}})
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `{&#34;target&#34;:17}`) || !strings.Contains(got.body, "/target") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestFormTokenIsBoundToPageAndSession(t *testing.T) {
	f := open(t, people(), nil)
	a, other := f.hold(`{"target":"x"}`, requester(), nil), f.hold(`{"target":"x"}`, requester(), nil)
	ada, bob := f.signedIn("ada"), f.signedIn("bob")
	path := "/a/" + a.ID + "/approve"
	page := f.do(ada, "GET", "/a/"+string(a.ID), "").body
	good := formToken(t, page, string(path))
	digest := a.Binding.ArgumentsDigest
	for what, c := range map[string]struct {
		browser *http.Client
		token   string
		header  []string
		status  int
	}{
		"no token":                    {ada, "", nil, 403},
		"a made-up token":             {ada, strings.Repeat("A", 43), nil, 403},
		"the token of another form":   {ada, formToken(t, page, "/a/"+string(a.ID)+"/deny"), nil, 403},
		"the token of another call":   {ada, formToken(t, f.do(ada, "GET", "/a/"+string(other.ID), "").body, "/a/"+string(other.ID)+"/approve"), nil, 403},
		"the token of another person": {bob, good, nil, 403},
		"no session":                  {f.browser(), good, nil, 401},
		"a foreign origin":            {ada, good, []string{"Origin", "https://evil.example"}, 403},
		"a null origin":               {ada, good, []string{"Origin", "null"}, 403},
		"a cross-site request":        {ada, good, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a same-site request":         {ada, good, []string{"Sec-Fetch-Site", "same-site"}, 403},
		"another kind of body":        {ada, good, []string{"Content-Type", "text/plain"}, 415},
	} {
		if got := f.post(c.browser, string(path), url.Values{"token": {c.token}, "digest": {digest}}, c.header...); got.status != c.status {
			t.Errorf("%s: %d %.200s", what, got.status, got.body)
		}
	}
	if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
		t.Errorf("%+v", is)
	}
	if got := f.post(ada, string(path), url.Values{"token": {good}, "digest": {digest}}); got.status != http.StatusSeeOther {
		t.Errorf("the good one: %d %s", got.status, got.body)
	}
}

func TestOtherHostIsRefusedIfPublicURLIsSet(t *testing.T) {
	public, _ := url.Parse("https://approve.example")
	f := open(t, people(), func(o *web.Options) { o.PublicURL = public })
	page := f.do(f.browser(), "GET", "/sign-in", "", "Host", "approve.example")
	cookie := page.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-callyard-session=", "HttpOnly", "Secure", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q lacks %s", cookie, part)
		}
	}
	form := url.Values{"token": {formToken(t, page.body, "/sign-in")}, "key": {f.keys["ada"]}}
	sent, _, _ := strings.Cut(cookie, ";")
	if got := f.post(f.browser(), "/sign-in", form, "Host", "rebound.example", "Cookie", sent); got.status != http.StatusForbidden {
		t.Errorf("another host: %d", got.status)
	}
	got := f.post(f.browser(), "/sign-in", form, "Host", "approve.example", "Origin", "https://approve.example", "Cookie", sent)
	if got.status != http.StatusSeeOther || strings.Contains(got.header.Get("Set-Cookie"), sent) {
		t.Errorf("%d, and the cookie after the sign-in is %q", got.status, got.header.Get("Set-Cookie"))
	}
}

func TestASessionEndsByTimeAndBySigningOut(t *testing.T) {
	now := time.Now()
	clock := &now
	f := open(t, people(), func(o *web.Options) { o.Now = func() time.Time { return *clock } })
	c := f.signedIn("ada")
	page := f.do(c, "GET", "/", "")
	if page.status != http.StatusOK {
		t.Fatal(page.status)
	}
	old := c.Jar.Cookies(mustURL(t, f.url))[0]
	if got := f.post(c, "/sign-out", url.Values{"token": {formToken(t, page.body, "/sign-out")}}); got.status != http.StatusSeeOther {
		t.Errorf("signing out: %d", got.status)
	}
	if got := f.do(f.browser(), "GET", "/", "", "Cookie", old.Name+"="+old.Value); got.status != http.StatusSeeOther {
		t.Errorf("the cookie still works after the sign-out: %d", got.status)
	}
	c = f.signedIn("ada")
	now = now.Add(2 * time.Hour)
	if got := f.do(c, "GET", "/", ""); got.status != http.StatusSeeOther || got.header.Get("Location") != "/sign-in?next=%2F" {
		t.Errorf("after its lifetime: %d", got.status)
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestASessionEndsWithItsKey(t *testing.T) {
	now := time.Now()
	clock := &now
	keys := people()
	var table *authn.Keys
	f := open(t, keys, func(o *web.Options) {
		o.Now = func() time.Time { return *clock }
		table = o.Keys
	})
	ada := slices.IndexFunc(keys, func(k authn.Key) bool { return k.Name == "ada" })
	for name, change := range map[string]func(k *authn.Key){
		"removed":  func(k *authn.Key) { k.Name = "somebody else" },
		"replaced": func(k *authn.Key) { _, k.Hash = authn.Generate() },
		"expired":  func(k *authn.Key) { k.Expires = now.Add(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err := table.Replace(keys); err != nil {
					t.Error(err)
				}
			}()
			c := f.signedIn("ada")
			next := slices.Clone(keys)
			change(&next[ada])
			if err := table.Replace(next); err != nil {
				t.Fatal(err)
			}
			if name == "expired" {
				if got := f.do(c, "GET", "/", ""); got.status != http.StatusOK {
					t.Errorf("before its end: %d", got.status)
				}
				now = now.Add(61 * time.Second)
			}
			if got := f.do(c, "GET", "/", ""); got.status != http.StatusSeeOther {
				t.Errorf("%d", got.status)
			}
		})
	}
}

func TestSessionHasTheCurrentGroupsOfItsKey(t *testing.T) {
	keys := people()
	var table *authn.Keys
	f := open(t, keys, func(o *web.Options) { table = o.Keys })
	a := f.hold(`{"target":"x"}`, requester(), nil)
	c := f.signedIn("ada")
	if got := f.do(c, "GET", "/a/"+string(a.ID), ""); got.status != http.StatusOK {
		t.Fatalf("%d", got.status)
	}
	next := slices.Clone(keys)
	for i := range next {
		next[i].Groups = []string{"nobody"}
	}
	if err := table.Replace(next); err != nil {
		t.Fatal(err)
	}
	if got := f.do(c, "GET", "/a/"+string(a.ID), ""); got.status == http.StatusOK {
		t.Error("a session keeps groups that its key has no more")
	}
}

func TestFreshSignInIsRequiredByTheRule(t *testing.T) {
	now := time.Now()
	clock := &now
	f := open(t, people(), func(o *web.Options) { o.Now = func() time.Time { return *clock } })
	a := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.FreshLogin = true })
	c := f.signedIn("ada")
	path := "/a/" + a.ID
	now = now.Add(2 * time.Minute)
	page := f.do(c, "GET", string(path), "")
	form := url.Values{"token": {formToken(t, page.body, string(path)+"/approve")}, "digest": {a.Binding.ArgumentsDigest}}
	if got := f.post(c, string(path)+"/approve", form); got.status != http.StatusForbidden || !strings.Contains(page.body, "/sign-in?next=") {
		t.Errorf("stale: %d", got.status)
	}
	if review := f.do(c, "GET", "/review?id="+string(a.ID), ""); !strings.Contains(review.body, `href="/sign-in?next=%2Freview%3Fid%3D`+string(a.ID)+`"`) {
		t.Errorf("the sign-in of a bulk review does not lead back to it: %s", review.body)
	}
	if got := f.api("ada", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("approve", a.Binding.ArgumentsDigest, "")); got.status != http.StatusForbidden {
		t.Errorf("by key: %d", got.status)
	}
	c = f.signedIn("ada")
	form.Set("token", formToken(t, f.do(c, "GET", string(path), "").body, string(path)+"/approve"))
	if got := f.post(c, string(path)+"/approve", form); got.status != http.StatusSeeOther {
		t.Errorf("fresh: %d %s", got.status, got.body)
	}
}

func TestASignInLeadsToOurOwnPagesOnly(t *testing.T) {
	f := open(t, people(), nil)
	for to, want := range map[string]string{
		"/history": "/history", "/history?arrived=1&state=denied&tool=pay": "/history?state=denied&amp;tool=pay", "/?after=appr_1": "/?after=appr_1", "/review?id=appr_1&id=appr_2": "/review?id=appr_1&amp;id=appr_2",
		"/a/appr_1": "/a/appr_1", "/a/appr_1?done=approve": "/a/appr_1", "/a/appr_1/edit": "/a/appr_1", "/console/call?done=cancel&id=call_1": "/console/call?id=call_1", "/history?tool=" + strings.Repeat("x", 3000): "/history", "/console/tool?server=a&tool=b": "/console/tool?server=a&amp;tool=b", "/console/events": "/console", "/console/../a": "/console", "/consoles": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", "/a/../sign-out": "/", "javascript:alert(1)": "/", "": "/",
	} {
		c := f.browser()
		page := f.do(c, "GET", "/sign-in?next="+url.QueryEscape(to), "")
		got := f.post(c, "/sign-in", url.Values{"token": {formToken(t, page.body, "/sign-in")}, "key": {f.keys["ada"]}, "next": {to}})
		if got.header.Get("Location") != strings.ReplaceAll(want, "&amp;", "&") || !strings.Contains(page.body, `name="next" value="`+want+`"`) {
			t.Errorf("%q leads to %q", to, got.header.Get("Location"))
		}
	}
	for _, to := range []string{"/history?state=denied&tool=pay", "/review?id=appr_1&id=appr_2"} {
		if got := f.do(f.browser(), "GET", to, ""); got.header.Get("Location") != "/sign-in?next="+url.QueryEscape(to) {
			t.Errorf("without a session %s leads to %q", to, got.header.Get("Location"))
		}
	}
	c := f.browser()
	page := f.do(c, "GET", "/sign-in", "")
	got := f.post(c, "/sign-in", url.Values{"token": {formToken(t, page.body, "/sign-in")}, "key": {"wrong-secret"}})
	if got.status != http.StatusUnauthorized || strings.Contains(got.body, "wrong-secret") {
		t.Errorf("a wrong key: %d %s", got.status, got.body)
	}
	if strings.Contains(f.log.String(), "wrong-secret") {
		t.Error("the log holds the key")
	}
}

func TestALinkFromElsewhereDoesNotReplaceASession(t *testing.T) {
	f := open(t, people(), nil)
	for _, p := range []string{"/", "/?arrived=1", "/sign-in", "/sign-in?arrived=1", "/events", "/a/appr_1?arrived=1", "/approvals"} {
		if got := f.do(f.browser(), "GET", p, "", "Sec-Fetch-Site", "cross-site"); got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s gives a cookie", p)
		}
	}
	got := f.do(f.browser(), "GET", "/a/appr_1", "", "Sec-Fetch-Site", "cross-site")
	if got.status != http.StatusOK || got.header.Get("Set-Cookie") != "" || !strings.Contains(got.body, `url=/a/appr_1?arrived=1`) {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if got := f.do(f.browser(), "GET", "/a/appr_1?arrived=1", "", "Sec-Fetch-Site", "cross-site"); got.status != http.StatusSeeOther {
		t.Errorf("it goes round in circles: %d", got.status)
	}
}

func TestAMebibyteIsShownWhole(t *testing.T) {
	f := open(t, people(), nil)
	value := strings.Repeat("0123456789abcdef", 65000)
	a := f.hold(`{"target":"`+value+`"}`, requester(), nil)
	page := f.do(f.signedIn("ada"), "GET", "/a/"+string(a.ID), "")
	if n := strings.Count(page.body, value); page.status != http.StatusOK || n != 3 || !strings.Contains(page.body, "1,040,013 bytes") {
		t.Errorf("%d, the value is there %d times (raw, formatted, to edit)", page.status, n)
	}
	c := f.signedIn("bob")
	path := "/a/" + a.ID
	token := formToken(t, f.do(c, "GET", string(path), "").body, string(path)+"/edit")
	got := f.post(c, string(path)+"/edit", url.Values{"token": {token}, "digest": {a.Binding.ArgumentsDigest}, "arguments": {`{"target":"` + strings.Repeat("é", 500_000) + `"}`}})
	if got.status != http.StatusSeeOther {
		t.Errorf("editing: %d %.300s", got.status, got.body)
	}
}

func TestExternalTextIsEscaped(t *testing.T) {
	f := open(t, people(), nil)
	evil := schema.Principal{Name: `<script>alert(1)</script>`, Owner: `"><img src=x>`}
	a := f.hold(`{"target":"</textarea></pre><script>alert(2)</script>"}`, evil, nil)
	c := f.signedIn("ada")
	for _, p := range []string{"/", "/history", "/a/" + string(a.ID)} {
		got := f.do(c, "GET", p, "")
		for _, bad := range []string{"<script>", "<img src=x", "</textarea></pre>", " style=", " onclick="} {
			if strings.Contains(got.body, bad) {
				t.Errorf("%s holds %s", p, bad)
			}
		}
		csp := got.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", p, got.header)
		}
	}
}

func TestOpenPagesGetChangeEvents(t *testing.T) {
	f := open(t, people(), nil)
	c := f.signedIn("ada")
	lines := f.events(c)
	if !lines.Scan() || lines.Text() != "retry: 3000" {
		t.Fatalf("%q", lines.Text())
	}
	f.hold(`{"target":"x"}`, requester(), nil)
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			f.web.Close() // ends the stream, so that the server can stop
			for lines.Scan() {
			}
			if got := f.do(c, "GET", "/events", ""); got.status != http.StatusServiceUnavailable {
				t.Errorf("a stream after the end: %d", got.status)
			}
			if got := f.do(f.browser(), "GET", "/events", ""); got.status != http.StatusUnauthorized {
				t.Errorf("a stream for nobody: %d", got.status)
			}
			return
		}
	}
	t.Fatal("no change was told:", lines.Err())
}

func TestHistoryIsFiltered(t *testing.T) {
	f := open(t, people(), nil)
	a, b := f.hold(`{"target":"x"}`, requester(), nil), f.hold(`{"target":"x"}`, requester(), nil)
	if got := f.api("ada", "POST", "/approvals/"+string(a.ID)+"/decisions", decision("deny", "", `,"reason":"no"`)); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	f.seen(a.ID, ledger.Denied)
	c := f.signedIn("ada")
	got := f.do(c, "GET", "/history?state=denied&server=&tool=&requester=", "")
	if got.status != http.StatusOK || !strings.Contains(got.body, string(a.ID)) || strings.Contains(got.body, string(b.ID)) || !strings.Contains(got.body, "Denied by ada") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := f.do(c, "GET", "/history?state=nope", ""); got.status != http.StatusBadRequest || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %v", got.status, got.header)
	}
	if got := f.do(c, "GET", "/a/appr_nope", ""); got.status != http.StatusNotFound {
		t.Errorf("%d", got.status)
	}
}

func TestABrowserThatOpensTheAPIGetsThePage(t *testing.T) {
	f := open(t, people(), nil)
	for from, to := range map[string]string{"/approvals": "/", "/approvals/appr_1": "/a/appr_1"} {
		if got := f.do(f.browser(), "GET", from, "", "Accept", "text/html,*/*"); got.status != http.StatusSeeOther || got.header.Get("Location") != to {
			t.Errorf("%s: %d %s", from, got.status, got.header.Get("Location"))
		}
	}
}

// If more calls are pending than fit on a page, each is on one of the pages, and all are counted.
func TestPendingCallsHavePages(t *testing.T) {
	f := open(t, people(), nil)
	c := f.signedIn("ada")
	const all = 130
	want := map[schema.ApprovalID]bool{}
	for i := range all {
		a := f.hold(fmt.Sprintf(`{"n":%d}`, i), requester(), nil)
		f.seen(a.ID, ledger.Pending)
		want[a.ID] = true
	}
	found := map[schema.ApprovalID]bool{}
	var sizes []int
	for path := "/"; path != ""; {
		a := f.do(c, "GET", path, "")
		body := a.body
		if a.status != 200 || !strings.Contains(body, `<span class="count">130</span>`) {
			t.Fatalf("%s: %d %.400s", path, a.status, body)
		}
		n := 0
		for _, id := range regexp.MustCompile(`<h2><a href="/a/(\w+)"`).FindAllStringSubmatch(body, -1) {
			n++
			found[schema.ApprovalID(id[1])] = true
		}
		sizes = append(sizes, n)
		path = ""
		if next := regexp.MustCompile(`href="(/\?after=\w+)"`).FindStringSubmatch(body); next != nil {
			path = next[1]
		}
	}
	if !maps.Equal(found, want) || !slices.Equal(sizes, []int{100, 30}) {
		t.Errorf("%d of %d calls are on pages of %v", len(found), all, sizes)
	}
	if a := f.do(c, "GET", "/?after=9223372036854775807_z", ""); strings.Contains(a.body, "No calls are waiting") || !strings.Contains(a.body, "No newer calls are waiting") {
		t.Errorf("a page after the last call: %d %s", a.status, a.body)
	}
	if a := f.do(c, "GET", "/?after=%3Cb%3E", ""); a.status != 400 {
		t.Errorf("a bad id is answered with %d", a.status)
	}
}

// Many programs escape all but ASCII in JSON.
func TestEscapedLettersAreReadable(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"gr\u00fc\u00dfe \u0928\u092e\u0938\u094d\u0924\u0947 \u202e"}`, requester(), nil)
	c := f.signedIn("ada")
	for _, path := range []string{"/", "/a/" + string(a.ID)} {
		if page := f.do(c, "GET", path, "", "Accept", acceptHTML).body; !strings.Contains(page, `grüße नमस्ते \u202e`) {
			t.Errorf("%s is not readable: %s", path, page)
		}
	}
	if page := f.do(c, "GET", "/a/"+string(a.ID), "").body; !strings.Contains(page, `gr\u00fc\u00dfe \u0928`) {
		t.Errorf("the exact bytes are missing: %s", page)
	}
}
