package frontdoor

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/pkg/schema"
)

// auditWithin is the timeout of writing audit records.
const auditWithin = 5 * time.Second

// recordAccepted writes to the audit record which principal accepted tool definitions, and waits
// until that is stored.
func (d *FrontDoor) recordAccepted(ctx context.Context, by schema.Principal, server schema.ServerID, accepted []catalog.Acceptance) error {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	for _, a := range accepted {
		if err := d.stores.approvals.Audit.Append(ctx, audit.Entry{
			Kind: audit.DefinitionAccepted, By: by.Name, Owner: by.Owner, Channel: "api", Server: server, Tool: a.Tool, DefinitionDigest: a.Digest,
		}); err != nil {
			return err
		}
		d.o.Log.Info("the definition of a tool was accepted", "server", server, "tool", a.Tool, "digest", a.Digest, "by", by.Name)
	}
	return d.stores.approvals.Audit.Sync(ctx)
}

// gaugePins updates the metric of tools whose definition is not accepted. It takes the value that
// it returned the last time.
func (d *FrontDoor) gaugePins(before map[schema.ServerID]int) map[schema.ServerID]int {
	now := d.catalog.ChangedTools()
	for server, n := range now {
		d.o.Metrics.SetChangedTools(string(server), n)
		delete(before, server)
	}
	for server := range before {
		d.o.Metrics.ForgetChangedTools(string(server))
	}
	return now
}
