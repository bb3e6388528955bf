package e2e

import (
	"fmt"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

const secretValue = "hunter2-do-not-repeat"

func TestInvalidInputIsRefusedAndFrontDoorKeepsServing(t *testing.T) {
	servers := map[string]entry{"good": scripted(mcptest.Echo), "dead": scripted(mcptest.Exit)}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, "good")
	up.eventually(t, soon, "knowing that a server is dead", func() error {
		if s := up.server(t, "dead"); s.State != "error" {
			return fmt.Errorf("its state is %q", s.State)
		}
		return nil
	})
	echo := toolPath("good", "echo")
	nested := func(depth int) string {
		return `{"text":"x","more":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		kind                     string
		pointer                  string // of the first fault, if there is one
	}{
		{name: "malformed", body: `{"text":`, status: 400, kind: "invalid-request"},
		{name: "text after the end", body: `{"text":"x"} {}`, status: 400, kind: "invalid-request"},
		{name: "a list", body: `["x"]`, status: 400, kind: "invalid-request"},
		{name: "a bare string", body: `"x"`, status: 400, kind: "invalid-request"},
		{name: "null", body: `null`, status: 400, kind: "invalid-request"},
		{name: "duplicate keys", body: `{"text":"x","text":"` + secretValue + `"}`, status: 400, kind: "invalid-request"},
		{name: "duplicate keys, one escaped", body: `{"text":"x","\u0074ext":"y"}`, status: 400, kind: "invalid-request"},
		{name: "duplicate keys inside", body: `{"text":"x","more":{"a":1,"a":2}}`, status: 400, kind: "invalid-request"},
		{name: "invalid UTF-8", body: "{\"text\":\"\xff\"}", status: 400, kind: "invalid-request"},
		{name: "half a surrogate pair", body: `{"text":"\ud800"}`, status: 400, kind: "invalid-request"},
		{name: "too deep", body: nested(65), status: 400, kind: "invalid-request"},
		{name: "far too deep", body: nested(100_000), status: 400, kind: "invalid-request"},
		{name: "a wrong type", body: `{"text":7}`, status: 422, kind: "invalid-arguments", pointer: "/text"},
		{name: "a wrong type with a secret", body: `{"text":["` + secretValue + `"]}`, status: 422, kind: "invalid-arguments", pointer: "/text"},
		{name: "a missing argument", body: `{}`, status: 422, kind: "invalid-arguments", pointer: ""},
		{name: "no body at all", body: ``, status: 422, kind: "invalid-arguments", pointer: ""},
		{name: "too large", body: `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, status: 413, kind: "too-large"},
		{name: "not JSON by its type", body: `text=x`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415, kind: "unsupported-media-type"},
		{name: "an unknown server", path: toolPath("nobody", "echo"), body: `{}`, status: 404, kind: "not-found"},
		{name: "an unknown tool", path: toolPath("good", "nothing"), body: `{}`, status: 404, kind: "not-found"},
		{name: "a tool name with a slash", path: toolPath("good", "a/b"), body: `{}`, status: 404, kind: "not-found"},
		{name: "a server without a worker", path: toolPath("dead", "echo"), body: `{}`, status: 503, kind: "unavailable"},
		{name: "an unknown path", path: "/nothing", body: `{}`, status: 404, kind: "not-found"},
		{name: "a wrong method", method: "DELETE", path: echo, status: 405, kind: "method-not-allowed"},
		{name: "an unknown query parameter", path: echo + "?verbose=1", body: `{"text":"x"}`, status: 400, kind: "invalid-request"},
		{name: "a timeout that is not a number", path: echo + "?timeout_ms=soon", body: `{"text":"x"}`, status: 400, kind: "invalid-request"},
		{name: "a timeout over the limit", body: `{"text":"x"}`, headers: []string{"Callyard-Timeout-Ms: 99999999999"}, status: 400, kind: "invalid-request"},
		{name: "calls: a missing member", path: "/calls", body: `{"tool":"echo"}`, status: 400, kind: "invalid-request", pointer: "/server"},
		{name: "calls: an unknown member", path: "/calls", body: `{"server":"good","tool":"echo","arguments":{"text":"x"},"args":{}}`, status: 400, kind: "invalid-request", pointer: "/args"},
		{name: "calls: a member in other case", path: "/calls", body: `{"Server":"good","tool":"echo"}`, status: 400, kind: "invalid-request", pointer: "/Server"},
		{name: "calls: arguments that are no object", path: "/calls", body: `{"server":"good","tool":"echo","arguments":[]}`, status: 400, kind: "invalid-request"},
		{name: "calls: a wrong type", path: "/calls", body: `{"server":7,"tool":"echo"}`, status: 400, kind: "invalid-request", pointer: "/server"},
		{name: "a switch without enabled", method: "PATCH", body: `{"reason":"x"}`, status: 400, kind: "invalid-request", pointer: "/enabled"},
		{name: "a prompt with a number", path: "/servers/good/prompts/greet", body: `{"name":7}`, status: 422, kind: "invalid-arguments", pointer: "/name"},
		{name: "a page of another front door", method: "GET", path: "/tools?cursor=!", status: 400, kind: "invalid-request"},
		{name: "a page without an end", method: "GET", path: "/tools?limit=100000", status: 400, kind: "invalid-request"},
		{name: "a web page of another origin", body: `{"text":"x"}`, headers: []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}, status: 403, kind: "forbidden"},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path := c.method, c.path
			if method == "" {
				method = "POST"
			}
			if path == "" {
				path = echo
			}
			a := up.ask(t, method, path, c.body, c.headers...)
			p := a.problem(t, c.status, c.kind)
			if strings.Contains(string(a.body), secretValue) {
				t.Errorf("the problem repeats what was sent: %s", a.body)
			}
			if c.kind == "invalid-arguments" || c.pointer != "" {
				if len(p.Errors) == 0 || p.Errors[0].Pointer == nil || *p.Errors[0].Pointer != c.pointer {
					t.Errorf("the fault is to be at %q: %s", c.pointer, a.body)
				}
			}
			if c.status == 405 && a.header.Get("Allow") == "" {
				t.Error("a 405 without Allow")
			}
			if err := up.echo("good", "after "+c.name); err != nil {
				t.Errorf("the next call fails: %v", err)
			}
		})
	}
	if err := up.echo("good", strings.Repeat("y", 900<<10)); err != nil {
		t.Errorf("arguments just under the limit: %.300v", err)
	}
	if a := up.ask(t, "POST", echo, nested(64)); a.status != 200 {
		t.Errorf("arguments just under the limit of depth: %d %s", a.status, a.body)
	}
	said := up.out.String()
	if strings.Contains(said, secretValue) || strings.Contains(said, "panic") {
		t.Errorf("the log holds arguments or a panic: %s", said)
	}
}

