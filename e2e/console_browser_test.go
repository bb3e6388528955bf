package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callyard/callyard/internal/mcptest"
)

// watchPolicy records violations of the page's Content-Security-Policy from the start.
func (p *tab) watchPolicy() {
	p.t.Helper()
	p.do(func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `window.violations = []; document.addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI));`,
		})
		return none, err
	})
}

// staysAtHome fails the test if the page violated its policy, or loaded anything from another origin.
func (p *tab) staysAtHome(name string) {
	p.t.Helper()
	if got := asked[string](p, `JSON.stringify(window.violations)`); got != "[]" {
		p.t.Errorf("%s breaks its policy: %s", name, got)
	}
	if got := asked[string](p, `performance.getEntriesByType("resource").map((r) => r.name).filter((u) => !u.startsWith(location.origin + "/")).join(" ")`); got != "" {
		p.t.Errorf("%s loads from elsewhere: %s", name, got)
	}
}

// consoleFabric starts `callyard up` with a good server, one that does not start, and the demo
// server's tools.
func consoleFabric(t *testing.T) (d *door, pages string) {
	t.Helper()
	servers, folder := realServers(t)
	d = startUp(t, setup{
		servers: serversFile(t, map[string]entry{"files": servers["filesystem"], "crm": scripted(mcptest.Echo), "broken": {Command: "/no/such/program"}}),
		dir:     folder, env: []string{quickStop}, flags: []string{"--approver-listen", "127.0.0.1:0"},
	})
	pages = d.says(t, `approvals\s+(http://\S+)`)[1]
	for _, id := range []string{"files", "crm"} {
		d.eventually(t, startWithin, "the server "+id, func() error {
			a, err := d.try("GET", "/servers/"+id+"/tools", "")
			if err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("it answers %d %s", a.status, a.body)
			}
			return err
		})
	}
	return d, pages
}

// keepCalling makes calls until the test ends, some of which fail, so that screenshots show data.
func keepCalling(t *testing.T, d *door) {
	t.Helper()
	startLoad(t, 3, func(lane, n int) error {
		tool, arguments := "sleep", fmt.Sprintf(`{"ms":%d}`, 20+10*lane+n%7)
		switch {
		case n%23 == 7:
			tool, arguments = "echo", `{"wrong":1}`
		case n%5 == 1:
			tool, arguments = "echo", `{"text":"hello"}`
		}
		_, err := d.tryCall("crm", tool, arguments)
		return err
	})
}

