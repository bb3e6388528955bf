package admission

import (
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestUnrestrictedPrincipalDoesNotAllocate(t *testing.T) {
	g := NewGate(Options{Policy: risk.NewHolder(nil)})
	for _, scopes := range [][]string{scope.All(), {scope.ReadTools}, {scope.ReadTools, scope.CallTools, "tools:call:files"}} {
		who := schema.Principal{Name: "ann", Grant: &scope.Grant{Scopes: scope.Of(scopes)}}
		if allocs := testing.AllocsPerRun(100, func() {
			if g.Judge(&who) != nil {
				t.Errorf("%v is restricted", scopes)
			}
		}); allocs > 0 {
			t.Errorf("%v allocations", allocs)
		}
	}
	who := schema.Principal{Name: "ann"}
	if g.Judge(&who) != nil {
		t.Error("a key of the configuration is restricted")
	}
}

func TestPrincipalsWithEqualAccessShareAJudgement(t *testing.T) {
	policy, err := risk.Parse([]byte("rules:\n  - {name: a, match: {tool: x}, deny: No.}\n"), "policy")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(Options{Policy: risk.NewHolder(policy)})
	ann, bob := schema.Principal{Name: "ann"}, schema.Principal{Name: "bob"}
	if a, b := g.Judge(&ann), g.Judge(&bob); a.Key() != b.Key() {
		t.Error("a policy that names no principal is asked for each")
	}
	ann.Grant = &scope.Grant{Scopes: scope.Of([]string{"tools:call:files"})}
	bob.Grant = &scope.Grant{Scopes: scope.Of([]string{"tools:call:mail"})}
	if a, b := g.Judge(&ann), g.Judge(&bob); a.Key() == b.Key() || !a.Tool("files", "y") || a.Tool("mail", "y") || a.Tool("files", "x") || !b.Prompts("mail") || b.Resources("files") {
		t.Error("the scopes do not count")
	}
}
