package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callyard/callyard/internal/mcptest"
)

// tenantsFabric starts `callyard up` with the tenants default, red and blue. The keys are named by
// their roles. Calls were made by red.
func tenantsFabric(t *testing.T) (pages string) {
	t.Helper()
	folder := t.TempDir()
	policy, own, secrets := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "red.yaml"), filepath.Join(folder, "secrets")
	write(t, policy, "rules:\n  - name: effects are confirmed\n    match: {tool: effect}\n    approval: {by: caller}\n")
	write(t, own, "rules:\n  - name: no failures\n    match: {tool: fail}\n    deny: Not here.\n")
	write(t, secrets, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	var keys strings.Builder
	for _, k := range []struct{ name, more string }{{"platform", ""}, {"red-agent", "tenant: red, "}, {"red-auditor", "tenant: red, role: auditor, "}, {"red-developer", "tenant: red, role: developer, "}} {
		fmt.Fprintf(&keys, "    - {name: %s, %shash: '%s'}\n", k.name, k.more, hashOf(k.name))
	}
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"ledger": scripted(mcptest.Echo), "red-notes": scripted(mcptest.Echo), "search": scripted(mcptest.Echo)}),
		env:     []string{quickStop}, flags: []string{"--approver-listen", "127.0.0.1:0", "--policy", policy},
		config: "front_door:\n  keys:\n" + keys.String() + "  sets:\n    - {name: notes, include: [{server: red-notes}]}\n    - {name: everything, include: [{server: '*'}]}\n" +
			"tenants:\n  red:\n    servers: [search, red-*]\n    policy: " + own + "\n    limits: {weight: 3}\n    notify: {urls: ['https://hooks.example.com/hidden']}\n  blue:\n    servers: [search]\n" +
			"approver:\n  notify: {urls: ['https://platform.example.com/hidden'], secrets_file: " + secrets + "}\n",
	})
	for _, call := range []struct {
		server, tool, key string
		status            int
	}{{"red-notes", "echo", "red-agent", http.StatusOK}, {"search", "echo", "red-agent", http.StatusOK}, {"search", "fail", "red-agent", http.StatusForbidden}, {"red-notes", "effect", "red-agent", http.StatusAccepted}, {"ledger", "echo", "platform", http.StatusOK}} {
		d.eventually(t, startWithin, "a call of "+call.server, func() error {
			a, err := d.try("POST", toolPath(call.server, call.tool), `{"text":"x","id":"x","path":"`+filepath.Join(folder, "effects")+`"}`, "X-API-Key: "+call.key)
			if err == nil && a.status != call.status {
				err = fmt.Errorf("it is answered with %d %s", a.status, a.body)
			}
			return err
		})
	}
	return d.says(t, `approvals\s+(http://\S+)`)[1]
}

// signIn enters a key on the sign-in page of the console.
func (p *tab) signIn(key string) {
	p.t.Helper()
	p.tabTo("input#key")
	p.do(chromedp.KeyEvent(key))
	p.press(kb.Enter)
}

// The pages of tenants with the keyboard, for each role, and once without scripts.
func TestTenantsInABrowser(t *testing.T) {
	t.Parallel()
	pages := tenantsFabric(t)
	browser := startBrowser(t)
	p := openTab(browser, t, true)
	p.watchPolicy()
	p.open(pages + "/console/tenants")
	p.signIn("platform")
	p.sees("the tenants", `document.querySelectorAll("tbody tr").length === 3`)
	p.hasText("Own, 1 rule")
	p.glance("console-tenants")
	p.staysAtHome("the tenants")
	p.tabTo(`a[href="/console/tenant?id=red"]`)
	p.press(kb.Enter)
	p.sees("one tenant", `document.querySelector("h1").textContent === "red"`)
	p.hasText("hooks.example.com")
	p.hasText("red-*")
	if strings.Contains(asked[string](p, `document.documentElement.outerHTML`), "hidden<") || strings.Contains(p.text(), "ledger") {
		t.Errorf("the page tells too much: %s", p.text())
	}
	p.audit("console-tenant")
	p.staysAtHome("one tenant")
	for path, text := range map[string]string{"/console/usage?": "red-agent", "/console/keys?": "red-auditor", "/console/audit?": "Audit"} {
		p.open(pages + "/console/tenant?id=red")
		p.tabTo(`aside a[href^="` + path + `"]`)
		p.press(kb.Enter)
		p.sees(path, `location.pathname + "?" === "`+path+`" && document.querySelector("input[name=tenant]").value === "red"`)
		p.hasText(text)
		if path == "/console/keys?" && strings.Contains(p.text(), "platform") {
			t.Errorf("the keys are not those of the tenant: %s", p.text())
		}
	}
	p.open(pages + "/console/calls?tenant=red")
	p.hasText("It does not see those of other callers") // a key of the file without a role lists its own calls only
	p.glance("console-calls-of-a-tenant")

	// An auditor of red, without scripts, sees its own tenant and the calls of its agents.
	q := openTab(browser, t, false)
	q.open(pages + "/console/tenants")
	q.do(chromedp.SendKeys(chromedp.CSS("input#key"), "red-auditor"))
	q.do(chromedp.Click(chromedp.CSS("main button.primary")))
	q.sees("its tenant", `document.querySelectorAll("tbody tr").length === 1`)
	q.do(chromedp.Click(chromedp.CSS(`a[href="/console/calls?tenant=red"]`)))
	q.sees("the calls of the tenant", `document.querySelectorAll("tbody tr").length >= 4`)
	q.hasText("red-agent")
	q.open(pages + "/console/tenant?id=blue")
	q.hasText("no tenant with this id")

	// A developer sees no tenants.
	r := openTab(browser, t, true)
	r.open(pages + "/console/tenants")
	r.signIn("red-developer")
	r.sees("the refusal", `document.body.textContent.includes("does not have the scope")`)
}
