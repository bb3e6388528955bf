package frontdoor

import (
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/pkg/schema"
)

// guard lets a call leave only while its principal's credential stands, its server is there for its tenant
// and its tool is switched on and not in quarantine. A call may have waited for hours, in a batch or for an
// approval, since these were looked at. Each call passes it, so it takes no lock, and
// no memory where it lets the call leave.
func guard(c *catalog.Catalog, keys *callers.Callers) dispatch.Guard {
	return func(call *schema.Call) error {
		if err := keys.Valid(call.Principal.Name); err != nil {
			return err // it is for the caller as it is
		}
		if err := catalog.TenantsOf(c).Hidden(call.Principal.Tenant, call.Server); err != nil {
			return err
		}
		return c.Standing(call.Server, call.Tool, call.ToolDigest)
	}
}
