package risk

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

// draft returns a policy of random rules.
func draft(rnd *rand.Rand) string {
	conditions := []string{
		"", `args.n > 3`, `has(args.n) && args.n == 1`, `"ops" in principal.groups`, `principal.name == "ada"`, `principal.owner == "team" && args.s == "x"`,
		`tool.matches("^p")`, `principal.groups.exists(g, g.startsWith("o"))`, `args.?n.orValue(0) > 2 || server == "a"`,
	}
	outcomes := []string{"deny: no", "level: 1", "level: 2", "level: 3", "approval: default", "sandbox: container", "durable: true"}
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 1 + rnd.IntN(6) {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {server: %q, tool: %q}\n    %s\n", i, []string{"*", "a", "b*"}[rnd.IntN(3)], []string{"*", "pay", "p?y", "read"}[rnd.IntN(4)], outcomes[rnd.IntN(len(outcomes))])
		if when := conditions[rnd.IntN(len(conditions))]; when != "" {
			fmt.Fprintf(&b, "    when: '%s'\n", when)
		}
	}
	return b.String()
}

func TestPartialAssessmentAgreesWithTheFullOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	decided, open := 0, 0
	var source string
	var p *Policy
	for i := range 3000 {
		if i%20 == 0 {
			source = draft(rnd)
			p = mustParse(t, source)
		}
		in := Input{
			Server: []string{"a", "b1", "c"}[rnd.IntN(3)], Tool: []string{"pay", "Pay", "read", "x"}[rnd.IntN(4)], ServerRisk: rnd.IntN(4),
			Arguments: []byte([]string{`{}`, `{"n":1}`, `{"n":9,"s":"x"}`, `{"n":"text"}`}[rnd.IntN(4)]),
			Principal: schema.Principal{Name: []string{"ada", "bob"}[rnd.IntN(2)], Owner: "team", Groups: [][]string{nil, {"ops"}, {"dev"}}[rnd.IntN(3)]},
		}
		whole := p.Assess(&in)
		if again, undecided := p.AssessKnown(&in, Missing{}); undecided != "" || !reflect.DeepEqual(whole, again) {
			t.Fatalf("with nothing missing: %q %+v, and not %+v", undecided, again, whole)
		}
		part := in
		missing := Missing{Arguments: rnd.IntN(2) == 0, Groups: rnd.IntN(2) == 0}
		if missing.Arguments {
			part.Arguments = nil
		}
		if missing.Groups {
			part.Principal.Groups = nil
		}
		known, undecided := p.AssessKnown(&part, missing)
		if undecided != "" {
			open++
			continue
		}
		if decided++; !reflect.DeepEqual(known, whole) {
			t.Fatalf("%s\n%+v without %+v is assessed as %+v, and whole as %+v", source, in, missing, known, whole)
		}
	}
	if decided < 500 || open < 200 {
		t.Errorf("%d were decided and %d not: the policies are no test", decided, open)
	}
}
