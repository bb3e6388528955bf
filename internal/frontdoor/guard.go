package frontdoor

import (
	"github.com/callyard/callyard/internal/authn/callers"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/pkg/schema"
)

// guard lets a call leave only if its principal's credential is valid and includes the tool, its server
// is visible to its tenant, and its tool is enabled and not in quarantine. These were checked before, but a call may
// have waited for hours since then, in a batch or for an approval. Every call passes it, so it
// takes no lock, and allocates nothing for a call that may leave.
func guard(c *catalog.Catalog, keys *callers.Callers) dispatch.Guard {
	return func(call *schema.Call) error {
		if err := keys.Valid(call.Principal.Name); err != nil {
			return err // the caller gets this error unchanged
		}
		if err := keys.MayStillCall(call); err != nil {
			return err
		}
		if err := catalog.TenantsOf(c).Hidden(call.Principal.Tenant, call.Server); err != nil {
			return err
		}
		return c.Standing(call.Server, call.Tool, call.ToolDigest)
	}
}
