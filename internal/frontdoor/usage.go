package frontdoor

import (
	"context"

	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/catalog"
)

// openUsage opens what counts the calls of the log by hour. Where its stream cannot be
// opened, because it was not made or NATS does not permit it yet, nothing is counted here;
// whoever can does it later, from the records that are kept.
func (d *FrontDoor) openUsage(ctx context.Context, s *stores) *usage.Usage {
	u, err := usage.Open(ctx, d.o.Stored, usage.Options{Records: s.records, Lead: d.leads, Counted: usage.CountIn(d.o.Metrics.Usage()), Log: d.o.Log})
	if err != nil {
		d.o.Log.Warn("usage is not counted by this front door: run `callyard init`, update NATS to the permissions of this version, and give it more space", "error", err)
		return nil
	}
	return u
}

// leads says that this front door has the smallest id of those that are heard of. Front
// doors that do not hear of each other each lead for a while.
func (d *FrontDoor) leads() bool {
	for _, p := range d.catalog.Processes() {
		if p.Role == catalog.RoleFrontDoor && p.ID < d.id {
			return false
		}
	}
	return true
}
