package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/callyard/callyard/internal/approver/oidc/oidctest"
	"github.com/callyard/callyard/internal/mcptest"
)

// approvalFabric is a fabric whose risky calls need approvals.
type approvalFabric struct {
	*door
	pages string // the URL of the approver
	idp   *oidctest.Provider
}

// openApprovalFabric starts `callyard up` with keys for agents and for approvers, an identity
// provider, and a policy that asks the group ops.
func openApprovalFabric(t *testing.T) *approvalFabric {
	t.Helper()
	o := &approvalFabric{idp: oidctest.Start(t)}
	o.idp.SignsIn(oidctest.Claims{"email": "grace@example.com", "email_verified": true, "groups": []string{"/staff/ops"}})
	servers, folder := realServers(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, `
rules:
  - name: files change
    match: {server: files, tool: [write_file, move_file]}
    approval: {groups: [ops], expires: 30m}
  - name: customers are told
    match: {server: crm, tool: echo}
    level: 2
    approval: {groups: [ops], needed: 2, expires: 2h}
  - name: tickets
    match: {server: tickets, tool: echo}
    level: 2
    approval: {groups: [ops], expires: 10m}
`)
	hash := func(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }
	o.door = startUp(t, setup{
		servers: serversFile(t, map[string]entry{"files": servers["filesystem"], "crm": scripted(mcptest.Echo), "tickets": scripted(mcptest.SchemaChange)}),
		dir:     folder, // the working folder of the server files, so that relative names suffice
		env:     []string{quickStop}, flags: []string{"--policy", policy, "--approver-listen", "127.0.0.1:0"},
		config: `
front_door:
  keys:
    - {name: billing-agent, owner: finance, hash: "` + hash("billing") + `"}
    - {name: release-bot, owner: ada@example.com, hash: "` + hash("release") + `"}
approver:
  drain_delay: 1ms
  keys:
    - {name: ada, owner: ada@example.com, groups: [ops], hash: "` + hash("ada") + `"}
    - {name: ben, groups: [ops], hash: "` + hash("ben") + `"}
  oidc:
    issuer: ` + o.idp.Issuer + `
    client_id: ` + o.idp.ClientID + `
    client_secret: ` + o.idp.Secret + `
    scopes: [email, groups]
    group_map: {/staff/ops: [ops]}
`,
	})
	o.pages = o.door.says(t, `approvals\s+(http://\S+)`)[1]
	for _, id := range []string{"files", "crm", "tickets"} {
		o.eventually(t, startWithin, "the server "+id, func() error {
			a, err := o.try("GET", "/servers/"+id+"/tools", "", "X-API-Key: billing")
			if err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("it answers %d %s", a.status, a.body)
			}
			return err
		})
	}
	return o
}

// hold sends a call that needs an approval.
func (o *approvalFabric) hold(t testing.TB, key, server, tool string, arguments map[string]any) held {
	t.Helper()
	body, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	a := o.ask(t, "POST", "/servers/"+server+"/tools/"+tool, string(body), "X-API-Key: "+key)
	var h held
	if err := json.Unmarshal(a.body, &h); err != nil || a.status != http.StatusAccepted || h.ApprovalID == "" {
		t.Fatalf("%s of %s is answered with %d %s", tool, server, a.status, a.body)
	}
	return h
}

// write sends a call that writes a file.
func (o *approvalFabric) write(t testing.TB, key, name, content string) held {
	t.Helper()
	return o.hold(t, key, "files", "write_file", map[string]any{"path": name, "content": content})
}

// ends waits until a call has ended, and returns its state.
func (o *approvalFabric) ends(t testing.TB, key string, h held) string {
	t.Helper()
	var s callState
	a := o.ask(t, "GET", "/calls/"+h.CallID+"?wait=20", "", "X-API-Key: "+key)
	if err := json.Unmarshal(a.body, &s); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return s.State
}

// approve approves through the API.
func (o *approvalFabric) approve(t testing.TB, key, id, more string) {
	t.Helper()
	c := client(t)
	a, err := send(c, o.pages, "GET", "/approvals/"+id, "", "X-API-Key: "+key)
	var s struct {
		Digest string `json:"arguments_digest"`
	}
	if err == nil {
		err = json.Unmarshal(a.body, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err = send(c, o.pages, "POST", "/approvals/"+id+"/decisions", `{"digest":"`+s.Digest+`",`+more+`}`, "X-API-Key: "+key)
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.status, a.body)
	}
}

