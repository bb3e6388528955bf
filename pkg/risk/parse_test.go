package risk

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// Write the golden file manually, or copy it from a failure after reviewing it.
func TestEveryFaultOfAPolicyIsReportedAtOnce(t *testing.T) {
	source, err := os.ReadFile("testdata/faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/faults.golden")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(source, "faults.yaml")
	var faults *Faults
	if p != nil || !errors.As(err, &faults) {
		t.Fatalf("%v %v", p, err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), faults.Error()); diff != "" {
		t.Errorf("%s\nall of it:\n%s", diff, faults.Error())
	}
}

func TestAFileThatIsNoPolicyIsAFault(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"not YAML":       {"rules: [", "p.yaml:1:"},
		"not UTF-8":      {"rules: \xff", "UTF-8"},
		"a list":         {"- a", "must be a map of keys, not a list"},
		"a string":       {"hello", "must be a map of keys, not a string"},
		"two documents":  {"rules: []\n---\nrules: []\n", "second document"},
		"too large":      {strings.Repeat("#", maxSource+1), "larger than 1 MiB"},
		"too deep":       {strings.Repeat("[", 1000), "nested"},
		"too many rules": {"rules: [" + strings.Repeat("a,", maxRules+1) + "]", "more than 1000 rules"},
		"many faults":    {"rules: [" + strings.Repeat("a,", maxRules-1) + "]", "more than 200 faults"},
		"an alias":       {"rules: &a\n  - *a\n", "anchors, aliases"},
		"rules as a map": {"rules: {a: 1}", "must be a list of rules"},
	} {
		if _, err := Parse([]byte(c.source), "p.yaml"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "p.yaml") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAnEmptyPolicyIsTheDefaultUnderItsOwnVersion(t *testing.T) {
	for _, source := range []string{"", "# nothing yet\n", "\ufeff", "{}", "rules:\n", "rules: []\n"} {
		p := mustParse(t, source)
		if p.Version() != schema.Digest([]byte(source)) {
			t.Errorf("%q: version %s", source, p.Version())
		}
		if got := short(p.Assess(&Input{Server: "s", Tool: "t"})); got != "medium caller" {
			t.Errorf("%q: %s", source, got)
		}
	}
}

func TestAnApprovalHasSensibleDefaults(t *testing.T) {
	p := mustParse(t, "rules:\n  - {name: a, approval: {groups: ops}}\n  - {name: b, approval: default}\napproval: {default: {expires: 2d}}\n")
	want := []*Approval{
		{By: ByGroups, Groups: []string{"ops"}, Needed: 1, Expires: 10 * time.Minute},
		{By: ByCaller, Needed: 1, Expires: 48 * time.Hour},
	}
	if diff := cmp.Diff(want, []*Approval{p.rules[0].approval, p.rules[1].approval}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, p.Rules()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ops"}, p.Groups()); diff != "" {
		t.Error(diff)
	}
}

func TestUnnamedRuleIsNamedByItsIndex(t *testing.T) {
	p := mustParse(t, "rules:\n  - {level: 3, match: {server: x}}\n  - deny: no\n")
	if a := p.Assess(&Input{Server: "s", Tool: "t"}); a.Rule != "rules[1]" {
		t.Error(a.Rule)
	}
}
