package frontdoor

import (
	"context"

	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/catalog"
)

// openUsage opens the counter of calls per hour, which reads the log. If its stream cannot be
// opened, because it was not created or NATS does not permit it yet, this front door counts
// nothing. Another one can count later, from the stored records.
func (d *FrontDoor) openUsage(ctx context.Context, s *stores) *usage.Usage {
	u, err := usage.Open(ctx, d.o.Stored, usage.Options{Records: s.records, Lead: d.leads, Counted: usage.CountIn(d.o.Metrics.Usage()), Log: d.o.Log})
	if err != nil {
		d.o.Log.Warn("this front door does not count usage: load the NATS permissions of this version, run `callyard init`, give NATS more space if it lacks that, and then restart this front door", "error", err)
		return nil
	}
	return u
}

// leads reports whether this front door has the smallest ID of all that are visible. Front doors
// that do not see each other may lead at the same time for a while.
func (d *FrontDoor) leads() bool {
	for _, p := range d.catalog.Processes() {
		if p.Role == catalog.RoleFrontDoor && p.ID < d.id {
			return false
		}
	}
	return true
}