// fill adds the calls of a busy day.
func (o *approvalFabric) fill(t testing.TB) {
	t.Helper()
	o.write(t, "billing", "invoices-2026-11.csv", "customer,amount\nAcme Ltd,9007199254740993\nGlobex,120.50\n")
	o.write(t, "billing", "reminders.txt", "Dear customer,\nyour invoice is over\u00addue. Please pay to \u202eaccount 12-34\u202c\n")
	o.hold(t, "billing", "files", "move_file", map[string]any{"source": "invoices-2026-10.csv", "destination": "archive/invoices-2026-10.csv"})
	o.hold(t, "release", "crm", "echo", map[string]any{"text": "Version 4.2 is out"})
}

func TestPeopleDecideInABrowser(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	o.fill(t)
	p := openTab(startBrowser(t), t, true)

	p.open(o.pages)
	p.audit("sign-in")
	p.tabTo("#key")
	p.do(chromedp.KeyEvent("ada"))
	p.press(kb.Enter)
	p.sees("the list after the sign-in", `document.querySelectorAll(".request").length === 4`)

	// A new call appears without a reload of the page.
	asked[int](p, `window.mark = 17`)
	p.do(chromedp.Click(chromedp.CSS(`.request input`)))
	late := o.write(t, "billing", "late.txt", "one more\n")
	p.sees("the late call", fmt.Sprintf(`document.querySelector('a[href="/a/%s"]') !== null`, late.ApprovalID))
	if !asked[bool](p, `window.mark === 17 && document.querySelectorAll(".request input:checked").length === 1`) {
		t.Error("the page was loaded again, or forgot what was chosen")
	}
	p.hasText("0 of 2 approvals")
	p.hasText("You requested this call")
	before := asked[string](p, `document.querySelector("time[data-until]").textContent`)
	p.sees("the countdown", fmt.Sprintf(`document.querySelector("time[data-until]").textContent !== %q`, before))
	p.do(chromedp.Click(chromedp.CSS(`.request input:checked`)))
	p.sees("that the news go away again", `document.getElementById("updates").textContent === ""`)
	p.audit("pending")

	// From the list to a decision with the keyboard alone.
	p.open(o.pages)
	p.tabTo(fmt.Sprintf(`a[href="/a/%s"]`, late.ApprovalID))
	p.press(kb.Enter)
	p.sees("the page of the call", `document.querySelector("#decide") !== null`)
	p.audit("detail")
	p.decidesOnTheFirstScreen("detail")
	p.tabTo(`form[action$="/approve"] textarea[name=reason]`)
	p.do(chromedp.KeyEvent("looks right"))
	p.tabTo(`form[action$="/approve"] button`)
	p.press(kb.Enter)
	p.sees("the word that it is recorded", `document.querySelector(".notice.success") !== null`)
	if got := o.ends(t, "billing", late); got != "succeeded" {
		t.Errorf("the approved call is %s", got)
	}

	// Three calls of one agent in a bulk review, one of them not selected.
	p.open(o.pages)
	p.tabTo(`.bulk-links a`)
	p.press(kb.Enter)
	p.sees("the page of several", `document.querySelectorAll("section.review-call").length === 3`)
	p.audit("review")
	p.tabTo(`section.review-call input`)
	p.press(" ")
	p.tabTo(`input[name=kind][value=approve]`)
	p.press(" ")
	p.tabTo(`form[action="/review"] button.primary`)
	p.press(kb.Enter)
	p.sees("what came of it", `document.querySelectorAll(".outcomes li").length === 2`)
	p.hasText("2 of 2 approved")
	p.audit("outcomes")

	// Long arguments are folded, so that the decision stays on the first screen.
	large := o.write(t, "billing", "large.txt", strings.Repeat("one of many lines\n", 2000))
	p.open(o.pages + "/a/" + large.ApprovalID)
	p.hasText("Show all 38,042 bytes")
	p.decidesOnTheFirstScreen("long arguments")
	if asked[bool](p, `document.querySelector(".show-all pre").checkVisibility()`) {
		t.Error("the page shows all lines of long arguments at once")
	}
	p.tabTo(".show-all summary")
	p.press(kb.Enter)
	p.sees("all lines", `document.querySelector(".show-all pre").checkVisibility() && !document.querySelector(".fold .preview").checkVisibility()`)
	p.audit("long")
}

