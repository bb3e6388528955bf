package risk

import "slices"

// Groups returns every approver group that the policy names, sorted.
func (p *Policy) Groups() []string {
	var all []string
	add := func(a *Approval) {
		if a != nil {
			all = append(append(all, a.Groups...), a.EscalateTo...)
		}
	}
	add(p.approval)
	for i := range p.rules {
		add(p.rules[i].approval)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
