package cache

import (
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestResultsAreNotSharedBetweenTenants(t *testing.T) {
	of := func(tenant schema.TenantID) key {
		return keyOf(&schema.Call{Server: "s", Tool: "t", Arguments: []byte(`{}`), Principal: schema.Principal{Name: "ann", Tenant: tenant}}, true)
	}
	if of("red") == of("blue") || of("red") == of("") {
		t.Error("two tenants have one key")
	}
	if of("") != of(schema.DefaultTenant) {
		t.Error("the default tenant has two keys")
	}
}