func TestClickIsAppliedWhileTheListUpdates(t *testing.T) {
	o := openApprovalFabric(t)
	first := o.write(t, "billing", "first.txt", "1\n")
	p := openTab(startBrowser(t), t, true)
	p.open(o.pages)
	p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
	link := fmt.Sprintf(`document.querySelector('a[href="/a/%s"]')`, first.ApprovalID)
	p.sees("the call in the list", link+" !== null")
	// The page loads the list once when its event stream is open.
	loaded := func(n int) string {
		return fmt.Sprintf(`performance.getEntriesByType("resource").filter((r) => r.initiatorType === "fetch" && r.responseEnd > 0).length >= %d`, n)
	}
	p.sees("that the stream is open", loaded(1))
	asked[int](p, `fetch(location.href).then((r) => r.text()).then((t) => t.length)`, chromedp.EvalAwaitPromise) // takes longer than the page to show it
	asked[bool](p, `(pressedAt = `+link+`) !== null`)
	at := asked[struct{ X, Y float64 }](p, `(({x, y, width, height}) => ({X: x + width / 2, Y: y + height / 2}))(pressedAt.getBoundingClientRect())`)
	mouse := func(what input.DispatchMouseEventType) {
		p.do(chromedp.MouseEvent(what, at.X, at.Y, chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1)))
	}

	mouse(chromedp.MousePressed)
	// The page has noticed the changed list when it has loaded it again.
	o.write(t, "billing", "second.txt", "2\n")
	p.sees("that the list is loaded", loaded(3))
	asked[int](p, `fetch(location.href).then((r) => r.text()).then((t) => t.length)`, chromedp.EvalAwaitPromise) // takes longer than the page to show it
	if !asked[bool](p, `pressedAt.isConnected`) {
		t.Error("the list changed between a press and its release")
	}
	mouse(chromedp.MouseReleased)
	p.sees("the page of the call", `location.pathname === "/a/`+first.ApprovalID+`" && document.querySelector("#decide") !== null`)

	// A button released elsewhere is not a click, and the list continues to update.
	p.open(o.pages)
	p.sees("the list", `document.querySelectorAll(".request").length === 2`)
	mouse(chromedp.MousePressed)
	o.write(t, "billing", "third.txt", "3\n")
	p.do(chromedp.MouseEvent(chromedp.MouseReleased, 1, 1, chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1)))
	p.sees("the third call", `document.querySelectorAll(".request").length === 3`)
}

func TestToolChangeEditAndPermissionAreShownInABrowser(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	first := o.hold(t, "billing", "tickets", "echo", map[string]any{"text": "open a ticket"})
	o.approve(t, "ada", first.ApprovalID, `"kind":"approve"`)
	if got := o.ends(t, "billing", first); got != "succeeded" {
		t.Fatalf("the first call is %s", got)
	}
	// The tool asks for more after its first call.
	o.eventually(t, startWithin, "the changed tool", func() error {
		a, err := o.try("GET", "/servers/tickets/tools", "", "X-API-Key: billing")
		if err == nil && !strings.Contains(string(a.body), "for a reason") {
			err = fmt.Errorf("the tools are %s", a.body)
		}
		return err
	})
	changed := o.hold(t, "billing", "tickets", "echo", map[string]any{"text": "close all tickets", "reason": "the quarter ends"})
	edited := o.write(t, "billing", "letter.txt", "Dear all,\nall accounts are closed today.\n")
	o.approve(t, "ben", edited.ApprovalID, `"kind":"edit","reason":"one account only","arguments":{"content":"Dear all,\none account is closed today.\n","path":"letter.txt"}`)
	if got := o.ends(t, "billing", edited); got != "succeeded" {
		t.Errorf("the edited call is %s", got)
	}

	p := openTab(startBrowser(t), t, true)
	p.open(o.pages)
	p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
	p.sees("the list", `document.querySelector(".tool-changed") !== null`)
	p.open(o.pages + "/a/" + changed.ApprovalID)
	p.hasText("The tool definition has changed")
	if p.count("pre.diff ins") == 0 || p.count("pre.diff del") == 0 {
		t.Error("the page shows no difference")
	}
	p.audit("changed")
	p.open(o.pages + "/a/" + edited.ApprovalID)
	p.audit("edited")

	// Allow the same again, with the keyboard.
	again := o.write(t, "billing", "ledger.txt", "1\n")
	p.open(o.pages + "/a/" + again.ApprovalID)
	p.tabTo(`details:has(form[action$="/allow"]) > summary`)
	p.press(kb.Enter)
	p.tabTo(`form[action$="/allow"] input[name=pattern]`)
	p.press(kb.ArrowDown)
	p.tabTo(`form[action$="/allow"] input[name="same./path"]`)
	p.press(" ")
	p.audit("allow")
	p.tabTo(`form[action$="/allow"] button`)
	p.press(kb.Enter)
	p.sees("the word that it is recorded", `document.querySelector(".notice.success") !== null`)
	o.ends(t, "billing", again)
	o.eventually(t, soon, "a call that runs by the permission", func() error {
		a, err := o.try("POST", "/servers/files/tools/write_file", `{"path":"ledger.txt","content":"2\n"}`, "X-API-Key: billing")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", a.status, a.body)
		}
		return err
	})
	p.open(o.pages + "/permissions")
	p.audit("permissions")
	p.tabTo(`form[action$="/revoke"] button`)
	p.press(kb.Enter)
	p.sees("that it is taken back", `document.querySelector('[data-state=revoked]') !== null`)
	p.open(o.pages + "/history")
	p.do(chromedp.Click(chromedp.CSS("tr.under summary")))
	p.audit("history")
}

