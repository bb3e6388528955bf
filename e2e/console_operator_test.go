package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callyard/callyard/internal/mcptest"
)

// operator is an operator at the console of a fabric whose payments need approvals.
type operator struct {
	*tab
	d     *door
	pages string
}

// agentKey is the API key of the agent, which the operator's console uses as well.
const agentKey = "X-API-Key: nightly"

// openOperator starts `callyard up` with keys for agents and people, and signs the operator in to
// the console with the keyboard.
func openOperator(t *testing.T) *operator {
	t.Helper()
	folder := t.TempDir()
	policy, secret := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "credentials-key")
	write(t, secret, "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo=\n")
	write(t, policy, "rules:\n  - name: payments\n    match: {server: bank, tool: echo}\n    approval: {groups: [ops], expires: 2h}\n  - name: the rest\n    match: {server: '*'}\n    level: 1\n")
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"bank": scripted(mcptest.Echo), "crm": scripted(mcptest.Echo)}),
		env:     []string{quickStop}, flags: []string{"--policy", policy, "--approver-listen", "127.0.0.1:0"},
		config: "front_door:\n  keys:\n    - {name: nightly-agent, owner: finance, hash: '" + hashOf("nightly") + "'}\n    - {name: release-bot, owner: platform, hash: '" + hashOf("release") + "'}\n" +
			"approver:\n  keys:\n    - {name: ada, owner: ada@example.com, groups: [ops], hash: '" + hashOf("ada") + "'}\n  console: {groups: [ops]}\n" +
			"credentials:\n  key_file: " + secret + "\n  servers:\n    - {name: crm, url: 'https://crm.example.com/mcp', kind: oauth, issuer: 'https://login.example.com', client_id: callyard}\n    - {name: jira, url: 'https://jira.example.com/mcp', kind: header, header: X-API-Key}\n",
	})
	o := &operator{tab: openTab(startBrowser(t), t, true), d: d, pages: d.says(t, `approvals\s+(http://\S+)`)[1]}
	d.eventually(t, startWithin, "a call of crm", func() error { return o.echo(http.StatusOK) })
	o.watchPolicy()
	o.open(o.pages + "/console")
	o.signIn("ada")
	o.sees("that it asks for the key of the front door", `document.querySelector("h1").textContent === "API key of the front door"`)
	o.signIn("nightly")
	o.sees("the overview", `document.querySelector(".figures") !== null`)
	return o
}

// echo makes a call of crm, and returns an error unless the response has the status.
func (o *operator) echo(want int) error {
	a, err := o.d.try("POST", toolPath("crm", "echo"), `{"text":"hello"}`, agentKey)
	if err == nil && a.status != want {
		err = fmt.Errorf("the call is answered with %d %s", a.status, a.body)
	}
	return err
}

// batch runs calls as a batch, and returns its ID when that number is held and the others have ended.
func (o *operator) batch(held int, calls ...string) string {
	o.t.Helper()
	id := regexp.MustCompile(`batch_\w+`).FindString(string(o.d.ask(o.t, "POST", "/batches", `{"calls":[`+strings.Join(calls, ",")+`]}`, agentKey).body))
	o.d.eventually(o.t, startWithin, "the batch", func() error {
		a := o.d.ask(o.t, "GET", "/batches/"+id, "", agentKey)
		if want := fmt.Sprintf(`"counts":{"waiting":%d,"held":%d,`, held, held); !strings.Contains(string(a.body), want) {
			return fmt.Errorf("it is %s", a.body)
		}
		return nil
	})
	return id
}

// presses focuses a button with the keyboard, presses it, and waits for the condition.
func (o *operator) presses(selector, what, condition string) {
	o.t.Helper()
	o.tabTo(selector)
	o.press(kb.Enter)
	o.sees(what, condition)
}

// fills types into a field of the page.
func (o *operator) fills(selector, value string) {
	o.t.Helper()
	asked[int](o.tab, fmt.Sprintf(`document.querySelector(%q).value = %q; 0`, selector, value))
}

const success = `document.querySelector(".notice.success") !== null`

