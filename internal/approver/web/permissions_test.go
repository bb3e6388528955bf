package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// acceptHTML is the Accept header of a browser.
const acceptHTML = "text/html,application/xhtml+xml"

// ask holds a call of the usual requester and returns its state.
func (f *fabric) ask(args string) ledger.State {
	f.t.Helper()
	return f.hold(args, requester(), nil).State
}

func TestApproverCanGrantAndRevokeAPermission(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x","n":1,"deep":{"a/b":[7,"y"]}}`, requester(), nil)
	c := f.signedIn("ada")
	path := "/a/" + a.ID
	page := f.do(c, "GET", string(path), "")
	for _, place := range []string{`name="same./target"`, `name="same./n"`, `name="same./deep/a~1b/0"`, `name="same./deep/a~1b/1"`} {
		if !strings.Contains(page.body, place) {
			t.Errorf("the page does not offer %s", place)
		}
	}
	form := url.Values{
		"token": {formToken(t, page.body, string(path)+"/allow")}, "digest": {a.Binding.ArgumentsDigest},
		"pattern": {"values"}, "same./target": {"1"}, "for": {"1h0m0s"}, "uses": {"2"}, "reason": {"nightly"},
	}
	for what, change := range map[string]func(url.Values){
		"no pattern":      func(v url.Values) { v.Del("pattern") },
		"no place":        func(v url.Values) { v.Del("same./target") },
		"a foreign place": func(v url.Values) { v.Set("same./nowhere", "1") },
		"no time":         func(v url.Values) { v.Del("for") },
		"a year":          func(v url.Values) { v.Set("for", "8760h0m0s") },
		"no uses at all":  func(v url.Values) { v.Set("uses", "0") },
		"other arguments": func(v url.Values) { v.Set("digest", schema.Digest(nil)) },
	} {
		v := url.Values{}
		maps.Copy(v, form)
		change(v)
		if got := f.post(c, string(path)+"/allow", v); got.status != http.StatusBadRequest && got.status != http.StatusConflict || !strings.Contains(got.body, `role="alert"`) || !strings.Contains(got.body, `value="nightly"`) {
			t.Errorf("%s: %d", what, got.status)
		}
	}
	if is := f.state(a.ID); is.State != ledger.Pending || len(is.Decisions) > 0 {
		t.Fatalf("%+v", is)
	}
	got := f.post(c, string(path)+"/allow", form)
	if got.status != http.StatusSeeOther || schema.ApprovalID(got.header.Get("Location")) != path+"?done=allow" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if is := f.state(a.ID); is.State != ledger.Approved || is.Decisions[0].Kind != ledger.Approve || is.Decisions[0].Allow == nil {
		t.Fatalf("%+v", is)
	}
	f.permitted(1)
	if got := f.ask(`{"n":2,"target":"x"}`); got != ledger.Running {
		t.Errorf("the same target: %s", got)
	}
	if got := f.ask(`{"n":1,"target":"z"}`); got != ledger.Pending {
		t.Errorf("another target: %s", got)
	}
	list := f.do(c, "GET", "/permissions", "", "Accept", acceptHTML)
	for _, part := range []string{"<code>/target</code>", "1 of 2 times", "nightly", `href="/a/` + string(a.ID) + `"`, `data-state="good">Active`} {
		if !strings.Contains(list.body, part) {
			t.Errorf("the page of permissions lacks %s: %s", part, list.body)
		}
	}
	id := ledger.PermissionID(a.ID)
	back := "/permissions/" + id + "/revoke"
	for name, may := range map[string]string{"agent": "yes, ops", "olga": "no", "eve": "unseen", "bob": "yes"} {
		page := f.do(f.signedIn(name), "GET", "/permissions", "", "Accept", acceptHTML).body
		if seen := strings.Contains(page, id); seen == (may == "unseen") || strings.Contains(page, `action="`+back) != strings.HasPrefix(may, "yes") {
			t.Errorf("%s, %s: %s", name, may, page)
		}
	}
	eve := f.signedIn("eve")
	if got := f.post(eve, back, url.Values{"token": {f.web.FormToken(cookieOf(t, f, eve), back)}}); got.status != http.StatusNotFound {
		t.Errorf("a stranger takes it back: %d", got.status)
	}
	if got := f.post(c, back, url.Values{"token": {"x"}}); got.status != http.StatusForbidden {
		t.Errorf("without a token: %d", got.status)
	}
	bob := f.signedIn("bob")
	token := formToken(t, f.do(bob, "GET", "/permissions", "", "Accept", acceptHTML).body, back)
	got = f.post(bob, back, url.Values{"token": {token}, "reason": {"enough"}})
	if got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for to, confirms := range map[string]bool{got.header.Get("Location"): true, "/permissions?done=revoke": false} {
		if page := f.do(bob, "GET", to, "", "Accept", acceptHTML).body; strings.Contains(page, "The permission is revoked.") != confirms {
			t.Errorf("%s: %s", to, page)
		}
	}
	if got := f.post(bob, back, url.Values{"token": {token}}); got.status != http.StatusConflict || !strings.Contains(got.body, `role="alert"`) {
		t.Errorf("twice: %d %s", got.status, got.body)
	}
	if got := f.ask(`{"n":3,"target":"x"}`); got != ledger.Pending {
		t.Errorf("after it was taken back: %s", got)
	}
}

func cookieOf(t *testing.T, f *fabric, c *http.Client) string {
	t.Helper()
	for _, k := range c.Jar.Cookies(mustURL(t, f.url)) {
		if k.Name == "callyard-session" {
			return k.Name + "=" + k.Value
		}
	}
	t.Fatal("no session")
	return ""
}

