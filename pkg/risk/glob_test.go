package risk

import (
	"strings"
	"testing"
)

func TestAPatternMatchesExactNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "a/b.c", true}, {"**", "x", true},
		{"delete", "delete", true}, {"delete", "Delete", false}, {"delete", "delete ", false}, {"delete", "deletes", false},
		{"fs/*", "fs/a/b", true}, {"*/b", "fs/a/b", true}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXcYb", false},
		{"run_?", "run_é", true}, {"run_?", "run_", false}, {"?", "\xff", true},
		{"a*", "", false}, {"", "a", false}, {"*é", "caf\xc3\xa9", true}, {"*a", "b", false},
	} {
		g := newGlob(c.pattern)
		if got := g.matches(c.name); got != c.want {
			t.Errorf("%q over %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestLookalikeNameIsDeniedToo(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: exact, match: {server: db, tool: delete}, deny: no}
  - {name: glob, match: {tool: "drop_*"}, deny: no}
  - {name: server, match: {server: "secret*"}, deny: no}
  - {name: all-of-shell, match: {server: shell, tool: "*"}, deny: no}
  - {name: rest, level: 1}
`)
	for _, c := range []struct{ server, tool, want string }{
		{"db", "delete", "deny by exact"},
		{"db", "Delete", "deny by exact"},
		{"db", "DELETE", "deny by exact"},
		{"db", "delete ", "deny by exact"},
		{"db", " delete", "deny by exact"},
		{"db", "delete\t", "deny by exact"},
		{"db", "delete\u00a0", "deny by exact"},
		{"db", "de\u200blete", "deny by exact"},
		{"db", "delete\x00", "deny by exact"},
		{"db", "dеlete", "deny by exact"},       // Cyrillic е
		{"db", "ԁеӏеtе", "deny by exact"},       // all but one letter are Cyrillic
		{"db", "𝐝elete", "deny by exact"},       // a mathematical letter
		{"db", "ｄｅｌｅｔｅ", "deny by exact"},       // full width
		{"db", "de\u0301lete", "deny by exact"}, // a letter with a combining mark
		{"db", "delete\xff", "deny by exact"},
		{"Db", "delete", "deny by exact"},
		{"db ", "delete", "deny by exact"},
		{"ԁb", "delete", "deny by exact"},
		{"x", "Drop_Table", "deny by glob"},
		{"x", "drop＿table", "deny by glob"}, // a full-width underscore
		{"x", "drор_", "deny by glob"},
		{"Secrets", "x", "deny by server"},
		{"ѕecret-1", "x", "deny by server"},
		{"shell", "Ⓓelete", "deny by all-of-shell"},
		{"shell", "", "deny by all-of-shell"},
		{"Shell", "x", "deny by all-of-shell"},
		// The rule matches no name below.
		{"db", "deletes", "low by rest"},
		{"db", "delet", "low by rest"},
		{"db", "d-e-l", "low by rest"},
		{"db", "削除削除削除", "low by rest"},
		{"db2", "delete", "low by rest"},
		{"db", "undelete", "low by rest"},
	} {
		a := p.Assess(&Input{Server: c.server, Tool: c.tool, Definition: definition(readOnly)})
		if got := short(a); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.server, c.tool, got, c.want)
		}
		if c.tool == "Delete" && !strings.Contains(a.Reasons[0], "resembles") {
			t.Error(a.Reasons)
		}
	}
}

func TestLookalikeNameIsNotAllowedByTheOriginalsRule(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: allowed, match: {tool: get}, level: 1}
  - {name: held, match: {tool: put}, level: 2}
  - {name: rest, deny: not on the list}
`)
	for tool, want := range map[string]string{
		"get": "low by allowed", "Get": "deny by rest", "get ": "deny by rest", "gеt": "deny by rest",
		"put": "medium caller by held", "Put": "deny by rest",
	} {
		if got := short(p.Assess(&Input{Server: "s", Tool: tool})); got != want {
			t.Errorf("%q: %s, want %s", tool, got, want)
		}
	}
	p = mustParse(t, `
rules:
  - {name: held, match: {tool: put}, approval: {groups: [ops]}}
  - {name: rest, level: 1}
`)
	if got := short(p.Assess(&Input{Server: "s", Tool: "Put"})); got != "medium groups by held" {
		t.Error(got)
	}
}

func TestConditionsApplyToLookalikeNames(t *testing.T) {
	p := mustParse(t, "rules:\n  - {match: {tool: put}, when: args.n > 5, deny: no}\n")
	if a := p.Assess(&Input{Tool: "Put", ServerRisk: Low, Arguments: []byte(`{"n":1}`)}); a.Deny {
		t.Error("denied, and the condition does not hold")
	}
	if a := p.Assess(&Input{Tool: "Put", ServerRisk: Low, Arguments: []byte(`{"n":6}`)}); !a.Deny {
		t.Error("not denied, and the condition holds")
	}
}

func TestAPatternOfManyStarsIsCheap(t *testing.T) {
	g := newGlob(strings.Repeat("*a", 100) + "b")
	if g.matches(strings.Repeat("a", 10_000)) || g.resembles(strings.Repeat("A", 10_000)) {
		t.Error("it matches")
	}
}
