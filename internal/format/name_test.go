package format

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

var everyProviderTakes = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// oddRefs lists servers and tools whose names are hard to combine.
var oddRefs = []Ref{
	{"files", "read"}, {"a", "b__c"}, {"a__b", "c"}, {"a_", "b"}, {"a", "_b"}, {"a b", "c"}, {"a.b", "c"}, {"a_b", "c"}, {"1st", "x"}, {"-x", "y"},
	{"s", strings.Repeat("t", 200)}, {strings.Repeat("s", 200), "t"}, {strings.Repeat("s", 200), "u"}, {strings.Repeat("s", 100), strings.Repeat("t", 100)},
	{"wärme", "温度"}, {"wärme", "湿度"}, {"s", "read_0123456789"}, {"s", "x/y"}, {"s", "x:y"}, {"s", "x.y"}, {"s", ""}, {"", "t"},
}

func TestToolNamesAreUniqueAndLegalForEveryProvider(t *testing.T) {
	seen := make(map[string]Ref)
	for _, ref := range oddRefs {
		name := Name(ref.Server, ref.Tool)
		if !everyProviderTakes.MatchString(name) {
			t.Errorf("%q of %q is called %q", ref.Tool, ref.Server, name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%v and %v are both called %q", ref, other, name)
		}
		seen[name] = ref
	}
	if got := Name("files", "read-text.file"); got != "files__read-text_file_"+got[len(got)-10:] {
		t.Errorf("a name with a dot becomes %q", got)
	}
	if got := Name("files", "read_text-file"); got != "files__read_text-file" {
		t.Errorf("a legal name becomes %q", got)
	}
}

func TestNameResolvesToItsToolAmongAnyOthers(t *testing.T) {
	var tools []*schema.Tool
	for _, ref := range oddRefs {
		if ref.Server == "" || ref.Tool == "" {
			continue
		}
		tools = append(tools, &schema.Tool{Server: schema.ServerID(ref.Server), Name: ref.Tool})
		d := directoryOf(tools) // the set of tools grows
		for _, have := range tools {
			got, err := resolve(d, Name(string(have.Server), have.Name))
			if err != nil || got != (Ref{string(have.Server), have.Name}) {
				t.Fatalf("with %d tools, %q of %q is found as %v, %v", len(tools), have.Name, have.Server, got, err)
			}
		}
	}
}

func TestNamesAreResolvedInModelSpellings(t *testing.T) {
	d := directoryOf([]*schema.Tool{
		{Server: "files", Name: "read"}, {Server: "files", Name: "list"}, {Server: "web", Name: "list"}, {Server: "web.v2", Name: "get.page"},
	})
	for said, want := range map[string]Ref{
		"files__read": {"files", "read"}, "files.read": {"files", "read"}, "files/read": {"files", "read"}, "files:read": {"files", "read"}, "files::read": {"files", "read"},
		"functions.files__read": {"files", "read"}, "functions.read": {"files", "read"}, "mcp__files__read": {"files", "read"}, "mcp_files__read": {"files", "read"},
		"default_api.files__read": {"files", "read"}, "tools.files.read": {"files", "read"}, "read": {"files", "read"}, "web.list": {"web", "list"},
		"web.v2.get.page": {"web.v2", "get.page"}, "get.page": {"web.v2", "get.page"},
	} {
		if got, err := resolve(d, said); err != nil || got != want {
			t.Errorf("%q is %v, %v", said, got, err)
		}
	}
	if _, err := resolve(d, "list"); schema.KindOf(err) != schema.KindNotFound || !strings.Contains(err.Error(), "files__list, web__list") {
		t.Errorf("a name of two tools: %v", err)
	}
	for _, none := range []string{"", "files__", "files__write", "functions.", "write", strings.Repeat("mcp_", 5000), "mcp__mcp__mcp__x"} {
		if ref, err := resolve(d, none); schema.KindOf(err) != schema.KindNotFound || len(err.Error()) > 400 {
			t.Errorf("%.40q is %v, %v", none, ref, err)
		}
	}
}

func TestThousandsOfToolsHaveUniqueNames(t *testing.T) {
	seen := make(map[string]bool)
	for s := range 200 {
		for i := range 50 {
			seen[Name(fmt.Sprintf("server.%d", s), fmt.Sprintf("a rather long name of a tool, of which there are many: number %d", i))] = true
		}
	}
	if len(seen) != 10_000 {
		t.Errorf("%d names for 10000 tools", len(seen))
	}
}

func FuzzName(f *testing.F) {
	for _, ref := range oddRefs {
		f.Add(ref.Server, ref.Tool)
	}
	f.Fuzz(func(t *testing.T, server, tool string) {
		name := Name(server, tool)
		if !everyProviderTakes.MatchString(name) {
			t.Fatalf("%q of %q is called %q", tool, server, name)
		}
		d := directoryOf([]*schema.Tool{{Server: schema.ServerID(server), Name: tool}, {Server: "other", Name: tool}})
		if got, err := resolve(d, name); err != nil || got != (Ref{server, tool}) {
			t.Fatalf("%q of %q, called %q, is found as %v, %v", tool, server, name, got, err)
		}
	})
}

// resolve returns the tool that a name means, as tool calls look it up.
func resolve(d Directory, name string) (Ref, error) {
	found := d.Candidates(name)
	switch len(found) {
	case 0:
		return Ref{}, Unknown(name)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, ref := range found {
		names[i] = Name(ref.Server, ref.Tool)
	}
	return Ref{}, Ambiguous(name, names)
}
