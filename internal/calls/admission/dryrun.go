package admission

import (
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Decision returns the policy decision on a tool call and the rule that decided, or "" if no rule
// did. err is the error that the gate returned with the verdict. The decision is "" if the policy was
// not evaluated: the call was refused earlier, or is not a tool call.
func (v *Verdict) Decision(err error) (risk.Decision, string) {
	a := &v.Assessment
	switch kind := schema.KindOf(err); {
	case a.Version == "":
		return "", ""
	case kind == schema.KindForbidden:
		return risk.Refused, a.Rule
	case a.Approval != nil:
		return risk.Held, a.Rule
	}
	// This includes a sandbox that is not ready at the moment, which is not a policy decision.
	return risk.Allowed, a.Rule
}

// With returns a gate with another platform policy that is otherwise identical, including the policies
// of tenants.
func (g *Gate) With(policy *risk.Policy) *Gate {
	other := *g
	other.policy = g.policy.With(policy)
	return &other
}

// Decide returns the policy decision on a tool call with incomplete data, using the current tool
// definition. It skips the checks that precede the policy. If the first rule that could apply needs
// missing data, undecided is its name and there is no decision. Errors are those of [Catalog.Tool].
func (g *Gate) Decide(call *schema.Call, missing risk.Missing) (d risk.Decision, rule, undecided string, err error) {
	var v Verdict
	if v.Tool, err = g.catalog.Tool(call.Server, call.Tool); err != nil {
		return "", "", "", err
	}
	v.Assessment, undecided = risk.AssessKnown(g.policy, v.Tool.Risk, v.Tool.TrustAnnotations, v.Tool.Raw, call, missing)
	if undecided != "" {
		return "", "", undecided, nil
	}
	d, rule = v.Decision(g.refusal(&v.Tool, call, &v.Assessment))
	return d, rule, "", nil
}
