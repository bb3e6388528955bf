package mcp

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/toolset"
)

func TestSetHasItsOwnEndpoint(t *testing.T) {
	f := openFabric(t, nil)
	cat := f.endpoint.o.Catalog
	if err := cat.Sets().Configure([]toolset.Set{
		{Name: "mine", Include: []toolset.Selector{{Server: "two words", Tool: "echo"}, {Server: "demo", Tool: "fail"}}, Names: &toolset.Naming{Prefix: new("")}},
	}); err != nil {
		t.Fatal(err)
	}
	list := f.ask("/mcp/@mine", "tools/list", "", "").result(t)
	echo, fail := strings.Index(list, `"name":"echo"`), strings.Index(list, `"name":"fail"`)
	if echo < 0 || fail < echo || strings.Count(list, `"inputSchema"`) != 2 {
		t.Errorf("%s", list)
	}
	f.call("/mcp/@mine", "echo", `{}`).result(t)
	if got := f.Worker.Last(); got.Server != "two words" || got.Tool != "echo" {
		t.Errorf("%s of %s was called", got.Tool, got.Server)
	}
	if e := f.call("/mcp/@mine", "demo__echo", `{}`).fault(t); !strings.Contains(e.Message, "Unknown tool") {
		t.Errorf("a tool outside of the set: %+v", e)
	}
	if _, _, err := cat.Switches().Many(t.Context(), "", "", "mine", false, "closed", "ops"); err != nil {
		t.Fatal(err)
	}
	f.WaitFor("the list without disabled tools", func() bool {
		return !strings.Contains(f.ask("/mcp/@mine", "tools/list", "", "").result(t), `"name"`)
	})
	if got := f.call("/mcp/@mine", "echo", `{}`).result(t); !strings.Contains(got, "is disabled: closed") {
		t.Errorf("%s", got)
	}
	for _, method := range []string{"resources/list", "prompts/list"} {
		if got := f.ask("/mcp/@mine", method, "", "").result(t); !strings.Contains(got, `:[]`) {
			t.Errorf("%s: %s", method, got)
		}
	}
	if e := f.ask("/mcp/@mine", "resources/read", "demo://a", `"uri":"callyard:demo:demo://a"`).fault(t); e.Code == 0 {
		t.Errorf("%+v", e)
	}
	if got := f.ask("/mcp/@none", "tools/list", "", ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if e := f.enter("/mcp/@mine", `{}`).send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); e.status != 200 {
		t.Errorf("%d %s", e.status, e.body)
	}
}
