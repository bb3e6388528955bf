package toolset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func tool(server schema.ServerID, name string, change ...func(*Tool)) *Tool {
	t := &Tool{Tool: &schema.Tool{Server: server, Name: name, Destructive: true, OpenWorld: true}}
	for _, c := range change {
		c(t)
	}
	return t
}

func readOnly(t *Tool) { t.ReadOnly, t.Destructive = true, false }

func tagged(tags ...string) func(*Tool) { return func(t *Tool) { t.Tags = tags } }

func level(n int) func(*Tool) { return func(t *Tool) { t.RiskLevel = n } }

// fleet is sorted by server and name, as tools come.
func fleet() []*Tool {
	return []*Tool{
		tool("bank", "balance", readOnly, level(2), tagged("money", "read")), tool("bank", "pay", level(2), tagged("money")),
		tool("files", "delete", level(1)), tool("files", "read", readOnly, level(1), tagged("read")), tool("files", "search", readOnly),
		tool("shell", "run", level(3)), tool("web", "search", readOnly),
	}
}

func names(c *Composition) []string {
	all := make([]string, len(c.Members))
	for i, m := range c.Members {
		all[i] = m.Name
	}
	return all
}

func sets(all ...Set) All {
	m := make(All)
	for i := range all {
		m[all[i].Name] = &all[i]
	}
	return m
}

func truePointer() *bool { return new(true) }
func bare() *Naming      { return &Naming{Prefix: new("")} }

