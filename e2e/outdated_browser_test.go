package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// interruptibleProxy is a proxy between a browser and the pages, which closes connections while it is down.
type interruptibleProxy struct {
	*httptest.Server
	down atomic.Bool
}

func startOutage(t *testing.T, pages string) *interruptibleProxy {
	t.Helper()
	to, err := url.Parse(pages)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // keeps the origin of the pages
	}}
	o := &interruptibleProxy{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.down.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Close)
	return o
}

// stops closes all connections, and refuses new ones.
func (o *interruptibleProxy) stops() {
	o.down.Store(true)
	o.CloseClientConnections()
}

const staleNote = `document.getElementById("stale").textContent`

func TestPageSaysWhenItIsOutOfDate(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	first := o.write(t, "billing", "first.txt", "1\n")
	between := startOutage(t, o.pages)
	browser := startBrowser(t)
	list, form := openTab(browser, t, true), openTab(browser, t, true)
	for _, p := range []*tab{list, form} {
		p.open(between.URL)
		p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
		p.sees("the list", `document.querySelectorAll(".request").length === 1`)
	}
	form.open(between.URL + "/a/" + first.ApprovalID)
	form.do(chromedp.SendKeys(chromedp.CSS("#comment"), "typed for long"))

	between.stops()
	for _, p := range []*tab{list, form} {
		p.sees("that the server is away", staleNote+`.startsWith("The server cannot be reached. This page is as of ")`)
	}
	list.audit("outdated")
	o.write(t, "billing", "second.txt", "2\n")
	between.down.Store(false)
	list.sees("the call that came meanwhile", `document.querySelectorAll(".request").length === 2 && `+staleNote+` === ""`)
	form.sees("that it is up to date", staleNote+` === ""`)

	// The session ends while the user types. The page does not navigate away, but shows that it is
	// outdated.
	signOut := `fetch("/sign-out", {method: "POST", body: new URLSearchParams(new FormData(document.querySelector('form[action="/sign-out"]')))}).then((r) => r.status)`
	asked[int](form, signOut, chromedp.EvalAwaitPromise)
	o.write(t, "billing", "third.txt", "3\n")
	form.sees("that the session has ended", staleNote+`.startsWith("Your session has ended.") && document.getElementById("comment").value === "typed for long"`)
	form.do(chromedp.Click(chromedp.CSS("button.approve")))
	form.sees("what was typed", `document.querySelector("textarea[readonly]").value === "typed for long"`)
	form.audit("session-ended")
	// The user signs in as in another tab, and continues.
	signIn := `fetch("/sign-in").then((r) => r.text()).then((page) => {
		const fields = new FormData(new DOMParser().parseFromString(page, "text/html").querySelector('form[action="/sign-in"]'));
		fields.set("key", "ben");
		return fetch("/sign-in", {method: "POST", body: new URLSearchParams(fields)});
	}).then((r) => r.status)`
	if got := asked[int](form, signIn, chromedp.EvalAwaitPromise); got != http.StatusOK {
		t.Fatalf("signing in: %d", got)
	}
	form.do(chromedp.Click(chromedp.CSS("main button.primary")))
	form.sees("the form with what was typed, after the reason", `document.getElementById("comment").value === "typed for long" && document.activeElement.matches(".notice.danger")`)
	// This page is the response to a form, and tracks the approval like any other page.
	o.approve(t, "ada", first.ApprovalID, `"kind":"deny"`)
	form.sees("that somebody decided", fmt.Sprintf(`document.querySelector("#updates a").getAttribute("href") === "/a/%s"`, first.ApprovalID))
	// The list has no input, so the page requests the sign-in at once.
	asked[int](list, signOut, chromedp.EvalAwaitPromise)
	o.write(t, "billing", "fourth.txt", "4\n")
	list.sees("the sign-in", `location.pathname === "/sign-in"`)
}

// If the JSON of a call cannot be shown in the form, the page reports that the form differs.
func TestConsoleReportsWhenFormAndJSONDiffer(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	between := startOutage(t, pages)
	p := openTab(startBrowser(t), t, true)
	p.open(between.URL + "/console/tool?server=crm&tool=echo")
	between.stops()
	p.do(chromedp.SendKeys(chromedp.CSS(`textarea[name="f.a.0"]`), "typed"))
	p.sees("that the JSON is an old one", `document.getElementById("faults").checkVisibility() && document.getElementById("faults").textContent.includes("The server cannot be reached.")`)
	p.do(chromedp.Click(chromedp.CSS("button[value=run]")))
	p.sees("that nothing was sent", `document.getElementById("faults").textContent.endsWith("Nothing was sent.")`)
	between.down.Store(false)
	p.do(chromedp.SendKeys(chromedp.CSS(`textarea[name="f.a.0"]`), " again"))
	p.sees("the JSON of the form", `document.getElementById("faults").hidden && JSON.parse(document.getElementById("arguments").value).text === "typed again"`)
}

// Over HTTP/1.1 a browser has six connections to a host, and each stream takes one.
func TestTabsInTheBackgroundLeaveTheConnectionsToOthers(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	call := o.write(t, "billing", "first.txt", "1\n")
	p := openTab(startBrowser(t), t, true)
	p.open(o.pages)
	p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
	p.sees("the list", `document.querySelectorAll(".request").length === 1`)
	asked[int](p, `tabs = [], hide = (tab, hidden) => {
		Object.defineProperty(tab.document, "hidden", {value: hidden, configurable: true});
		tab.document.dispatchEvent(new tab.Event("visibilitychange"));
	}, 0`)
	for i := range 7 {
		asked[int](p, fmt.Sprintf(`tabs.push(window.open("/a/%s"))`, call.ApprovalID))
		p.sees("another tab", fmt.Sprintf(`tabs[%d].document.body?.dataset.live === "page" && tabs[%[1]d].document.readyState === "complete"`, i))
		asked[int](p, fmt.Sprintf(`hide(tabs[%d], true), 0`, i))
	}
	o.approve(t, "ben", call.ApprovalID, `"kind":"deny"`)
	asked[int](p, `hide(tabs[0], false), 0`)
	p.sees("the change in a tab that is seen again", `tabs[0].document.getElementById("updates").textContent.startsWith("This request has changed.")`)
}
