package risk

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckReportsRulesThatCannotWork(t *testing.T) {
	p := mustParse(t, `
approval: {default: {groups: [opps]}}
rules:
  - {name: a, match: {server: db, tool: drop_tabel}, deny: no}
  - {name: b, match: {server: bd}, deny: no}
  - {name: c, match: {server: "d*", tool: "get*"}, level: 1}
  - {name: d, match: {server: db, tool: get_rows}, deny: too late}
  - {name: e, when: 1 > 2, level: 1}
  - {name: f, approval: {groups: [ops], needed: 3, escalate_to: [board]}, match: {server: later, tool: unknown}}
  - {name: g, match: {tool: "x?"}, when: 'true', level: 1, }
  - {name: h, match: {tool: "x*"}, level: 1}
  - {name: i, match: {tool: x1}, level: 1}
  - {name: j, approval: default}
  - {name: k, level: 2}
`)
	want := []string{
		`approval.default: the group "opps" has no members, so nobody can approve; add members or use another group.`,
		`rule "a" (line 4): "drop_tabel" matches no tool of its servers; did you mean "drop_table"?`,
		`rule "b" (line 5): "bd" matches no server; did you mean "db"?`,
		`rule "d" (line 7): it can never apply: rule "c" in line 6 already matches all of its calls; move it above that rule or remove it.`,
		`rule "e" (line 8): it can never apply: its condition is false for every call; correct it or remove the rule.`,
		`rule "f" (line 9): the group "board" has no members, so nobody can approve; add members or use another group.`,
		`rule "f" (line 9): 3 approvals are needed, but its groups have only 2 members; lower needed or add members.`,
		`rule "i" (line 12): it can never apply: rule "g" in line 10 already matches all of its calls; move it above that rule or remove it.`,
		`rule "k" (line 14): it can never apply: rule "j" in line 13 already matches all of its calls; move it above that rule or remove it.`,
	}
	got := p.Check(Known{
		Groups:  map[string][]string{"ops": {"ann", "bob"}},
		Servers: []string{"db", "later"},
		Tools:   map[string][]string{"db": {"drop_table", "get_rows", "x1"}},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := mustParse(t, "rules:\n  - {match: {server: nowhere}, approval: {groups: [nobody]}}\n").Check(Known{}); got != nil {
		t.Errorf("nothing is known, and yet: %v", got)
	}
	if got := Default().Check(Known{Groups: map[string][]string{}}); got != nil {
		t.Errorf("the default: %v", got)
	}
}

func TestPatternCoverageIsConservative(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		want         bool
	}{
		{"*", "a", true}, {"a*", "ab*", true}, {"a*", "a", true}, {"a*b", "a*b", true}, {"a*", "a*c*", true}, {"a?", "ab", true}, {"a?", "a?", true},
		{"a", "a*", false}, {"a?", "a*", false}, {"*a", "a*", false}, {"ab*", "a*", false}, {"?*", "*", false},
	} {
		if got := covers([]glob{newGlob(c.outer)}, []glob{newGlob(c.inner)}); got != c.want {
			t.Errorf("%q over %q: %v", c.outer, c.inner, got)
		}
	}
}