// permitted waits until the desk has n permissions.
func (f *fabric) permitted(n int) {
	f.t.Helper()
	polltest.Until(f.t, fmt.Sprintf("there are %d permissions", n), func() bool { return len(f.desk.Permissions.List(schema.DefaultTenant)) == n })
}

func TestPermissionsAreGrantedOverTheAPI(t *testing.T) {
	f := open(t, people(), nil)
	a := f.hold(`{"target":"x"}`, requester(), nil)
	path := "/approvals/" + a.ID + "/decisions"
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, allow := range []string{
		`null`, `[]`, `{}`, `{"until":"` + until + `"}`, `{"until":"` + until + `","pattern":{"kind":"some"}}`, `{"until":"` + until + `","pattern":{"kind":"any"},"x":1}`,
		`{"until":"2020-01-01T00:00:00Z","pattern":{"kind":"any"}}`, `{"until":"` + time.Now().Add(8*24*time.Hour).UTC().Format(time.RFC3339) + `","pattern":{"kind":"any"}}`,
		`{"until":"` + until + `","pattern":{"kind":"any"},"max_uses":-1}`, `{"until":"` + until + `","pattern":{"kind":"values","values":[{"pointer":"/nope"}]}}`,
	} {
		if got := f.api("ada", "POST", string(path), decision("approve", a.Binding.ArgumentsDigest, `,"allow":`+allow)); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", allow, got.status, got.body)
		}
	}
	good := `,"allow":{"until":"` + until + `","pattern":{"kind":"exact"},"max_uses":3}`
	if got := f.api("ada", "POST", string(path), decision("deny", "", good)); got.status != http.StatusBadRequest {
		t.Errorf("with a no: %d", got.status)
	}
	two := f.hold(`{"target":"x"}`, requester(), func(r *risk.Approval) { r.Needed = 2 })
	if got := f.api("ada", "POST", "/approvals/"+string(two.ID)+"/decisions", decision("approve", two.Binding.ArgumentsDigest, good)); got.status != http.StatusForbidden {
		t.Errorf("where two must agree: %d %s", got.status, got.body)
	}
	if page := f.do(f.signedIn("ada"), "GET", "/a/"+string(two.ID), "").body; strings.Contains(page, `action="/a/`+string(two.ID)+`/allow"`) || !strings.Contains(page, "require 2 approvers each time") {
		t.Error("the page offers it where two must agree, or does not say why it is not offered")
	}
	if got := f.api("ada", "GET", "/approvals/"+string(two.ID), ""); !strings.Contains(got.body, `"may_not_allow_because":"Such calls require 2 approvers each time`) {
		t.Errorf("the API does not say why it is not offered where two must agree: %s", got.body)
	}
	if got := f.api("ada", "POST", string(path), decision("approve", a.Binding.ArgumentsDigest, good)); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	f.permitted(1)
	ran := f.hold(`{"target":"x"}`, requester(), nil)
	if ran.State != ledger.Running {
		t.Errorf("the same: %s", ran.State)
	}
	if page := f.do(f.signedIn("ada"), "GET", "/a/"+string(ran.ID), "").body; !strings.Contains(page, `<a href="/permissions#`+ledger.PermissionID(a.ID)+`">`) {
		t.Error("the page of the call does not name the permission")
	}
	type shape struct {
		ID, State string
		Uses      int
		May       bool `json:"may_revoke"`
		Revoked   *struct{ By, Reason string }
	}
	var list struct{ Permissions []shape }
	decode(t, f.api("ada", "GET", "/permissions", ""), &list)
	if len(list.Permissions) != 1 || list.Permissions[0].State != "good" || list.Permissions[0].Uses != 1 || !list.Permissions[0].May {
		t.Fatalf("%+v", list)
	}
	to := "/permissions/" + list.Permissions[0].ID + "/revocations"
	for name, want := range map[string]int{"eve": http.StatusNotFound, "olga": http.StatusForbidden, "": http.StatusUnauthorized} {
		if got := f.api(name, "POST", to, `{}`); got.status != want {
			t.Errorf("%q: %d %s", name, got.status, got.body)
		}
	}
	for _, body := range []string{`[]`, `{"kind":"revoke"}`, `{"reason":1}`} {
		if got := f.api("bob", "POST", to, body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", body, got.status)
		}
	}
	var p shape
	decode(t, f.api("bob", "POST", to, `{"reason":"enough"}`), &p)
	if p.State != "revoked" || p.Revoked.By != "bob" || p.Revoked.Reason != "enough" {
		t.Errorf("%+v", p)
	}
	if got := f.api("eve", "GET", "/permissions", ""); got.body != "{\"permissions\":[]}\n" {
		t.Errorf("a stranger sees %s", got.body)
	}
	if got := f.do(f.browser(), "GET", "/permissions", ""); got.status != http.StatusUnauthorized {
		t.Errorf("nobody: %d", got.status)
	}
}

func TestPermissionStateIsGoodOverUsedUpOrRevoked(t *testing.T) {
	now := time.Now()
	for want, p := range map[string]ledger.Permission{
		"good": {Until: now.Add(time.Second), MaxUses: 2, Uses: 1}, "over": {Until: now}, "used up": {Until: now.Add(time.Hour), MaxUses: 2, Uses: 2},
		"revoked": {Until: now.Add(-time.Hour), Revoked: &ledger.Revocation{}},
	} {
		if got := web.PermissionState(&p, now); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
