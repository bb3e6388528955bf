package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// amounts is the amount of data in a fabric whose console is tested.
type amounts struct{ servers, tools, calls, approvals int }

// crowded is a fabric with much data, and the URLs of its pages.
type crowded struct {
	*door
	size  amounts
	pages string
	http  *http.Client
	// IDs of existing objects.
	call, approval, batch, review string
}

// crowdPolicy holds payments, and runs all other calls.
const crowdPolicy = `
rules:
  - name: payments
    match: {tool: "tool-9"}
    approval: {groups: [ops], expires: 2h}
  - name: others
    match: {tool: "*"}
    level: 1
`

// manyTenants is a section of 50 tenants, each of which sees a tenth of the servers. The calls
// belong to the default tenant.
func manyTenants() string {
	text := "tenants:\n"
	for i := range 50 {
		text += fmt.Sprintf("  team-%d: {servers: ['server-*%d']}\n", i, i%10)
	}
	return text
}

// calculator is a built-in server. Its calls are the cheapest, so other costs are most visible
// with them. It is not included in the amounts.
const calculator = "calculator"

func serverName(i int) string { return fmt.Sprintf("server-%04d", i) }
func toolName(i int) string   { return fmt.Sprintf("tool-%d", i) }

// fillConsole starts `callyard up` and fills it through its own API. The servers are endpoints
// that accept tool calls, with pinned definitions.
func fillConsole(t testing.TB, of amounts) *crowded {
	t.Helper()
	began := time.Now()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, crowdPolicy)
	d := startUp(t, setup{
		servers: endpoints(t, of.servers, of.tools/of.servers),
		env:     []string{quickStop}, flags: []string{"--policy", policy, "--approver-listen", "127.0.0.1:0"}, config: manyTenants(),
	})
	c := &crowded{door: d, size: of, pages: d.says(t, `approvals\s+(http://\S+)`)[1], http: client(t)}
	c.eventually(t, startWithin, "all servers", func() error {
		ready := 0
		for _, s := range c.servers(t) {
			if s.Connected && s.Tools != nil {
				ready++
			}
		}
		if ready <= of.servers {
			return fmt.Errorf("%d of %d are ready", ready, of.servers+1)
		}
		return nil
	})
	t.Logf("the servers are ready after %s", time.Since(began).Round(time.Second))
	c.makeCalls(t)
	t.Logf("the calls have ended after %s", time.Since(began).Round(time.Second))
	c.hold(t)
	lines := make([]string, 20)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"server":%q,"tool":"tool-%d","arguments":{"text":"b"}}`, serverName(i%of.servers), i%9)
	}
	batch := c.ask(t, "POST", "/batches", `{"calls":[`+strings.Join(lines, ",")+`]}`)
	if c.batch = regexp.MustCompile(`batch_\w+`).FindString(string(batch.body)); c.batch == "" {
		t.Fatalf("the batch: %d %s", batch.status, batch.body)
	}
	return c
}

// endpoints writes a servers file with endpoints that accept tool calls.
func endpoints(t testing.TB, n, tools int) string {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Calls []struct{ ID string } `json:"tool_calls"`
		}
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil || len(in.Calls) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"messages":[{"role":"tool","tool_call_id":%q,"content":"done"}]}`, in.Calls[0].ID)
	}))
	t.Cleanup(endpoint.Close)
	var offered []any
	for i := range tools {
		offered = append(offered, map[string]any{"type": "function", "function": map[string]any{
			"name": toolName(i), "description": fmt.Sprintf("Does number %d of what a server of this kind offers, and says how it went.", i),
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string", "description": "what is said"}, "amount": map[string]any{"type": "integer"}}, "required": []string{"text"}},
		}})
	}
	all := map[string]any{}
	for i := range n {
		all[serverName(i)] = map[string]any{"tool_endpoint": map[string]any{"url": endpoint.URL, "tools": offered}, "pin": "warn"}
	}
	all[calculator] = map[string]any{"builtin": "calculator"}
	body, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcp.json")
	write(t, path, string(body))
	return path
}

