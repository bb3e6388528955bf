package eval

import (
	"fmt"
	"strings"
	"testing"
)

func TestToolNamesAreMatchedInModelSpellings(t *testing.T) {
	tools := []Tool{{Name: "read_file", Server: "file-system"}, {Name: "search-web", Server: "tavily"}, {Name: "Überblick"}, {Name: "get_quote_tool", Server: "finance"}}
	n := NewNames(tools)
	for written, want := range map[string]string{
		"read_file": "read_file", "Read-File": "read_file", " read file ": "read_file", "read.file": "read_file",
		"Filesystem::read_file": "read_file", "functions.read_file": "read_file", "mcp__file-system__read_file": "read_file",
		"file-system__read_file": "read_file", "file_system__read_file": "read_file", "file-system/read_file": "read_file",
		"file-system.read_file": "read_file", "file-system:read_file": "read_file", "file-system_read_file": "read_file",
		"mcp_read_file": "read_file", "read_file_mcp": "read_file", "read_file_tool": "read_file", "functions.tavily__search_web": "search-web",
		"u\u0308berblick": "Überblick", "get_quote": "get_quote_tool",
		"write_file": "?write_file", "search": "?search", "": "?", "tavily::": "?tavily::", "::": "?::",
	} {
		if got := n.Key(written); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}

// alike are tools of the kind that benchmarks have: equal but for the server in their names.
var alike = []Tool{
	{Name: "playwright_navigate", Server: "playwright"}, {Name: "puppeteer_navigate", Server: "puppeteer"},
	{Name: "playwright_click", Server: "playwright"}, {Name: "puppeteer_click", Server: "puppeteer"},
	{Name: "tavily-search", Server: "tavily"}, {Name: "search", Server: "exa"},
	{Name: "Search", Server: "other"},
}

// merged returns the pairs of tools of the sample that normalization alone would make equal.
func merged(tools []Tool) (pairs [][2]string) {
	n := NewNames(tools)
	first := make(map[string]string, len(tools))
	for i := range tools {
		name := tools[i].Name
		form := n.steps(name)[nameSteps-1]
		if other, ok := first[form]; ok && other != name {
			pairs = append(pairs, [2]string{other, name})
		} else if !ok {
			first[form] = name
		}
	}
	return pairs
}

func TestNormalisationMakesNoTwoToolsEqual(t *testing.T) {
	if pairs := merged(alike); len(pairs) != 4 {
		t.Errorf("without the guard %v would be equal; the test needs 4 pairs", pairs)
	}
	n, seen := NewNames(alike), map[string]string{}
	for _, tool := range alike {
		key := n.Key(tool.Name)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are equal", other, tool.Name)
		}
		seen[key] = tool.Name
	}
	for written, want := range map[string]string{
		"playwright_navigate": "playwright_navigate", "Playwright-Navigate": "playwright_navigate", "functions.puppeteer_click": "puppeteer_click",
		"tavily_search": "tavily-search", "search": "search", "Search": "Search",
		"navigate": "?navigate", // it could be either
		"SEARCH":   "?search",
	} {
		if got := n.Key(written); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}

func FuzzEveryToolKeepsItsName(f *testing.F) {
	f.Add("playwright", "playwright_click", "puppeteer", "puppeteer_click", "click")
	f.Add("a", "a_b", "b", "b", "::a__b")
	f.Add("mcp", "mcp_mcp", "", "?x", "functions.functions.")
	f.Fuzz(func(t *testing.T, s1, n1, s2, n2, written string) {
		n := NewNames([]Tool{{Name: n1, Server: s1}, {Name: n2, Server: s2}})
		if n.Key(n1) != n1 || n.Key(n2) != n2 {
			t.Errorf("%q is %q, %q is %q", n1, n.Key(n1), n2, n.Key(n2))
		}
		if key := n.Key(written); key != n1 && key != n2 && !strings.HasPrefix(key, unknownTool) {
			t.Errorf("%q is %q", written, key)
		}
	})
}

func BenchmarkNames(b *testing.B) {
	var tools []Tool
	for i := range 40 {
		tools = append(tools, Tool{Name: fmt.Sprint("tool-", i), Server: fmt.Sprint("server", i%4)})
	}
	for b.Loop() {
		NewNames(tools)
	}
}
