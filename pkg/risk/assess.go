package risk

import (
	"cmp"
	"slices"

	"github.com/callyard/callyard/pkg/schema"
)

// Assess assesses one call. It has no side effects, is safe for concurrent use and
// does not panic. The caller must not change in while Assess runs.
//
// The first rule that matches decides. If none matches, the server's riskLevel decides,
// and then the tool's hints as far as the policy trusts them. If the condition of a rule
// cannot be evaluated, or a rule that raises the risk matches a lookalike name, the
// result is the stricter of that rule and the rest of the policy.
func (p *Policy) Assess(in *Input) Assessment {
	a, _ := p.AssessKnown(in, Missing{})
	return a
}

// AssessKnown is Assess for a call with missing parts. If a condition needs a missing part,
// AssessKnown returns an empty assessment, and undecided is the name of the first such rule.
// Otherwise undecided is "", and a is the result of Assess for the complete call.
func (p *Policy) AssessKnown(in *Input, missing Missing) (a Assessment, undecided string) {
	if in == nil {
		in = &Input{}
	}
	var known *facts // created for the first condition and shared by all
	var doubts []doubt
	var winner *rule
	method := cmp.Or(in.Method, schema.MethodCallTool)
	for i := range p.rules {
		r := &p.rules[i]
		d := doubt{rule: r}
		if !r.concerns(method) {
			continue
		}
		if !r.matches(in) {
			if !r.raises() || !r.resembles(in) {
				continue
			}
			d.reasons = r.twin
		}
		if r.when != nil {
			if r.when.lacks(missing) {
				return Assessment{}, r.name
			}
			if known == nil {
				known = &facts{in: in}
			}
			holds, why := r.when.eval(known)
			if why != "" {
				d.failed = true
				d.reasons = append(slices.Clip(r.undecided), "The condition of rule "+quote(r.name)+" could not be evaluated: "+why)
			} else if !holds {
				continue
			}
		}
		if d.reasons == nil {
			winner = r
			break
		}
		if r.deny {
			return p.denied(r, in, d.reasons), ""
		}
		doubts = append(doubts, d)
	}
	if a = p.outcome(winner, in); a.Deny {
		return a, ""
	}
	for _, d := range slices.Backward(doubts) {
		a = p.join(a, &d, in)
	}
	return a, ""
}

// doubt is a rule that may or may not apply.
type doubt struct {
	rule    *rule
	failed  bool // the condition could not be evaluated
	reasons []string
}

func (p *Policy) denied(r *rule, in *Input, reasons []string) Assessment {
	level, _ := p.base(in)
	return Assessment{Level: level, Deny: true, Reasons: reasons, Rule: r.name, Version: p.version, Durable: r.durable}
}

// outcome returns the assessment if r applies. A nil r means that no rule applies.
func (p *Policy) outcome(r *rule, in *Input) Assessment {
	if r == nil {
		level, reasons := p.base(in)
		a := Assessment{Level: level, Reasons: reasons, Version: p.version}
		switch level {
		case Medium:
			a.Approval = p.approval
		case High:
			a.Sandbox = SandboxContainer
		}
		return a
	}
	if r.deny {
		return p.denied(r, in, r.won)
	}
	a := Assessment{Level: r.level, Reasons: r.won, Rule: r.name, Approval: r.approval, Sandbox: r.sandbox, Container: r.sandbox == SandboxContainer, Durable: r.durable, Version: p.version}
	if r.level == 0 {
		// A rule without a level adds to the assessment without the rule.
		level, reasons := p.base(in)
		a.Reasons = append(slices.Clip(r.won), reasons...)
		a.Level = level
		if r.approval != nil {
			a.Level = max(a.Level, Medium)
		}
		if r.sandbox != "" {
			a.Level = High
		}
		if level == Medium && a.Approval == nil {
			a.Approval = p.approval
		}
	}
	if a.Level == Medium && a.Approval == nil {
		a.Approval = p.approval
	}
	if a.Level == High {
		a.Sandbox = SandboxContainer
	}
	if a.Approval == nil && a.Sandbox == "" {
		a.Cache = r.cache
	}
	return a
}

