package format

import (
	"regexp"
	"strings"
	"testing"
)

var mcpName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func TestNamesInMCPAreLegalStableAndDistinct(t *testing.T) {
	seen := make(map[string][2]string)
	parts := []string{"a", "a_", "_a", "a__b", "b", "_", "__", "wärme", "two words", "", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("y", 500), "a.b", "a/b", "-"}
	for _, server := range parts {
		for _, tool := range parts {
			name := MCPName(server, tool)
			if !mcpName.MatchString(name) {
				t.Errorf("%q of %q is %q", tool, server, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("%q stands for %v and for %q of %q", name, other, tool, server)
			}
			seen[name] = [2]string{server, tool}
			if name != MCPName(server, tool) {
				t.Errorf("%q changes", name)
			}
		}
	}
	if got := MCPName("files", "read_text"); got != "files__read_text" {
		t.Error(got)
	}
}

func FuzzMCPName(f *testing.F) {
	f.Add("a", "b")
	f.Add("a_", "_b")
	f.Fuzz(func(t *testing.T, server, tool string) {
		for _, name := range []string{MCPName(server, tool), MarkedMCPName(server, tool), MCPNameAs(tool, server, tool)} {
			if !mcpName.MatchString(name) {
				t.Errorf("%q", name)
			}
		}
	})
}
