package risk

import (
	"cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// Denying says whether a policy has rules that deny, and whether any of its conditions names the
// principal: without, all principals are judged alike.
func (p *Policy) Denying() (any, byPrincipal bool) {
	for i := range p.rules {
		any = any || p.rules[i].deny
		byPrincipal = byPrincipal || p.rules[i].looksAtCaller
	}
	return any, byPrincipal
}

// Denies reports whether the policy denies every call like this one, whatever its arguments are.
// It is false where that depends on them. Like [Policy.Assess] it has no side effects.
func (p *Policy) Denies(in *Input) bool {
	method := cmp.Or(in.Method, schema.MethodCallTool)
	var known *facts
	for i := range p.rules {
		r := &p.rules[i]
		if !r.concerns(method) {
			continue
		}
		exact := r.matches(in)
		if !exact && !(r.deny && r.resembles(in)) {
			continue
		}
		if r.looksAtArgs {
			if !r.deny {
				return false // with some arguments it may be the rule that counts
			}
			continue
		}
		if r.when != nil {
			if known == nil {
				known = &facts{in: in}
			}
			holds, why := r.when.eval(known)
			if why == "" && !holds || why != "" && !r.deny {
				continue
			}
		}
		if r.deny {
			return true
		}
		return false
	}
	return false
}
