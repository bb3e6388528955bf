package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// mirrorVariable makes this binary an MCP server that returns the exact bytes of
// the calls that it receives.
const mirrorVariable = "CALLYARD_MCPTEST_MIRROR"

// The two protocol versions of MCP that a mirror supports.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// mirrored returns the entry of a mirror with the protocol version.
func mirrored(revision string) entry {
	return entry{Command: programs.self, Env: map[string]string{mirrorVariable: revision, "GORACE": "atexit_sleep_ms=0"}}
}

// mirror serves until in ends: it answers every call with the line that carried
// it. It uses no MCP library, because that would decode the line.
func mirror(in io.Reader, out io.Writer) int {
	isModern := os.Getenv(mirrorVariable) == modern
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID == nil {
			continue
		}
		stamp := ""
		if isModern {
			stamp = `"resultType":"complete","ttlMs":0,"cacheScope":"public",`
		}
		body := ""
		switch {
		case m.Method == "initialize" && !isModern:
			body = `{"protocolVersion":"` + legacy + `","capabilities":{"tools":{}},"serverInfo":{"name":"mirror","version":"1"}}`
		case m.Method == "server/discover" && isModern:
			body = `{` + stamp + `"supportedVersions":["` + modern + `"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mirror","version":"1"}}}`
		case m.Method == "tools/list":
			body = `{` + stamp + `"tools":[{"name":"show","inputSchema":{"type":"object"}}]}`
		case m.Method == "tools/call":
			shown, err := json.Marshal(string(bytes.TrimSpace(line)))
			if err != nil {
				return fault(err)
			}
			body = `{` + stamp + `"content":[{"type":"text","text":` + string(shown) + `}]}`
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, body)
		if body == "" {
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}
		if _, err := io.WriteString(out, answer+"\n"); err != nil {
			return fault(err)
		}
	}
}

// direct is a server that a test uses without Callyard, to see its original
// responses.
type direct struct {
	t     testing.TB
	in    io.Writer
	out   *bufio.Reader
	meta  string // of each request, for the modern protocol version
	count int
}

// connect starts the server of the entry and initializes it with the protocol version.
func connect(t testing.TB, e entry, revision string) *direct {
	t.Helper()
	cmd := exec.Command(e.Command, e.Args...)
	cmd.Env = cleanEnviron()
	for name, value := range e.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = endsWithUs()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // all responses have been read
		_ = cmd.Wait()
	})
	d := &direct{t: t, in: in, out: bufio.NewReader(out)}
	if revision == modern {
		d.meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientCapabilities":{}}`
		return d
	}
	d.ask("initialize", `"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}`)
	d.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return d
}

func (d *direct) say(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// ask sends a request with the members of its params and returns the raw result.
func (d *direct) ask(method, params string) json.RawMessage {
	d.t.Helper()
	d.count++
	if d.meta != "" {
		if params != "" {
			params += ","
		}
		params += d.meta
	}
	d.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, d.count, method, params))
	for {
		line, err := d.out.ReadBytes('\n')
		if err != nil {
			d.t.Fatalf("asking for %s directly: %v", method, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		decode(d.t, line, &m)
		if m.ID == nil || *m.ID != d.count {
			continue
		}
		if m.Error != nil {
			d.t.Fatalf("asking for %s directly: %s", method, m.Error)
		}
		return m.Result
	}
}

// list returns the items of a list, each as its bytes.
func (d *direct) list(method, key string) []json.RawMessage {
	d.t.Helper()
	var all []json.RawMessage
	for cursor := ""; ; {
		params := ""
		if cursor != "" {
			params = fmt.Sprintf(`"cursor":%q`, cursor)
		}
		var page map[string]json.RawMessage
		decode(d.t, d.ask(method, params), &page)
		var items []json.RawMessage
		decode(d.t, page[key], &items)
		all = append(all, items...)
		cursor = ""
		if next, ok := page["nextCursor"]; ok {
			decode(d.t, next, &cursor)
		}
		if cursor == "" {
			return all
		}
	}
}