// The actions of the console, with the keyboard. Each uses an operation of the API.
func TestAnOperatorInABrowser(t *testing.T) {
	t.Parallel()
	o := openOperator(t)
	for range 12 {
		if err := o.echo(http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	o.decidesABatch()
	o.retriesABatch()
	o.triesADraft()
	o.disablesAServer()
	o.importsTheState()
	for _, key := range []string{`{"name":"reports","owner":"ben@example.com","role":"auditor","note":"Monthly figures."}`, `{"name":"support-desk","owner":"support","scopes":["tools:read","tools:call:crm"]}`} {
		if a := o.d.ask(t, "POST", "/keys", key, agentKey); a.status != http.StatusCreated {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for name, path := range map[string]string{"console-keys": "/console/keys", "console-audit": "/console/audit", "console-connections": "/connect"} {
		o.open(o.pages + path)
		o.sees(name, `document.querySelector("h1") !== null`)
		o.glance(name)
		o.staysAtHome(name)
	}
	o.open(o.pages + "/console/server?id=none")
	if got := asked[string](o.tab, `document.querySelector("nav [aria-current]").textContent`); got != "Servers" {
		t.Errorf("a server that is not there is shown as one of the %s", got)
	}
}

// decidesABatch approves the held calls of a batch at once.
func (o *operator) decidesABatch() {
	o.t.Helper()
	pay := func(n int) string {
		return fmt.Sprintf(`{"server":"bank","tool":"echo","arguments":{"text":"Pay invoice 2026-11-%d: 120.50 EUR to Acme Ltd"}}`, n)
	}
	id := o.batch(3, pay(17), pay(18), pay(19), `{"server":"crm","tool":"echo","arguments":{"text":"a"}}`)
	o.open(o.pages + "/console/batch?id=" + id)
	o.presses(`a[href^="/review?"]`, "the calls of the batch", `document.querySelectorAll("section.review-call").length === 3`)
	o.glance("console-together")
	o.tabTo(`input[name=kind][value=approve]`)
	o.press(" ")
	o.presses(`form[action="/review"] button.primary`, "the outcomes", `document.querySelector("h1").textContent === "3 of 3 approved"`)
	o.d.eventually(o.t, startWithin, "the end of the batch", func() error {
		if a := o.d.ask(o.t, "GET", "/batches/"+id, "", agentKey); !strings.Contains(string(a.body), `"state":"completed"`) {
			return fmt.Errorf("it is %s", a.body)
		}
		return nil
	})
}

// retriesABatch creates a batch of the failed calls of another one.
func (o *operator) retriesABatch() {
	o.t.Helper()
	id := o.batch(0, `{"server":"crm","tool":"gone","arguments":{"n":1}}`, `{"server":"crm","tool":"echo","arguments":{"text":"a"}}`)
	o.open(o.pages + "/console/batch?id=" + id)
	o.presses(`button[value=retry]`, "the new batch", success)
	o.sees("which batch it retries", fmt.Sprintf(`document.querySelector('a[href="/console/batch?id=%s"]') !== null`, id))
	o.hasText("of 1 calls ended")
}

// triesADraft shows the decisions of a draft policy.
func (o *operator) triesADraft() {
	o.t.Helper()
	o.open(o.pages + "/console/policy")
	draft := asked[string](o.tab, `document.querySelector("textarea[name=draft]").value`)
	if !strings.Contains(draft, "name: payments") {
		o.t.Errorf("the draft does not begin with the rules in force: %q", draft)
	}
	o.fills("textarea[name=draft]", strings.Replace(draft, "rules:\n", "rules:\n  - name: mail\n    match: {server: crm, tool: echo}\n    approval: {groups: [ops]}\n", 1))
	o.presses(`form[method=post] button.primary`, "what it decides", `document.querySelector('[aria-label="Changed calls"] tbody tr') !== null`)
	o.glance("console-dry-run")
	o.staysAtHome("a dry run")
}

// disablesAServer disables all tools of a server, and enables them again.
func (o *operator) disablesAServer() {
	o.t.Helper()
	const button = `form[action="/console/server/switch"] button`
	o.open(o.pages + "/console/server?id=crm")
	o.tabTo("input[name=reason]")
	o.do(chromedp.KeyEvent("closed for repairs"))
	o.presses(button, "that the tools are disabled", success+` && document.querySelector("`+`form[action='/console/server/switch'] button.primary`+`") !== null`)
	o.hasText("closed for repairs")
	if err := o.echo(http.StatusForbidden); err != nil || !strings.Contains(o.text(), "Enable its tools") {
		o.t.Errorf("%v; the page is %s", err, o.text())
	}
	o.presses(button, "that they are enabled", success+` && document.querySelector("`+`form[action='/console/server/switch'] button.danger`+`") !== null`)
	if err := o.echo(http.StatusOK); err != nil {
		o.t.Error(err)
	}
}

// importsTheState compares a state file with the current state, and imports it.
func (o *operator) importsTheState() {
	o.t.Helper()
	o.open(o.pages + "/console/state")
	file := asked[string](o.tab, `fetch("/console/state/export").then((r) => r.text())`, chromedp.EvalAwaitPromise)
	for _, tool := range []string{"fail", "crash"} {
		o.d.ask(o.t, "PATCH", "/servers/crm/tools/"+tool, `{"enabled":false,"reason":"Not today."}`, agentKey)
	}
	o.d.ask(o.t, "PUT", "/sets/research", `{"include":[{"server":"crm"}]}`, agentKey)
	o.fills("form textarea[name=file]:not([hidden])", file)
	o.presses(`form button.primary`, "the differences", `document.querySelectorAll('[aria-label="Changes"] tbody tr').length === 3`)
	o.glance("console-state")
	o.presses(`form button.danger`, "that they are imported", `document.querySelectorAll('[aria-label="Changes"] .badge.success').length === 3`)
}