func TestTheConsoleInABrowser(t *testing.T) {
	t.Parallel()
	d, pages := consoleFabric(t)
	batch := d.ask(t, "POST", "/batches", `{"calls":[{"server":"crm","tool":"echo","arguments":{"text":"a"}},{"server":"crm","tool":"nope"}]}`)
	id := regexp.MustCompile(`batch_\w+`).FindString(string(batch.body))
	if *update {
		keepCalling(t, d)
	}
	p := openTab(startBrowser(t), t, true)
	p.watchPolicy()

	// From the overview to a result with the keyboard alone.
	p.open(pages + "/console")
	p.tabTo(`nav a[href="/console/tools"]`)
	p.press(kb.Enter)
	p.sees("the tools", `document.querySelector("input[name=q]") !== null`)
	p.tabTo("input[name=q]")
	p.do(chromedp.KeyEvent("echo text"))
	p.press(kb.Enter)
	p.sees("what was found", `location.search.includes("echo") && document.querySelector('a[href^="/console/tool?"]') !== null`)
	p.open(pages + "/console/tool?server=crm&tool=echo")
	p.tabTo(`textarea[name="f.a.0"]`)
	p.do(chromedp.KeyEvent("hello there"))
	p.sees("that the form writes the editor", `JSON.parse(document.getElementById("arguments").value).text === "hello there"`)
	p.tabTo(`button[value=run]`)
	p.press(kb.Enter)
	p.sees("the result", `document.querySelector(".result .badge.success") !== null`)
	p.hasText("hello there")
	p.staysAtHome("a result")
	p.audit("console-result")

	for name, path := range map[string]string{
		"console-overview": "/console", "console-servers": "/console/servers", "console-server": "/console/server?id=files", "console-failed": "/console/server?id=broken", "console-fleet": "/console/fleet",
		"console-tools": "/console/tools", "console-tool": "/console/tool?server=files&tool=edit_file", "console-calls": "/console/calls", "console-batches": "/console/batches", "console-batch": "/console/batch?id=" + url.QueryEscape(id),
		"console-policy": "/console/policy?tools=crm%2Fecho+files%2Fread_file", "console-sets": "/console/sets", "console-nokeys": "/console/keys", "console-import": "/console/state", "console-newkey": "/console/keys/new", "console-operators": "/console/audit?act=operators", "console-usage": "/console/usage?by=tool&by=key&interval=hour&period=7d", "console-tenants": "/console/tenants", "console-tenant": "/console/tenant?id=default", "console-approvals": "/", "console-key": "/console/key",
	} {
		p.open(pages + path)
		p.sees(name, `document.querySelector("h1") !== null`)
		if slices.Contains(consolePictures, name) {
			p.audit(name)
		} else {
			p.glance(name)
		}
		p.staysAtHome(name)
	}

	// Folded content works like the rest.
	p.open(pages + "/console/calls?batch=" + url.QueryEscape(id))
	call := asked[string](p, `document.querySelector('a[href^="/console/call?"]').getAttribute("href")`)
	for name, path := range map[string]string{"console-audit-open": "/console/audit", "console-call-open": call, "console-tool-open": "/console/tool?server=crm&tool=echo"} {
		p.open(pages + path)
		asked[int](p, `document.querySelectorAll("details").forEach((d) => { d.open = true; }); 0`)
		p.glance(name)
	}

	// Figures update without a reload of the page.
	p.open(pages + "/console")
	asked[int](p, `window.mark = 17`)
	p.sees("a rate", `!document.querySelector(".figure-value").textContent.includes("unknown")`)
	if !asked[bool](p, `window.mark === 17`) {
		t.Error("the page was loaded again")
	}
	// A pause freezes the page until it is ended. Requests from before the pause may still be
	// answered; the page makes one after the other.
	asked[int](p, `window.begun = 0, window.open = 0, (({fetch, EventSource}) => {
		window.fetch = (...of) => { begun++; open++; return fetch(...of).finally(() => open--); };
		window.EventSource = class extends EventSource { constructor(...of) { super(...of); begun++; } };
	})(window), 0`)
	d.ask(t, "POST", toolPath("crm", "echo"), `{"text":"x"}`)
	p.sees("a request", `begun > 0`)
	p.tabTo("#pause")
	p.press(kb.Enter)
	p.sees("the pause", `document.getElementById("pause").textContent === "Resume updates"`)
	p.sees("the end of the requests", `open === 0`)
	asked[int](p, `document.querySelector(".figure-value").textContent = "as it was"; begun = 0`)
	d.ask(t, "POST", toolPath("crm", "echo"), `{"text":"x"}`)
	if n := asked[int](p, `new Promise((done) => setTimeout(() => done(begun), 3000))`, chromedp.EvalAwaitPromise); n != 0 || !asked[bool](p, `document.querySelector(".figure-value").textContent === "as it was"`) {
		t.Errorf("a paused page asked %d times, or changed", n)
	}
	p.press(kb.Enter)
	p.sees("figures again", `document.querySelector(".figure-value").textContent !== "as it was"`)
}

func TestTheConsoleWithoutJavaScript(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	p := openTab(startBrowser(t), t, false)
	p.open(pages + "/console/tool?server=files&tool=edit_file")
	p.do(chromedp.Click(chromedp.CSS(`button[value^="grow:"]`)))
	p.sees("another element", `document.querySelectorAll("fieldset fieldset").length === 1`)
	p.open(pages + "/console/tool?server=crm&tool=echo")
	p.do(chromedp.SendKeys(chromedp.CSS(`textarea[name="f.a.0"]`), "no script"))
	p.do(chromedp.Click(chromedp.CSS(`button[value=compose]:not([hidden])`)))
	p.sees("the editor", `document.getElementById("arguments").value.includes("no script")`)
	p.do(chromedp.Click(chromedp.CSS(`button[value=run]`)))
	p.sees("the result", `document.querySelector(".result .badge.success") !== null`)
	p.do(chromedp.SendKeys(chromedp.CSS(`input[name=reason]`), "closed today"))
	p.do(chromedp.Click(chromedp.CSS(`form[action="/console/tool/switch"] button`)))
	p.sees("that it is disabled", `document.querySelector(".notice.success") !== null`)
	if !strings.Contains(p.text(), "closed today") {
		t.Errorf("the page does not say why: %s", p.text())
	}
}

