package frontdoor_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/risk"
)

// places are the requests whose answers contain tools.
var places = []struct{ method, path, body string }{
	{"GET", "/tools", ""}, {"GET", "/tools?format=openai", ""}, {"GET", "/tools?format=anthropic&defer_loading=true", ""}, {"GET", "/tools?query=write", ""}, {"GET", "/tools/search?q=write", ""},
	{"GET", "/servers/s/tools", ""}, {"GET", "/servers/s/openapi.json", ""}, {"GET", "/sets/both", ""}, {"GET", "/sets/both/openapi.json", ""}, {"GET", "/tools?set=both", ""},
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`}, {"POST", "/mcp/s", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`}, {"POST", "/mcp/@both", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`},
	{"POST", "/mcp?mode=search", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"tool to do this"}}}`},
	{"POST", "/mcp?mode=search", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"describe_tools","arguments":{"names":["s__read","s__write"]}}}`},
}

// ask sends one of the places, in a new session if one is required.
func (d *door) ask(key, method, path, body string) (int, string) {
	d.t.Helper()
	header := []string{"Accept", "application/json, text/event-stream"}
	if strings.HasPrefix(path, "/mcp") {
		_, h, _ := d.with(key, "POST", path, initialize, header...)
		header = append(header, "Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	}
	status, _, answer := d.with(key, method, path, body, header...)
	return status, answer
}

func TestToolsThatAPrincipalMayNotCallAreHidden(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	policy, err := risk.Parse([]byte(`rules:
  - name: writers
    match: {tool: write}
    when: '!("writers" in principal.groups)'
    deny: Only writers write.
  - name: by argument
    match: {tool: fail}
    when: 'has(args.path)'
    deny: Not with a path.
`), "policy")
	if err != nil {
		t.Fatal(err)
	}
	everything, hash := authn.Generate()
	holder := risk.NewHolder(policy)
	d := openDoor(t, srv, frontdoor.Options{Policy: holder, Config: settings.FrontDoor{
		Keys: []authn.Key{{Name: "writer", Groups: []string{"writers"}, Hash: hash}},
		Sets: []toolset.Set{{Name: "both", Include: []toolset.Selector{{Tool: "read"}, {Tool: "write"}}}, {Name: "reads", Include: []toolset.Selector{{Tool: "read"}}}, {Name: "writes", Include: []toolset.Selector{{Tool: "write"}}}},
	}})
	denied := d.newKey(d.key, `{"name":"denied","scopes":["tools:read","tools:call"]}`).Secret
	keys := map[string]string{"the policy": denied}
	for name, wish := range map[string]string{"patterns": `"scopes":["tools:read","tools:call"],"tools":["s/re*"]`, "a set": `"scopes":["tools:read","tools:call:@reads"]`, "reading patterns": `"scopes":["tools:read"],"tools":["s/read"]`} {
		keys[name] = d.newKey(everything, fmt.Sprintf(`{"name":%q,"groups":["writers"],%s}`, name, wish)).Secret
	}
	for _, p := range places {
		if status, answer := d.ask(everything, p.method, p.path, p.body); status != 200 || !strings.Contains(answer, "write") && !strings.Contains(p.body, "find_tools") {
			t.Errorf("%s %s shows the tool to nobody: %d %s", p.method, p.path, status, answer)
		}
		for name, key := range keys {
			status, answer := d.ask(key, p.method, p.path, p.body)
			if strings.Contains(p.path, "mode=search") && name == "reading patterns" {
				continue // the key may not call anything, including these tools
			}
			for _, told := range []string{"There are no tools s__write.", `"unmatched":["write"]`} { // repeated from the request
				answer = strings.Replace(answer, told, "", 1)
			}
			if status != 200 || strings.Contains(answer, "write") {
				t.Errorf("%s: %s %s: %d %s", name, p.method, p.path, status, answer)
			}
		}
	}
	// A rule that depends on arguments hides nothing.
	if _, answer := d.ask(denied, "GET", "/servers/s/tools", ""); !strings.Contains(answer, `"fail"`) || !strings.Contains(answer, `"read"`) {
		t.Errorf("%s", answer)
	}
	// A set without visible tools does not exist for the caller.
	if _, answer := d.ask(denied, "GET", "/sets", ""); strings.Contains(answer, "writes") || !strings.Contains(answer, "reads") {
		t.Errorf("%s", answer)
	}
	// Tools hidden only by the policy are visible to operators, but not to their models. A call of such
	// a tool returns the reason.
	for _, p := range []struct {
		method, path, body, want string
		shown                    bool
	}{
		{"GET", "/tools", "", `"write"`, true}, {"GET", "/servers/s/tools", "", `"write"`, true}, {"GET", "/sets", "", "writes", true},
		{"GET", "/tools?format=openai", "", "write", false}, {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "write", false},
	} {
		if status, answer := d.ask(d.key, p.method, p.path, p.body); status != 200 || strings.Contains(answer, p.want) != p.shown {
			t.Errorf("an operator: %s %s: %d %s", p.method, p.path, status, answer)
		}
	}
	for _, p := range []struct{ method, path, body string }{
		{"GET", "/preflight?tool=s/write", ""}, {"POST", "/tool-calls", `[{"type":"tool_use","id":"1","name":"s__write","input":{}}]`},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__write","arguments":{}}}`},
	} {
		if status, answer := d.ask(denied, p.method, p.path, p.body); status != 200 || !strings.Contains(answer, "Only writers write.") {
			t.Errorf("%s %s does not say why: %d %s", p.method, p.path, status, answer)
		}
		if _, answer := d.ask(keys["patterns"], p.method, p.path, p.body); strings.Contains(answer, "writers") {
			t.Errorf("%s %s tells of what the scopes leave out: %s", p.method, p.path, answer)
		}
	}
	// A new policy is effective at once.
	holder.Replace(risk.Default())
	if _, answer := d.ask(denied, "GET", "/servers/s/tools", ""); !strings.Contains(answer, `"write"`) {
		t.Errorf("%s", answer)
	}
}

