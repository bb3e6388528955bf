package admission

import (
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Decision returns what the gate decided by the policy on a call of a tool, and the rule that
// decided, "" where none did; err is the error that it returned with the verdict. The
// decision is "" where the policy was not asked: the call was refused before, or is no call
// of a tool.
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
	// Also where its sandbox is not ready at the moment: that is no decision.
	return risk.Allowed, a.Rule
}

// With returns a gate that decides by another policy of the platform, and by all else as this
// one, the policies of tenants included.
func (g *Gate) With(policy *risk.Policy) *Gate {
	other := *g
	other.policy = g.policy.With(policy)
	return &other
}

// Decide returns what the gate decides by the policy on a call of a tool of which something
// may be missing, with the tool as its server defines it now. Nothing that is checked before
// the policy is checked. undecided is the name of the first rule that needs what is missing;
// then there is no decision. Errors are those of [Catalog.Tool].
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
