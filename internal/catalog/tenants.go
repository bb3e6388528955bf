package catalog

import "github.com/callyard/callyard/pkg/schema"

// Tenants reports which servers each tenant sees; see [Finding]. It is safe for concurrent use.
type Tenants struct{ c *Catalog }

// TenantsOf returns the Tenants of a catalog.
func TenantsOf(c *Catalog) Tenants { return Tenants{c} }

// Apart reports whether tenants can see different servers at all.
func (t Tenants) Apart() bool { return t.c.finding.Sees != nil }

// Sees reports whether the tenant sees the server, whether or not it exists.
func (t Tenants) Sees(tenant schema.TenantID, id schema.ServerID) bool {
	return t.c.finding.Sees == nil || t.c.finding.Sees(tenant, id)
}

// All reports whether the tenant sees every server and may therefore see information about the
// fleet as a whole.
func (t Tenants) All(tenant schema.TenantID) bool {
	return t.c.finding.Sees == nil || t.c.finding.Apart != nil && !t.c.finding.Apart(tenant)
}

// Hidden returns the error for a server that does not exist if the tenant does not see the server,
// else nil.
func (t Tenants) Hidden(tenant schema.TenantID, id schema.ServerID) error {
	if t.Sees(tenant, id) {
		return nil
	}
	t.c.mu.RLock()
	defer t.c.mu.RUnlock()
	return t.c.noServer(id)
}

// Seen returns the catalog as visible to the tenant, whatever its principals may call.
func (t Tenants) Seen(tenant schema.TenantID) *Seen {
	if t.All(tenant) {
		return SeenBy(t.c, tenant, nil)
	}
	return SeenBy(t.c, tenant, tenantJudge{t, tenant})
}

// tenantJudge is the [Judge] of a tenant that some servers may be hidden from.
type tenantJudge struct {
	all    Tenants
	tenant schema.TenantID
}

func (j tenantJudge) Server(id schema.ServerID) bool         { return j.all.Sees(j.tenant, id) }
func (j tenantJudge) Tool(id schema.ServerID, _ string) bool { return j.Server(id) }
func (j tenantJudge) Resources(id schema.ServerID) bool      { return j.Server(id) }
func (j tenantJudge) Prompts(id schema.ServerID) bool        { return j.Server(id) }
func (j tenantJudge) SeesEverything() bool                   { return false }
func (j tenantJudge) Key() string                            { return "\x04\x00" + string(j.tenant.OrDefault()) }