// join returns the stricter of a and the assessment by the doubtful rule.
func (p *Policy) join(a Assessment, d *doubt, in *Input) Assessment {
	b := p.outcome(d.rule, in)
	b.Reasons = append(slices.Clip(d.reasons), a.Reasons...)
	b.Level = max(a.Level, b.Level)
	b.Approval = stricter(a.Approval, b.Approval)
	b.Sandbox = cmp.Or(a.Sandbox, b.Sandbox)
	b.Container = a.Container || b.Container
	b.Durable = a.Durable || b.Durable
	b.Cache = nil // if in doubt, call the tool
	if d.failed {
		b.Level = max(b.Level, Medium)
		if b.Approval == nil {
			b.Approval = p.approval
		}
	}
	return b
}

// stricter returns an approval that is at least as strict as both: groups take
// precedence over the caller, more approvals over fewer, and all requirements of both
// apply.
func stricter(a, b *Approval) *Approval {
	if a == nil || b == nil || a == b {
		return cmp.Or(a, b)
	}
	first, second := b, a
	if outranks(a, b) {
		first, second = a, b
	}
	joined := *first
	joined.Needed = max(first.Needed, second.Needed)
	if joined.By == ByCaller {
		joined.Needed = 1
	}
	joined.Expires = min(first.Expires, second.Expires)
	joined.Reasons = first.Reasons || second.Reasons
	joined.FreshLogin = first.FreshLogin || second.FreshLogin
	if first.By == second.By {
		joined.SlackLevel = min(first.SlackLevel, second.SlackLevel)
	}
	return &joined
}

func outranks(a, b *Approval) bool {
	if a.By != b.By {
		return a.By == ByGroups
	}
	return a.Needed > b.Needed
}

// base returns the level without any rule, and the reasons.
func (p *Policy) base(in *Input) (int, []string) {
	if p.tightens {
		return Low, nil // the platform's policy decides the level
	}
	switch in.ServerRisk {
	case Low:
		if p.annotations == raiseHints && hintsOf(in.Definition).destroys() {
			return Medium, reasonRaised
		}
		return Low, reasonServerLow
	case Medium:
		return Medium, reasonServerMedium
	case High:
		return High, reasonServerHigh
	case 0:
		if in.Method != "" && in.Method != schema.MethodCallTool {
			return Low, reasonNoTool
		}
	default:
		return High, reasonServerUnknown
	}
	if p.annotations == ignoreHints {
		return Medium, reasonIgnored
	}
	h := hintsOf(in.Definition)
	trusted := p.annotations == trustHints || in.TrustAnnotations
	switch {
	case !trusted && (h.readOnly == ok || h.destructive == no):
		return Medium, reasonUntrusted
	case h.readOnly == ok:
		return Low, reasonReadOnly
	case h.destructive == no:
		return Low, reasonHarmless
	case h.destructive == ok:
		return Medium, reasonDestructive
	}
	return Medium, reasonNothingSaid
}

// The reasons that base returns. They are read-only.
var (
	reasonServerLow     = []string{"The operator set the risk of this server to low."}
	reasonServerMedium  = []string{"The operator set the risk of this server to medium."}
	reasonServerHigh    = []string{"The operator set the risk of this server to high."}
	reasonServerUnknown = []string{"The risk of this server is set to an unknown level, which is treated as high."}
	reasonRaised        = []string{"The server declares this tool as destructive, which raises the low risk that the operator set."}
	reasonIgnored       = []string{"No rule covers this tool, the server has no risk level, and the policy ignores the servers' tool annotations."}
	reasonUntrusted     = []string{"The server declares this tool as harmless, and the policy does not trust the annotations of this server."}
	reasonNoTool        = []string{"No rule covers this method, and the server has no risk level."}
	reasonReadOnly      = []string{"The server declares this tool as read-only."}
	reasonHarmless      = []string{"The server declares this tool as not destructive."}
	reasonDestructive   = []string{"The server declares this tool as destructive."}
	reasonNothingSaid   = []string{"No rule covers this tool, the server has no risk level, and the tool is not declared harmless."}
)
