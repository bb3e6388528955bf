package risk

import (
	"cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// Denying reports whether the policy has rules that deny, and whether any of its conditions uses
// the principal. If none does, it treats all principals alike.
func (p *Policy) Denying() (any, byPrincipal bool) {
	for i := range p.rules {
		any = any || p.rules[i].deny
		byPrincipal = byPrincipal || p.rules[i].looksAtCaller
	}
	return any, byPrincipal
}

// Denies reports whether the policy denies every call like this one, regardless of the arguments.
// It is false if that depends on the arguments. Like [Policy.Assess] it has no side effects.
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
				return false // with some arguments this rule may apply
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
		return r.deny
	}
	return false
}
