package mcp

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

func TestACursorThatIsNoStringIsInvalid(t *testing.T) {
	f := openFabric(t, nil)
	s := f.enter("/mcp", `{}`)
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		for _, cursor := range []string{`5`, `{}`, `["x"]`, `true`, `"made up"`} {
			members := `"cursor":` + cursor
			if a := f.ask("/mcp", method, "", members); a.status != 400 || a.fault(t).Code != mcpwire.CodeInvalidParams {
				t.Errorf("modern %s %s: %d %s", method, cursor, a.status, a.body)
			}
			if a := s.send(`{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":{` + members + `}}`); a.fault(t).Code != mcpwire.CodeInvalidParams {
				t.Errorf("legacy %s %s: %s", method, cursor, a.body)
			}
		}
		// Programs that encode unset members send null.
		f.ask("/mcp", method, "", `"cursor":null`).result(t)
	}
	if a := f.ask("/mcp?mode=search", "tools/list", "", `"cursor":5`); a.fault(t).Code != mcpwire.CodeInvalidParams {
		t.Errorf("search: %s", a.body)
	}
}

// A client can distinguish an outdated cursor, after which it must read the list again, from one
// that does not belong to the list.
func TestOutdatedAndInvalidCursorsAreDistinguished(t *testing.T) {
	f := openFabric(t, nil)
	manyOf := func(last string) schema.Definitions {
		var defs schema.Definitions
		for i := range pageSize - 1 {
			defs.Tools = append(defs.Tools, raw(fmt.Sprintf(`{"name":"tool_%04d","inputSchema":{"type":"object"}}`, i)))
			defs.Prompts = append(defs.Prompts, raw(fmt.Sprintf(`{"name":"tool_%04d"}`, i)))
		}
		for _, name := range []string{last, "zzz"} {
			defs.Tools = append(defs.Tools, raw(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)))
			defs.Prompts = append(defs.Prompts, raw(fmt.Sprintf(`{"name":%q}`, name)))
		}
		return defs
	}
	f.define("many", manyOf("last"))
	f.define("other", manyOf("last"))
	f.WaitFor("all tools", func() bool { return len(f.endpoint.lists.view(place{}).toolOf) > 2*pageSize })
	next := func(path, method string) string {
		t.Helper()
		cursor := getString([]byte(f.ask(path, method, "", "").result(t)), "nextCursor")
		if cursor == "" {
			t.Fatalf("%s has one page", method)
		}
		return cursor
	}
	cursor := next("/mcp/many", "tools/list")
	if got := f.ask("/mcp/many", "tools/list", "", `"cursor":"`+cursor+`"`).result(t); !strings.Contains(got, `"zzz"`) {
		t.Error(got)
	}
	told := func(cursor, want string) {
		t.Helper()
		a := f.ask("/mcp/many", "tools/list", "", fmt.Sprintf(`"cursor":%q`, cursor))
		if e := a.fault(t); a.status != 400 || e.Code != mcpwire.CodeInvalidParams || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %d %s", cursor, a.status, a.body)
		}
	}
	const invalid, outdated = "is not a nextCursor of this list", "the list changed"
	for _, foreign := range []string{
		"made up", "bm8", cursor + "A", cursor[:len(cursor)-2], base64.RawURLEncoding.EncodeToString([]byte("last")),
		next("/mcp/other", "tools/list"), next("/mcp/many", "prompts/list"), next("/mcp", "tools/list"),
	} {
		told(foreign, invalid)
	}
	f.define("many", manyOf("newer"))
	f.WaitFor("the change", func() bool { return next("/mcp/many", "tools/list") != cursor })
	told(cursor, outdated)
	told("made up", invalid)
}
