package scope

import (
	"slices"
	"testing"
)

func TestARoleHasTheScopesOfTheTableAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		role     Role
		has, not []string
	}{
		{PlatformAdmin, All(), nil},
		{TenantAdmin, []string{ReadTools, CallTools, ReadCalls, AdminTenant}, []string{Admin, Approve, ReadAllCalls}},
		{Developer, []string{ReadTools, ListTools, CallTools, ReadCalls}, []string{Admin, AdminTenant, Approve, ReadAllCalls}},
		{Caller, []string{ListTools, CallTools, "tools:call:files"}, []string{ReadTools, ReadCalls, Admin, AdminTenant, Approve}},
		{Auditor, []string{ReadTools, ListTools, ReadCalls, ReadAllCalls}, []string{CallTools, "tools:call:files", Admin, AdminTenant, Approve}},
		{"", nil, All()}, {"root", nil, All()},
	} {
		set := Of(c.role.Scopes())
		for _, one := range c.has {
			if !set.Has(one) {
				t.Errorf("%s lacks %s", c.role, one)
			}
		}
		for _, one := range c.not {
			if set.Has(one) {
				t.Errorf("%s has %s", c.role, one)
			}
		}
		if known := slices.Contains(Roles(), c.role); known != (c.role.Check() == nil) {
			t.Errorf("%s: %v", c.role, c.role.Check())
		}
	}
}

func TestIntersectionKeepsTheNarrowerScopes(t *testing.T) {
	for _, c := range []struct{ a, b, want []string }{
		{[]string{CallTools, ReadTools}, []string{"tools:call:files"}, []string{"tools:call:files"}},
		{[]string{"tools:call:files"}, []string{CallTools}, []string{"tools:call:files"}},
		{[]string{"tools:call:files"}, []string{"tools:call:mail"}, nil},
		{[]string{"tools:call:@s"}, []string{"tools:call:s"}, nil},
		{[]string{Admin}, []string{AdminTenant, ReadCalls}, []string{AdminTenant}},
		{[]string{ReadAllCalls}, []string{ReadCalls}, []string{ReadCalls}},
		{nil, []string{Admin}, nil},
	} {
		a, b := parse(t, c.a...), parse(t, c.b...)
		if got := Both(a, b); !slices.Equal(got.List(), c.want) {
			t.Errorf("%v and %v: %v", c.a, c.b, got.List())
		}
		if got := Both(b, a); !slices.Equal(got.List(), c.want) {
			t.Errorf("%v and %v: %v", c.b, c.a, got.List())
		}
	}
}
