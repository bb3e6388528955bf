package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

const inSearch = "?mode=search"

func TestASearchMountListsThreeToolsForFewTokens(t *testing.T) {
	f := openFabric(t, nil)
	for _, mount := range []string{"/mcp", "/mcp/demo"} {
		list := f.ask(mount+inSearch, "tools/list", "", "").result(t)
		if n := strings.Count(list, `"inputSchema"`); n != 3 {
			t.Errorf("%s: %d tools: %s", mount, n, list)
		}
		if n := format.Tokens([]byte(list)) + format.Tokens([]byte(searchInstructions)); n > 1500 {
			t.Errorf("%s: the mount costs %d tokens", mount, n)
		} else {
			t.Logf("%s: %d tokens", mount, n)
		}
	}
	if a := f.ask("/mcp?mode=other", "tools/list", "", ""); a.status != 400 {
		t.Errorf("an unknown mode: %d %s", a.status, a.body)
	}
	if list := f.ask("/mcp", "tools/list", "", "").result(t); strings.Contains(list, `"find_tools"`) {
		t.Error("the ordinary mount lists the tools of the mode")
	}
	client := f.enter("/mcp"+inSearch, `{}`)
	if e := client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); e.status != 200 || !strings.Contains(string(e.body), "call_tool") {
		t.Errorf("%d %s", e.status, e.body)
	}
}

func TestSearchMountFindsDescribesAndCallsTools(t *testing.T) {
	f := openFabric(t, nil)
	for mount, name := range map[string]string{"/mcp": "demo__echo", "/mcp/demo": "echo"} {
		found := f.call(mount+inSearch, "find_tools", `{"query":"echo","limit":2.0}`).result(t)
		if !strings.Contains(found, "- "+name+"(") {
			t.Errorf("%s: %s", mount, found)
		}
		if got := f.call(mount+inSearch, "find_tools", `{"query":"translate a poem into klingon"}`).result(t); !strings.Contains(got, "No tool fits") || !strings.Contains(got, "klingon") {
			t.Errorf("%s: %s", mount, got)
		}
		about := f.call(mount+inSearch, "describe_tools", fmt.Sprintf(`{"names":[%q,"none"]}`, name)).result(t)
		if !strings.Contains(about, `\"name\":\"`+name+`\"`) || !strings.Contains(about, "inputSchema") || !strings.Contains(about, "no tools none") {
			t.Errorf("%s: %s", mount, about)
		}
		ran := f.call(mount+inSearch, "call_tool", fmt.Sprintf(`{"name":%q,"arguments":{"a":1.0,"b":12345678901234567890}}`, name)).result(t)
		got := f.Worker.Last()
		if got.Server != "demo" || got.Tool != "echo" || !strings.Contains(ran, `"got":{"a":1.0,"b":12345678901234567890}`) {
			t.Errorf("%s: %s of %s was called: %s", mount, got.Tool, got.Server, ran)
		}
	}
	for _, c := range [][2]string{
		{"find_tools", `{}`}, {"describe_tools", `{"names":[]}`}, {"call_tool", `{"name":"none"}`},
		// Models often write arguments as text or next to the name. They can correct a result, but not a
		// protocol error.
		{"call_tool", `{"name":"demo__echo","arguments":"{\"a\":1}"}`}, {"call_tool", `{"name":"demo__echo","a":1}`},
	} {
		if got := f.call("/mcp"+inSearch, c[0], c[1]).result(t); !strings.Contains(got, `"isError":true`) {
			t.Errorf("%s with %s: %s", c[0], c[1], got)
		}
	}
}

func TestFindToolsReturnsNamesThatCanBeCalled(t *testing.T) {
	f := openFabric(t, nil)
	long := strings.Repeat("klingon_", 15)
	f.define("demo", schema.Definitions{Tools: frontdoortest.Tools(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, long))})
	for _, mount := range []string{"/mcp", "/mcp/demo"} {
		name := long
		if mount == "/mcp" {
			name = format.MCPName("demo", long)
		}
		f.WaitFor("the tool", func() bool {
			return strings.Contains(f.call(mount+inSearch, "find_tools", `{"query":"klingon"}`).result(t), "- "+name+"(")
		})
	}
}

func TestASearchMountReportsNoChangesOfItsThreeTools(t *testing.T) {
	f := openFabric(t, nil)
	f.share(f.endpoint, "first")
	g := f.another()
	s := f.enter("/mcp/demo"+inSearch, `{}`)
	here, _ := s.stream(t)
	moved, _ := (&legacyClient{g, s.path, s.id}).stream(t) // another front door does not know which lists the client has read
	for _, want := range []string{mcpwire.NotifyResourcesChanged, mcpwire.NotifyPromptsChanged} {
		if got := moved(); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	defs := withTool("new")
	defs.Prompts = nil
	f.define("demo", defs)
	for _, next := range []func() string{here, moved} {
		if got := next(); !strings.Contains(got, mcpwire.NotifyPromptsChanged) {
			t.Errorf("%s", got)
		}
	}
}

// A tool called through call_tool is held, disabled and approved as if it had been called directly.
func TestCallToolIsJudgedLikeADirectCall(t *testing.T) {
	f := openFabric(t, nil)
	before := f.Worker.Count()
	arguments := `{"name":"echo","arguments":{"a":1.0}}`
	held := f.callAs(canForms, "/mcp/risky"+inSearch, "call_tool", arguments, "").result(t)
	state := getString([]byte(held), "requestState")
	if !strings.Contains(held, "elicitation/create") || state == "" || f.Worker.Count() != before {
		t.Fatalf("%d calls ran; %s", f.Worker.Count()-before, held)
	}
	// The approval is for the real call: other arguments are refused, and both ways of calling the
	// same tool use it up.
	again := fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, approve, state)
	if a := f.callAs(canForms, "/mcp/risky"+inSearch, "call_tool", `{"name":"echo","arguments":{"a":2}}`, again); a.fault(t).Code == 0 || f.Worker.Count() != before {
		t.Errorf("other arguments ran: %s", a.body)
	}
	if got := f.callAs(canForms, "/mcp/risky"+inSearch, "call_tool", arguments, again).result(t); !strings.Contains(got, `"got":{"a":1.0}`) {
		t.Errorf("%s", got)
	}
	if n := f.Worker.Count() - before; n != 1 {
		t.Errorf("it ran %d times", n)
	}
	if got := f.call("/mcp/risky"+inSearch, "find_tools", `{"query":"echo"}`).result(t); !strings.Contains(got, "medium risk") {
		t.Errorf("the risk is not shown: %s", got)
	}
	cat := f.endpoint.o.Catalog
	if _, err := cat.Switch(t.Context(), "demo", "echo", false, "closed", "ops"); err != nil {
		t.Fatal(err)
	}
	if got := f.call("/mcp/demo"+inSearch, "call_tool", arguments).result(t); !strings.Contains(got, "is disabled: closed") {
		t.Errorf("%s", got)
	}
	if got := f.call("/mcp/demo"+inSearch, "find_tools", `{"query":"echo"}`).result(t); strings.Contains(got, "- echo(") {
		t.Errorf("a disabled tool is found: %s", got)
	}
	if got := f.call("/mcp/demo"+inSearch, "describe_tools", `{"names":["echo"]}`).result(t); !strings.Contains(got, "no tools echo") {
		t.Errorf("a disabled tool is described: %s", got)
	}
}
