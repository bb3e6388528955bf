package risk

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestAssessWithoutPolicyUsesTheServersRiskLevel(t *testing.T) {
	destroys := definition(`{"destructiveHint":true}`)
	for level, want := range map[int]string{0: "low", Low: "low", Medium: "medium caller", High: "high container"} {
		a := Assess(nil, level, false, destroys, &schema.Call{Server: "s", Tool: "t", Arguments: []byte(`{}`)})
		if got := short(a); got != want || len(a.Reasons) == 0 || a.Version != Default().Version() {
			t.Errorf("level %d: %s, %v, version %s", level, got, a.Reasons, a.Version)
		}
	}
}

func TestAssessmentRecordsItsRuleAndInputs(t *testing.T) {
	h := NewHolder(mustParse(t, "rules:\n  - {name: pays, match: {tool: pay}, level: 2}\n"))
	a := Assess(h, Low, true, definition(""), &schema.Call{Server: "bank", Tool: "pay", Arguments: []byte(`{}`)})
	if a.Rule != "pays" || a.ServerRisk != Low || !a.TrustAnnotations || a.Version != h.Current().Version() {
		t.Errorf("%+v", a)
	}
	if a = Assess(h, Low, false, definition(""), &schema.Call{Server: "bank", Tool: "look", Arguments: []byte(`{}`)}); a.Level != Low || a.Rule != "" || len(a.Reasons) == 0 {
		t.Errorf("%+v", a)
	}
}

func TestMethodThatCannotBeHeldIsRefused(t *testing.T) {
	policy := NewHolder(mustParse(t, `
rules:
  - {name: secret, match: {server: bank, method: resources/read}, deny: not that}
  - {name: asks, match: {server: shop, method: prompts/get}, approval: {by: caller}}
  - {name: free, match: {server: shop, method: completion/complete}, level: 1}
`))
	for _, c := range []struct {
		name      string
		policy    *Holder
		server    schema.ServerID
		method    string
		level     int
		sandboxed bool
		want      string // "" if it may run
	}{
		{"no policy, no level", nil, "s", schema.MethodReadResource, 0, false, ""},
		{"no policy, medium", nil, "s", schema.MethodReadResource, Medium, false, "requires approval"},
		{"no policy, high, sandboxed", nil, "s", schema.MethodReadResource, High, true, ""},
		{"no policy, high, not sandboxed", nil, "s", schema.MethodReadResource, High, false, "must run in a container"},
		{"denied", policy, "bank", schema.MethodReadResource, Low, true, "The policy forbids resources/read"},
		{"an approval", policy, "shop", schema.MethodGetPrompt, Low, true, "requires approval"},
		{"a rule lowers a medium server", policy, "shop", schema.MethodComplete, Medium, false, ""},
		{"another method of it", policy, "shop", schema.MethodReadResource, Medium, false, "requires approval"},
	} {
		e := CheckMethod(c.policy, c.level, c.sandboxed, &schema.Call{Method: c.method, Server: c.server, Arguments: []byte(`{}`)})
		switch {
		case c.want == "" && e != nil:
			t.Errorf("%s: refused: %v", c.name, e)
		case c.want != "" && (e == nil || e.Kind != schema.KindForbidden || !strings.Contains(e.Detail, c.want)):
			t.Errorf("%s: %v", c.name, e)
		}
	}
}
