package risk

import (
	"cmp"
	"slices"
)

// tightened combines the assessments by the policies of the platform and of the tenant. A denial
// by either applies. Otherwise the result has the higher level, all requirements of both, and the
// stricter approval. The tenant's policy never weakens a requirement of the platform.
func tightened(platform, tenant Assessment) Assessment {
	a := platform
	a.Version += "+" + tenant.Version
	if platform.Deny || tenant.Rule == "" {
		return a
	}
	if tenant.Deny {
		a.Deny, a.Reasons, a.Rule = true, tenant.Reasons, tenant.Rule
		a.Approval, a.Sandbox, a.Container, a.Cache = nil, "", false, nil
		return a
	}
	a.Level = max(platform.Level, tenant.Level)
	a.Approval = narrower(platform.Approval, tenant.Approval)
	a.Sandbox = cmp.Or(platform.Sandbox, tenant.Sandbox)
	a.Container = platform.Container || tenant.Container
	a.Durable = platform.Durable || tenant.Durable
	if a.Approval != nil || a.Sandbox != "" || a.Durable {
		a.Cache = nil
	}
	if a.Level > platform.Level || a.Sandbox != platform.Sandbox || platform.Approval == nil && a.Approval != nil {
		a.Rule = tenant.Rule
		a.Reasons = append(slices.Clip(tenant.Reasons), platform.Reasons...)
	} else {
		a.Reasons = append(slices.Clip(platform.Reasons), tenant.Reasons...)
	}
	return a
}

// narrower returns the approval of the platform with the requirements of the tenant added, or only
// the tenant's if the platform requires none or leaves it to the caller. It asks only groups that
// both name. If there are none in common, it asks the groups of the platform.
func narrower(platform, tenant *Approval) *Approval {
	switch {
	case platform == nil:
		return tenant
	case tenant == nil:
		return platform
	case platform.By == ByCaller && tenant.By == ByGroups:
		a := *tenant
		a.Expires = min(platform.Expires, tenant.Expires)
		return &a
	}
	a := *platform
	a.Expires = min(platform.Expires, tenant.Expires)
	if platform.By != ByGroups || tenant.By != ByGroups {
		return &a
	}
	asked := append(slices.Clip(tenant.Groups), tenant.EscalateTo...)
	if both := common(platform.Groups, tenant.Groups); len(both) > 0 {
		a.Groups, a.EscalateTo = both, common(platform.EscalateTo, asked)
	}
	a.Needed = max(platform.Needed, tenant.Needed)
	a.Reasons = platform.Reasons || tenant.Reasons
	a.FreshLogin = platform.FreshLogin || tenant.FreshLogin
	a.SlackLevel = min(platform.SlackLevel, tenant.SlackLevel)
	return &a
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}