func TestSetContainsSelectedToolsInOrder(t *testing.T) {
	for what, c := range map[string]struct {
		set  Set
		want string
	}{
		"one server":             {Set{Include: []Selector{{Server: "files"}}}, "files__delete files__read files__search"},
		"order of selectors":     {Set{Include: []Selector{{Server: "web"}, {Server: "files", Tool: "read"}}}, "web__search files__read"},
		"each tool once":         {Set{Include: []Selector{{Tool: "search"}, {}}}, "files__search web__search bank__balance bank__pay files__delete files__read shell__run"},
		"patterns":               {Set{Include: []Selector{{Server: "*e*", Tool: "s?arch"}}}, "files__search web__search"},
		"read-only":              {Set{Include: []Selector{{ReadOnly: truePointer()}}}, "bank__balance files__read files__search web__search"},
		"not destructive":        {Set{Include: []Selector{{Destructive: new(false), Server: "bank"}}}, "bank__balance"},
		"all tags":               {Set{Include: []Selector{{Tags: []string{"money", "read"}}}}, "bank__balance"},
		"risk, none counts as 1": {Set{Include: []Selector{{MaxRiskLevel: 1}}}, "files__delete files__read files__search web__search"},
		"exclude":                {Set{Include: []Selector{{}}, Exclude: []Selector{{MaxRiskLevel: 2, ReadOnly: truePointer()}, {Server: "shell"}}}, "bank__pay files__delete"},
		"own prefix":             {Set{Include: []Selector{{Server: "bank"}}, Names: &Naming{Prefix: new("my-{server}"), Separator: new(".")}}, "my-bank.balance my-bank.pay"},
		"no prefix":              {Set{Include: []Selector{{Server: "bank"}}, Names: bare()}, "balance pay"},
	} {
		c.set.Name = "s"
		if f := c.set.Check(); len(f) > 0 {
			t.Errorf("%s: %v", what, f)
		}
		made, err := sets(c.set).Compose("s", fleet(), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := strings.Join(names(made), " "); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

func TestNameConflictsFollowTheConflictPolicy(t *testing.T) {
	for policy, want := range map[Conflict][2]string{
		"":             {"read", "search:files,web"},
		ConflictError:  {"read", "search:files,web"},
		ConflictPrefer: {"search read", "search:web"},
		ConflictRename: {"files__search web__search read", ""},
	} {
		s := Set{Name: "s", Include: []Selector{{Tool: "search"}, {Tool: "read"}}, Names: &Naming{Prefix: new(""), Conflict: policy}}
		made, err := sets(s).Compose("s", fleet(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, clash := range made.LeftOut {
			var servers []string
			for _, tool := range clash.Tools {
				servers = append(servers, string(tool.Server))
			}
			out = append(out, clash.Name+":"+strings.Join(servers, ","))
		}
		if got := [2]string{strings.Join(names(made), " "), strings.Join(out, " ")}; got != want {
			t.Errorf("%q: %q, want %q", policy, got, want)
		}
	}
}

func TestSetsOfSetsMergeNarrowAndRename(t *testing.T) {
	all := sets(
		Set{Name: "money", Include: []Selector{{Tags: []string{"money"}}}, Names: bare()},
		Set{Name: "reading", Include: []Selector{{Server: "files", ReadOnly: truePointer()}}},
		Set{Name: "merged", Include: []Selector{{Set: "money"}, {Set: "reading"}}},
		Set{Name: "part", Include: []Selector{{Set: "merged", ReadOnly: truePointer()}}},
		Set{Name: "flat", Include: []Selector{{Set: "merged"}}, Names: &Naming{Prefix: new("x")}},
		Set{Name: "less", Include: []Selector{{Set: "merged"}}, Exclude: []Selector{{Set: "money"}}},
	)
	for name, want := range map[string]string{
		"merged": "balance pay files__read files__search", "part": "balance files__read files__search",
		"flat": "x__balance x__pay x__read x__search", "less": "files__read files__search",
	} {
		made, err := all.Compose(name, fleet(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(made), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := all.UsedBy("merged"); !slices.Equal(got, []string{"flat", "less", "part"}) {
		t.Error(got)
	}
}

func TestUncomposableSetsReportTheReason(t *testing.T) {
	all := sets(Set{Name: "a", Include: []Selector{{Set: "b"}}}, Set{Name: "b", Include: []Selector{{}}, Exclude: []Selector{{Set: "a"}}}, Set{Name: "c", Include: []Selector{{Set: "gone"}}})
	for name, want := range map[string]string{"a": "a → b → a", "c": `names the set "gone"`, "d": `no set "d"`} {
		if _, err := all.Compose(name, fleet(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSetsOfOtherOwnersKeepTheirOwnIncludes has a set of the same name as one that another owner's set
// includes: what that one has does not change.
func TestSetsOfOtherOwnersKeepTheirOwnIncludes(t *testing.T) {
	others := sets(Set{Name: "inner", Include: []Selector{{Server: "files", ReadOnly: truePointer()}}, Names: bare()}, Set{Name: "outer", Include: []Selector{{Set: "inner"}}})
	tools := fleet()
	find := func(name string) *Composition {
		made, err := others.Compose(name, tools, nil)
		if err != nil {
			return nil
		}
		return made
	}
	own := sets(Set{Name: "inner", Include: []Selector{{Server: "shell"}}}, Set{Name: "both", Include: []Selector{{Set: "outer"}, {Set: "inner"}}}, Set{Name: "broken", Include: []Selector{{Set: "none"}}})
	made, err := own.Compose("both", tools, find)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(made), " "); got != "read search shell__run" {
		t.Error(got)
	}
	for name, want := range map[string]string{"broken": `names the set "none"`, "outer": `no set "outer"`} { // the others' own is not of these
		if _, err := own.Compose(name, tools, find); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSetsIncludedInManyWaysAreCheckedOnce has 2^60 ways from the first set to the last.
func TestSetsIncludedInManyWaysAreCheckedOnce(t *testing.T) {
	all := make(All)
	for i := range 60 {
		next := fmt.Sprintf("s%d", i+1)
		all[fmt.Sprintf("s%d", i)] = &Set{Name: fmt.Sprintf("s%d", i), Include: []Selector{{Set: next}, {Set: next, Tool: "read"}}}
	}
	all["s60"] = &Set{Name: "s60", Include: []Selector{{Server: "files"}}}
	if made, err := all.Compose("s0", fleet(), nil); err != nil || len(made.Members) != 3 {
		t.Error(made, err)
	}
}

func TestFaultsOfASetAreFound(t *testing.T) {
	for path, s := range map[string]Set{
		"name":                      {Name: "@a", Include: []Selector{{}}},
		"include":                   {Name: "a"},
		"include[0].max_risk_level": {Name: "a", Include: []Selector{{MaxRiskLevel: 4}}},
		"exclude[1].set":            {Name: "a", Include: []Selector{{}}, Exclude: []Selector{{}, {Set: "a/b"}}},
		"include[0].tags":           {Name: "a", Include: []Selector{{Tags: []string{""}}}},
		"include[0].tool":           {Name: "a", Include: []Selector{{Tool: strings.Repeat("x", 300)}}},
		"names.conflict":            {Name: "a", Include: []Selector{{}}, Names: &Naming{Conflict: "merge"}},
		"names.prefix":              {Name: "a", Include: []Selector{{}}, Names: &Naming{Prefix: new("a b")}},
		"names.separator":           {Name: "a", Include: []Selector{{}}, Names: &Naming{Separator: new("/")}},
		"description":               {Name: "a", Include: []Selector{{}}, Description: strings.Repeat("x", 3000)},
	} {
		if f := s.Check(); len(f) != 1 || f[0].Path != path {
			t.Errorf("%s: %v", path, f)
		}
	}
}

// TestToolNamesDoNotDependOnUnselectedTools is what callers rely on between two lists.
func TestToolNamesDoNotDependOnUnselectedTools(t *testing.T) {
	s := sets(Set{Name: "s", Include: []Selector{{Server: "bank"}, {Server: "web"}}, Names: bare()})
	a, err := s.Compose("s", fleet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Compose("s", slices.DeleteFunc(fleet(), func(t *Tool) bool { return t.Server == "files" }), nil)
	if err != nil || !slices.Equal(names(a), names(b)) {
		t.Errorf("%v, %v, %v", names(a), names(b), err)
	}
}

func BenchmarkCompose5000(b *testing.B) {
	var all []*Tool
	for s := range 50 {
		for n := range 100 {
			all = append(all, tool(schema.ServerID(fmt.Sprintf("server-%02d", s)), fmt.Sprintf("tool_%03d", n), readOnly))
		}
	}
	s := sets(
		Set{Name: "a", Include: []Selector{{Server: "server-0*"}, {ReadOnly: truePointer()}}},
		Set{Name: "s", Include: []Selector{{Set: "a"}, {Tool: "*_00?"}}, Exclude: []Selector{{Tool: "*99"}}, Names: &Naming{Prefix: new(""), Conflict: ConflictRename}},
	)
	for b.Loop() {
		if c, err := s.Compose("s", all, nil); err != nil || len(c.Members) != 4950 {
			b.Fatal(len(c.Members), err)
		}
	}
}
