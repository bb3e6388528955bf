package calls

import (
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/pkg/schema"
)

func TestCallsOfOtherPrincipalsAreLimitedToTheTenant(t *testing.T) {
	grant := func(scopes ...string) schema.Grant { return &scope.Grant{Scopes: scope.Of(scopes)} }
	all, red, home := schema.AllTenants(), schema.OnlyTenant("red"), schema.OnlyTenant(schema.DefaultTenant)
	for _, c := range []struct {
		who     schema.Principal
		asked   string
		of      schema.Tenants // the zero value means refused
		exactly []string
	}{
		{schema.Principal{Name: "ann", Tenant: "red"}, "", red, []string{"ann"}},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadAllCalls)}, "ann", red, []string{"ann"}},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadAllCalls)}, "*", red, nil},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.AdminTenant)}, "bob", red, []string{"bob"}},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.Admin)}, "*", red, nil},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadCalls)}, "*", schema.Tenants{}, nil},
		{schema.Principal{Name: "ann", Tenant: "red"}, "bob", schema.Tenants{}, nil},
		{schema.Principal{Name: "ann", Grant: grant(scope.ReadAllCalls)}, "*", all, nil},
		{schema.Principal{Name: "ann", Grant: grant(scope.Admin)}, "bob", all, []string{"bob"}},
		{schema.Principal{Name: "ann", Grant: grant(scope.AdminTenant)}, "*", home, nil},
		{schema.Principal{Name: "ann", Grant: grant(scope.CallTools)}, "*", schema.Tenants{}, nil},
	} {
		of, principals, err := listFilter(&c.who, c.asked, "")
		if of != c.of || !slices.Equal(principals, c.exactly) || (err == nil) != (c.of != schema.Tenants{}) || err != nil && schema.KindOf(err) != schema.KindForbidden {
			t.Errorf("%+v asks for %q: %+v, %q, %v", c.who, c.asked, of, principals, err)
		}
	}
}

func TestTenantFilterIsLimitedToVisibleTenants(t *testing.T) {
	auditor := &scope.Grant{Scopes: scope.Of([]string{scope.ReadAllCalls})}
	for _, c := range []struct {
		who           schema.Principal
		asked, tenant string
		of            schema.Tenants
	}{
		{schema.Principal{Name: "ann", Grant: auditor}, "*", "red", schema.OnlyTenant("red")},
		{schema.Principal{Name: "ann", Grant: auditor}, "*", "default", schema.OnlyTenant("")},
		{schema.Principal{Name: "ann", Grant: auditor}, "", "red", schema.Tenants{}}, // its own calls belong to the default tenant
		{schema.Principal{Name: "ann", Tenant: "red", Grant: auditor}, "*", "red", schema.OnlyTenant("red")},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: auditor}, "*", "blue", schema.Tenants{}},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: auditor}, "*", "default", schema.Tenants{}},
		{schema.Principal{Name: "ann", Tenant: "red"}, "", "red", schema.OnlyTenant("red")},
	} {
		if of, _, err := listFilter(&c.who, c.asked, c.tenant); of != c.of || err != nil {
			t.Errorf("%+v asks for %q of %q: %+v, %v", c.who, c.asked, c.tenant, of, err)
		}
	}
}