// makeCalls runs the calls, most of them at the calculator. One of 50 returns
// an error, and one of 100 is refused.
func (c *crowded) makeCalls(t testing.TB) {
	t.Helper()
	wide := newParallelClient(t)
	l := runCalls(32, c.size.calls, func(n int) error {
		server, tool, arguments, want := calculator, "evaluate", `{"expression":"1+1"}`, http.StatusOK
		switch {
		case n%100 == 0:
			arguments, want = `{"wrong":1}`, http.StatusUnprocessableEntity
		case n%50 == 0:
			arguments = `{"expression":"1/0"}`
		case n%20 == 1:
			server, tool, arguments = serverName(n%c.size.servers), toolName(n%9), `{"text":"hello"}`
		}
		a, err := send(wide, c.url, "POST", toolPath(server, tool), arguments)
		if err == nil && a.status != want {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		return err
	})
	l.none(t, "the calls that fill the log")
	var page struct {
		Calls []struct{ ID string } `json:"calls"`
	}
	c.read(t, "/calls?limit=10", &page)
	if len(page.Calls) == 0 {
		t.Fatal("no call is recorded")
	}
	c.call = page.Calls[0].ID
}

// mostHeld limits the number of held calls: a caller may have 2,500.
const mostHeld = 2400

// hold makes calls that need an approval, and cancels the excess.
func (c *crowded) hold(t testing.TB) {
	t.Helper()
	wide := newParallelClient(t)
	l := runCalls(32, c.size.approvals, func(n int) error {
		a, err := send(wide, c.url, "POST", toolPath(serverName(n%c.size.servers), toolName(9)), fmt.Sprintf(`{"text":"pay","amount":%d}`, n))
		if err == nil && a.status != http.StatusAccepted {
			err = fmt.Errorf("%d %s", a.status, a.body)
		}
		if id := a.header.Get("Callyard-Call-Id"); err == nil && n > mostHeld {
			if a, err = send(wide, c.url, "POST", "/calls/"+id+"/cancel", ""); err == nil && a.status != http.StatusOK {
				err = fmt.Errorf("canceling %s: %d %s", id, a.status, a.body)
			}
		}
		return err
	})
	l.none(t, "the calls that are held")
	c.eventually(t, startWithin, "an approval on the page", func() error {
		a, err := send(c.http, c.pages, "GET", "/", "")
		if err != nil {
			return err
		}
		found := regexp.MustCompile(`/a/(\w+)`).FindSubmatch(a.body)
		if found == nil {
			return fmt.Errorf("%d %.500s", a.status, a.body)
		}
		c.approval = string(found[1])
		ids := url.Values{}
		for _, one := range regexp.MustCompile(`/a/(\w+)`).FindAllSubmatch(a.body, 50) {
			ids.Add("id", string(one[1]))
		}
		c.review = "/review?" + ids.Encode()
		return nil
	})
}

// address is a page to look at.
type address struct{ name, path string }

// addresses are the pages of the console and of the approver.
func (c *crowded) addresses() []address {
	q := url.QueryEscape
	one := serverName(c.size.servers - 1)
	return []address{
		{"overview", "/console"}, {"servers", "/console/servers"}, {"servers, searched", "/console/servers?q=" + one}, {"server", "/console/server?id=" + one}, {"server without a pin", "/console/server?id=" + calculator},
		{"fleet", "/console/fleet"}, {"tools", "/console/tools"}, {"tools, last page", "/console/tools?cursor=" + q(base64.RawURLEncoding.EncodeToString([]byte(serverName(c.size.servers-3)+"\x00"+toolName(0))))}, {"tools, searched", "/console/tools?q=what+is+said"}, {"tools of a server", "/console/tools?server=" + one},
		{"tool", "/console/tool?server=" + one + "&tool=tool-3"}, {"calls", "/console/calls"}, {"calls of a server", "/console/calls?server=" + one}, {"calls that failed", "/console/calls?state=failed"},
		{"calls running", "/console/calls?state=running"}, {"call", "/console/call?id=" + q(c.call)}, {"batches", "/console/batches"}, {"batch", "/console/batch?id=" + q(c.batch)},
		{"policy", "/console/policy?tools=" + q(one+"/tool-1 "+one+"/tool-9")}, {"sets", "/console/sets"}, {"keys", "/console/keys"}, {"tenants", "/console/tenants"}, {"tenant", "/console/tenant?id=team-7"}, {"audit", "/console/audit"}, {"state", "/console/state"},
		{"approvals", "/"}, {"history", "/history"}, {"history, pending", "/history?state=pending"}, {"approval", "/a/" + c.approval}, {"permissions", "/permissions"}, {"review", c.review},
	}
}