func TestHiddenToolsAreAnsweredLikeUnknownOnes(t *testing.T) {
	srv := bustest.Start(t)
	t.Cleanup(startCountingWorker(t, srv).let)
	d := openDoor(t, srv, frontdoor.Options{Config: settings.FrontDoor{Sets: []toolset.Set{{Name: "both", Include: []toolset.Selector{{Tool: "read"}, {Tool: "write"}}}}}})
	other := d.newKey(d.key, `{"name":"other","scopes":["tools:read","tools:call:elsewhere"]}`).Secret
	for _, path := range []string{"/servers/%s", "/servers/%s/tools", "/servers/%s/openapi.json", "/servers/%s/prompts", "/servers/%s/resources", "/servers/%s/resource-templates", "/servers/%s/pins", "/tools?server=%s", "/tools?format=openai&server=%s", "/tools/search?q=read&server=%s", "/preflight?tool=%s/read"} {
		hidden, _, a := d.with(other, "GET", fmt.Sprintf(path, "s"), "")
		unknown, _, b := d.with(other, "GET", fmt.Sprintf(path, "x"), "")
		a, b = normal(a, "s"), normal(b, "x")
		if hidden != unknown || a != b || hidden != http.StatusNotFound && !strings.HasPrefix(path, "/preflight") {
			t.Errorf("%s: %d %s, and of an unknown one %d %s", path, hidden, a, unknown, b)
		}
	}
	for _, path := range []string{"/sets/%s", "/sets/%s/openapi.json", "/tools?set=%s", "/tools/search?q=read&set=%s"} {
		hidden, _, a := d.with(other, "GET", fmt.Sprintf(path, "both"), "")
		unknown, _, b := d.with(other, "GET", fmt.Sprintf(path, "none"), "")
		if hidden != unknown || normal(a, "both") != normal(b, "none") || hidden != http.StatusNotFound {
			t.Errorf("%s: %d %s, and of an unknown one %d %s", path, hidden, a, unknown, b)
		}
	}
	if status, _, a := d.with(other, "POST", "/servers/s/tools/read", "{}"); status != 403 {
		t.Errorf("%d %s", status, a)
	} else if status, _, b := d.with(other, "POST", "/servers/x/tools/read", "{}"); status != 403 {
		t.Errorf("%d %s", status, b)
	}
	for _, path := range []string{"/servers", "/workers", "/tools", "/sets", "/tools/switches"} {
		if status, _, answer := d.with(other, "GET", path, ""); status != 200 || strings.Contains(answer, `"s"`) || strings.Contains(answer, "both") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

// normal returns a problem without the requested name and the request ID.
func normal(answer, name string) string {
	for _, around := range []string{`"%s"`, `\"%s\"`, "/%s/", `/%s"`, "/%s ", "/%s?"} {
		answer = strings.ReplaceAll(answer, fmt.Sprintf(around, name), fmt.Sprintf(around, "NAME"))
	}
	if at := strings.Index(answer, "req_"); at >= 0 {
		end := at + strings.IndexByte(answer[at:], '"')
		answer = answer[:at] + answer[end:]
	}
	return answer
}
