package usage

import (
	"testing"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

func TestUsageOfOthersNeedsAScope(t *testing.T) {
	for _, c := range []struct {
		who       schema.Principal
		tenant    string
		tenantIs  string // "" means all
		principal string
	}{
		{schema.Principal{Name: "ann"}, "", "", ""}, // its credential has no scopes, so it may do everything
		{schema.Principal{Name: "ann"}, "blue", "blue", ""},
		{schema.Principal{Name: "ann", Tenant: "red"}, "", "red", ""},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadCalls)}, "", "red", "ann"},
		{schema.Principal{Name: "ann", Grant: grant(scope.CallTools)}, "", "default", "ann"},
		{schema.Principal{Name: "ann", Grant: grant(scope.CallTools)}, "blue", "\x00", "ann"},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadCalls, scope.Admin)}, "", "red", ""},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.Admin)}, "blue", "\x00", ""},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.Admin)}, "default", "\x00", ""},
		{schema.Principal{Name: "ann", Grant: grant(scope.Admin)}, "", "", ""},
		{schema.Principal{Name: "ann", Grant: grant(scope.AdminTenant)}, "", "default", ""},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.AdminTenant)}, "", "red", ""},
		{schema.Principal{Name: "ann", Tenant: "red", Grant: grant(scope.ReadAllCalls)}, "blue", "\x00", ""},
		{schema.Principal{Name: "ann", Grant: grant(scope.ReadAllCalls)}, "blue", "blue", ""},
	} {
		var q calls.UsageQuery
		limit(&q, &c.who, c.tenant)
		tenant := schema.TenantID("")
		if q.Tenant != nil {
			tenant = *q.Tenant
		}
		if string(tenant) != c.tenantIs || q.Principal != c.principal {
			t.Errorf("%+v asks for tenant %q: tenant %q, principal %q", c.who, c.tenant, tenant, q.Principal)
		}
	}
}

func grant(scopes ...string) schema.Grant { return &scope.Grant{Scopes: scope.Of(scopes)} }
