package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/callyard/callyard/internal/mcptest"
)

// TestPagesOfAllowedOriginsUseTheFrontDoor uses REST and MCP from pages of two other
// origins in a real browser, which sends the preflight requests and enforces the responses.
func TestPagesOfAllowedOriginsUseTheFrontDoor(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>client</title>a client in a page")
	})
	listed, other := httptest.NewServer(page), httptest.NewServer(page)
	defer listed.Close()
	defer other.Close()
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"demo": scripted(mcptest.Echo)}), env: []string{quickStop},
		config: "front_door:\n  origins: [" + listed.URL + "]\n  keys:\n    - {name: page, hash: \"" + fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("secret"))) + "\"}\n",
	})
	d.eventually(t, startWithin, "the server demo", func() error {
		a, err := d.try("GET", "/servers/demo/tools", "", "X-API-Key: secret")
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", a.status, a.body)
		}
		return err
	})
	in := startBrowser(t)
	for _, c := range []struct{ name, script string }{
		{"REST", `fetch(door + "/servers/demo/tools/echo", {method: "POST", headers: {"X-API-Key": "secret", "Content-Type": "application/json"}, body: "{\"text\":\"hi\"}"})
			.then(async r => r.status + " " + (r.headers.get("Callyard-Call-Id") || "no id").slice(0, 5) + " " + (await r.text()).includes("hi"))`},
		{"REST, a read", `fetch(door + "/tools", {headers: {"X-API-Key": "secret"}}).then(async r => r.status + " call_ " + (await r.text()).includes("echo"))`},
		{"MCP", `fetch(door + "/mcp", {method: "POST", headers: {"Authorization": "Bearer secret", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
			body: JSON.stringify({jsonrpc: "2.0", id: 1, method: "initialize", params: {protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {name: "page", version: "1"}}})})
			.then(async r => r.status + " " + (r.headers.get("Mcp-Session-Id") ? "call_" : "no session") + " " + (await r.text()).includes("protocolVersion"))`},
	} {
		ask := func(from string) string {
			tab := openTab(in, t, true)
			tab.open(from)
			return asked[string](tab, `(() => { const door = "`+d.url+`"; return `+c.script+`.catch(e => "blocked: " + e.message) })()`, chromedp.EvalAwaitPromise)
		}
		if got := ask(listed.URL); got != "200 call_ true" {
			t.Errorf("%s from a listed origin: %s", c.name, got)
		}
		if got := ask(other.URL); got != "blocked: Failed to fetch" {
			t.Errorf("%s from another origin: %s", c.name, got)
		}
	}
}