// A key is created and revoked with the keyboard. In between it is changed without scripts.
func TestKeysInABrowser(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	browser := startBrowser(t)
	p := openTab(browser, t, true)
	p.watchPolicy()
	p.open(pages + "/console/keys/new")
	p.tabTo("input[name=name]")
	p.do(chromedp.KeyEvent("night<b>ly"))
	p.tabTo("main button.primary")
	p.press(kb.Enter)
	p.sees("the secret", `document.getElementById("secret") !== null`)
	secret := regexp.MustCompile(`cyk_\w+`).FindString(asked[string](p, `document.getElementById("secret").textContent`))
	p.staysAtHome("the secret")
	p.glance("console-secret")
	p.tabTo(`a[href^="/console/keys/key?"]`)
	p.press(kb.Enter)
	p.sees("the key", `document.querySelector("button.danger") !== null`)
	key := asked[string](p, `location.pathname + location.search`)
	if secret == "" || strings.Contains(asked[string](p, `document.documentElement.outerHTML + location.href`), secret) {
		t.Errorf("the secret %q is not on its page alone", secret)
	}
	p.glance("console-apikey")
	// The key is changed in another tab, so the form here is outdated.
	other := openTab(browser, t, false)
	other.open(pages + key)
	other.do(chromedp.SendKeys(chromedp.CSS("textarea[name=note]"), "theirs"))
	other.do(chromedp.Click(chromedp.CSS("main button.primary")))
	other.sees("that it is stored", `document.querySelector(".notice.success") !== null`)
	p.do(chromedp.SendKeys(chromedp.CSS("textarea[name=note]"), "mine"))
	p.do(chromedp.Click(chromedp.CSS("main button.primary")))
	p.sees("both versions", `document.querySelector(".notice.danger table") !== null`)
	p.hasText("theirs")
	p.hasText("somebody else changed the key")
	p.glance("console-apikey-changed")
	p.tabTo("input[name=sure]")
	p.press(" ")
	p.tabTo("button.danger")
	p.press(kb.Enter)
	p.sees("that it is revoked", `location.search.includes("done=revoke")`)
	p.open(pages + "/console/audit")
	p.hasText("revoke-key")
	p.hasText("Intact")
}

// The answer to a second click would replace the page with the secret, which is shown only once.
func TestDoubleClickOnAKeyFormStillShowsTheSecret(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	p := openTab(startBrowser(t), t, true)
	// The second click comes before the answer to the first.
	twice := func(button string) {
		t.Helper()
		p.sees("the script", `document.readyState === "complete"`)
		asked[int](p, fmt.Sprintf(`(() => { const b = document.querySelector(%q); b.click(); setTimeout(() => b.click(), 0); return 0; })()`, button))
		p.sees("the secret", `document.querySelector("#secret, .notice.danger") !== null`)
		if p.count("#secret") != 1 {
			t.Errorf("the secret is lost: %s", p.text())
		}
	}
	p.open(pages + "/console/keys/new")
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=name]"), "nightly"))
	twice("main button.primary")
	p.do(chromedp.Click(chromedp.CSS(`a[href^="/console/keys/key?"]`)))
	p.sees("the key", `document.querySelector("select[name=grace]") !== null`)
	twice(`form:has(select[name=grace]) button`)
}

// A refused form marks its fields, keeps what was entered, and moves the focus to the reason.
func TestRefusedKeyFormLeadsToItsFields(t *testing.T) {
	t.Parallel()
	_, pages := consoleFabric(t)
	p := openTab(startBrowser(t), t, true)
	p.watchPolicy()
	p.open(pages + "/console/keys/new")
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=name]"), "nightly"), chromedp.SendKeys(chromedp.CSS("input[name=burst]"), "many"), chromedp.SendKeys(chromedp.CSS("input[name=in_flight]"), "2.5"))
	p.do(chromedp.Click(chromedp.CSS("main button.primary")))
	p.sees("the marked fields", `document.querySelectorAll("[aria-invalid=true]").length === 2`)
	p.sees("the focus on the reason", `document.activeElement.matches(".notice.danger")`)
	p.sees("the text that was entered", `document.querySelector("input[name=name]").value === "nightly"`)
	p.staysAtHome("a refused form")
	p.glance("console-newkey-refused")
	// A role with limits is stored and shown.
	asked[int](p, `(() => { for (const [name, value] of [["burst", ""], ["in_flight", "2"], ["role", "caller"]]) document.getElementById("key-" + name).value = value; return 0; })()`)
	p.do(chromedp.Click(chromedp.CSS("main button.primary")))
	p.sees("the secret", `document.querySelector("#secret") !== null`)
	p.do(chromedp.Click(chromedp.CSS(`a[href^="/console/keys/key?"]`)))
	p.sees("the key", `document.querySelector("select[name=role]")?.value === "caller"`)
	p.hasText("2 in flight")
}
