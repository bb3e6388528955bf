package mcp

import (
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
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
		// Programs that write out what they do not set send null.
		f.ask("/mcp", method, "", `"cursor":null`).result(t)
	}
	if a := f.ask("/mcp?mode=search", "tools/list", "", `"cursor":5`); a.fault(t).Code != mcpwire.CodeInvalidParams {
		t.Errorf("search: %s", a.body)
	}
}