func TestARefusalKeepsTheConnection(t *testing.T) {
	up := startUp(t, setup{env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	if reused := up.reuses(t, toolPath("demo", "echo"), `{"message":"first"}`); reused {
		t.Error("a first connection cannot have been used before")
	}
	for _, body := range []string{`{"message":`, `{"message":1}`, `{"message":"good"}`} {
		if !up.reuses(t, toolPath("demo", "echo"), body) {
			t.Errorf("the request before %s lost its connection", body)
		}
	}
}

// reuses posts body over a connection of the pool and reports whether that connection had
// carried a request before.
func (d *door) reuses(t testing.TB, path, body string) (reused bool) {
	t.Helper()
	if d.only == nil {
		d.only = client(t)
	}
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }}
	if _, err := sendTraced(trace, d.only, d.url, "POST", path, body); err != nil {
		t.Fatal(err)
	}
	return reused
}

func TestToolProtocolErrorsAreNotResults(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{
		"old": scripted(mcptest.Echo), "new": scripted(mcptest.Echo, mcptest.Modern()),
	}), env: []string{quickStop}})
	up.waitServers(t, 1, "old", "new")
	for _, server := range []string{"old", "new"} {
		if got := string(up.call(t, server, "fail", `{}`)); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, mcptest.FailText) {
			t.Errorf("a tool's own error is a result: %s", got)
		}
		p := up.ask(t, "POST", toolPath(server, "refuse"), `{}`).problem(t, 502, "tool-protocol-error")
		if p.RPC == nil || p.RPC.Code != mcptest.RefuseCode || string(p.RPC.Data) != `{"big":9007199254740993,"a":1.0}` {
			t.Errorf("the JSON-RPC error is lost: %+v", p)
		}
	}
	up.ask(t, "POST", toolPath("new", "ask"), `{}`).problem(t, 409, "input-required")
}
