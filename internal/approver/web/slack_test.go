package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/approver/slack/enrol"
	"github.com/callyard/callyard/internal/approver/web"
	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// openWithSlack is like open, with a book of Slack accounts and their principals.
func openWithSlack(t *testing.T, keys []authn.Key) (*fabric, *enrol.Book) {
	t.Helper()
	var book *enrol.Book
	f := open(t, keys, func(o *web.Options) {
		var err error
		book, err = enrol.Open(t.Context(), enrol.Options{Conn: bustest.Start(t).Connect(t, "approver"), Keys: o.Keys, SignInFor: time.Hour, Page: func() string { return "http://page/slack" }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(book.Close)
		o.Slack = book
	})
	return f, book
}

// codeOf requests a code on the page.
func (f *fabric) codeOf(c *http.Client) string {
	f.t.Helper()
	page := f.do(c, "GET", "/slack", "")
	page = f.post(c, "/slack/code", url.Values{"token": {formToken(f.t, page.body, "/slack/code")}})
	m := regexp.MustCompile(`/callyard connect (\S+)</code>`).FindStringSubmatch(page.body)
	if page.status != http.StatusOK || m == nil {
		f.t.Fatalf("%d %s", page.status, page.body)
	}
	return m[1]
}

// offer waits until the page asks for a confirmation, and returns the page.
func (f *fabric) offer(c *http.Client) string {
	f.t.Helper()
	var page answer
	polltest.Until(f.t, "the page asks for a confirmation", func() bool { // updates arrive asynchronously
		page = f.do(c, "GET", "/slack", "")
		return strings.Contains(page.body, `action="/slack/connect"`)
	})
	return page.body
}

func TestSlackAccountIsConnectedByItsCodeOnly(t *testing.T) {
	f, book := openWithSlack(t, people())
	ada, bob := f.signedIn("ada"), f.signedIn("bob")
	code := f.codeOf(ada)
	if err := book.Typed(t.Context(), code, enrol.User{Team: "T1", ID: "U1", Name: "ada <b>"}); err != nil {
		t.Fatal(err)
	}
	page := f.offer(ada)
	if !strings.Contains(page, "ada &lt;b&gt;") || !strings.Contains(page, "U1") {
		t.Errorf("the page does not name the account: %s", page)
	}
	if page := f.do(bob, "GET", "/slack", ""); strings.Contains(page.body, "/slack/connect") {
		t.Error("it is offered to somebody else")
	}
	form := url.Values{"token": {formToken(t, page, "/slack/connect")}, "team": {"T1"}, "user": {"U1"}}
	for what, a := range map[string]answer{
		"without a token":     f.post(ada, "/slack/connect", url.Values{"team": {"T1"}, "user": {"U1"}}),
		"from another page":   f.post(ada, "/slack/connect", form, "Sec-Fetch-Site", "cross-site"),
		"by somebody else":    f.post(bob, "/slack/connect", form),
		"signed out":          f.post(f.browser(), "/slack/connect", form),
		"of another account":  f.post(ada, "/slack/connect", url.Values{"token": form["token"], "team": {"T1"}, "user": {"U2"}}),
		"with another's form": f.post(ada, "/slack/connect", url.Values{"token": {formToken(t, page, "/slack/code")}, "team": {"T1"}, "user": {"U1"}}),
	} {
		if a.status < 400 {
			t.Errorf("%s: %d", what, a.status)
		}
	}
	if _, err := book.Of(t.Context(), "T1", "U1"); err == nil {
		t.Fatal("one of them connected it")
	}
	if a := f.post(ada, "/slack/connect", form); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if who, err := book.Of(t.Context(), "T1", "U1"); err != nil || who.Name != "ada" || who.Owner != "ada@x" {
		t.Errorf("%+v, %v", who, err)
	}
	got := f.do(ada, "GET", "/slack", "")
	if !strings.Contains(got.body, "is connected to you") {
		t.Error(got.body)
	}
	if a := f.post(ada, "/slack/disconnect", url.Values{"token": {formToken(t, got.body, "/slack/disconnect")}}); a.status != http.StatusSeeOther {
		t.Fatal(a.status)
	}
	if _, err := book.Of(t.Context(), "T1", "U1"); err == nil {
		t.Error("it is connected still")
	}
}

func TestSlackPageIsNotServedWithoutSlack(t *testing.T) {
	f := open(t, people(), nil)
	c := f.signedIn("ada")
	if a := f.do(c, "GET", "/slack", ""); a.status != http.StatusNotFound {
		t.Error(a.status)
	}
	if a := f.do(c, "GET", "/", ""); strings.Contains(a.body, `href="/slack"`) {
		t.Error("the page leads there")
	}
}