func TestSignInAtIdentityProviderOpensThePages(t *testing.T) {
	o := openApprovalFabric(t)
	h := o.write(t, "release", "notes.txt", "Version 4.2\n")
	p := openTab(startBrowser(t), t, true)
	// The provider is another site for the browser, so the session cookie is not sent
	// with the redirect back.
	p.open(o.pages + "/a/" + h.ApprovalID)
	p.sees("the sign-in", `document.querySelector("a.button") !== null`)
	p.tabTo("a.button")
	p.press(kb.Enter)
	p.sees("the call, after the way over the provider", fmt.Sprintf(`location.pathname === "/a/%s" && document.querySelector(".account").textContent.includes("grace@example.com")`, h.ApprovalID))
	p.do(chromedp.Click(chromedp.CSS(`form[action$="/approve"] button`)))
	p.sees("the word that it is recorded", `document.querySelector(".notice.success") !== null`)
	if got := o.ends(t, "release", h); got != "succeeded" {
		t.Errorf("the approved call is %s", got)
	}
	p.do(chromedp.Click(chromedp.CSS(`form[action="/sign-out"] button`)))
	p.sees("the sign-in again", `location.pathname === "/sign-in"`)
	// The owner of the requesting key counts as the requester, regardless of the sign-in.
	o.idp.SignsIn(oidctest.Claims{"email": "Ada@Example.com", "email_verified": true, "groups": []string{"/staff/ops"}})
	own := o.write(t, "release", "own.txt", "mine\n")
	p.do(chromedp.Click(chromedp.CSS(`a.button`)))
	p.sees("the list", `document.querySelectorAll(".request").length === 1`)
	p.open(o.pages + "/a/" + own.ApprovalID)
	p.hasText("You requested this call, directly or with a key of yours")
	if p.count(`form[action^="/a/"]`) > 0 {
		t.Error("one's own call can be decided")
	}
}

func TestThePagesWorkWithoutJavaScript(t *testing.T) {
	t.Parallel()
	o := openApprovalFabric(t)
	a, b := o.write(t, "billing", "a.txt", "a\n"), o.write(t, "billing", "b.txt", "b\n")
	p := openTab(startBrowser(t), t, false)
	p.open(o.pages)
	p.do(chromedp.SendKeys(chromedp.CSS("#key"), "ada"+kb.Enter))
	p.sees("the list", `document.querySelectorAll(".request").length === 2`)
	p.hasText("this page does not update by itself")
	for range 2 {
		p.do(chromedp.Click(chromedp.CSS(`.request input:not(:checked)`)))
	}
	p.do(chromedp.Click(chromedp.CSS(`.selection-bar button`)))
	p.sees("the page of several", `document.querySelectorAll("section.review-call").length === 2`)
	p.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`input[name="pick.%s"]`, b.ApprovalID))), chromedp.Click(chromedp.CSS(`input[value=approve]`)), chromedp.Click(chromedp.CSS(`form[action="/review"] button.primary`)))
	p.sees("what came of it", `document.querySelectorAll(".outcomes li.success").length === 1`)
	if got := o.ends(t, "billing", a); got != "succeeded" {
		t.Errorf("the approved call is %s", got)
	}
	p.do(chromedp.Navigate(o.pages+"/a/"+b.ApprovalID), chromedp.Click(chromedp.CSS(`button[formaction$="/deny"]`)))
	p.sees("the word that it is recorded", `document.querySelector(".notice.success") !== null`)
	if got := o.ends(t, "billing", b); got != "denied" {
		t.Errorf("the denied call is %s", got)
	}
	// The sign-in through the provider needs no JavaScript either.
	p.do(chromedp.Click(chromedp.CSS(`form[action="/sign-out"] button`)))
	p.sees("the sign-in", `document.querySelector("a.button") !== null`)
	p.do(chromedp.Click(chromedp.CSS(`a.button`)))
	p.sees("the list, as somebody else", `document.querySelector(".account") !== null && document.querySelector(".account").textContent.includes("grace@example.com")`)
}
