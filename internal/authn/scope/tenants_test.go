package scope

import (
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func principalOf(t *testing.T, tenant schema.TenantID, scopes ...string) *schema.Principal {
	t.Helper()
	set, err := Parse(scopes)
	if err != nil {
		t.Fatal(err)
	}
	return &schema.Principal{Name: "ops", Tenant: tenant, Grant: &Grant{Scopes: set}}
}

func TestOnlyAdministratorsOfTheDefaultTenantSeeOtherTenants(t *testing.T) {
	for name, c := range map[string]struct {
		who          *schema.Principal
		own, another bool
	}{
		"admin of the default tenant":        {principalOf(t, "", Admin), true, true},
		"tenant admin of the default tenant": {principalOf(t, "", AdminTenant), true, false},
		"admin of a tenant":                  {principalOf(t, "billing", Admin), true, false},
		"tenant admin":                       {principalOf(t, "billing", AdminTenant), true, false},
		"a key without a role":               {&schema.Principal{Name: "root"}, true, true},
	} {
		of := TenantsOf(c.who, Admin)
		if got := of.Include(c.who.Tenant); got != c.own {
			t.Errorf("%s: own tenant visible: %t", name, got)
		}
		if got := of.Include("sales"); got != c.another {
			t.Errorf("%s: another tenant visible: %t", name, got)
		}
	}
}
