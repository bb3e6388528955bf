package calls

import (
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Backlog is what is stored and has not ended, over all principals and front doors.
type Backlog struct {
	// Approvals are the calls that wait for one, and OldestApproval is when the first of
	// them was held; zero: there are none.
	Approvals      int
	OldestApproval time.Time
	// ByTenant is the number of Approvals of each tenant, by its stored id.
	ByTenant map[schema.TenantID]int
	// Held are the calls that wait for an approval or run after one, and HeldBytes the
	// bytes of their arguments.
	Held      int
	HeldBytes int64
	// Batches have not ended, and OldestBatch is when the first of them was created.
	Batches     int
	OldestBatch time.Time
	// LostRecords counts execution records that this process could not store.
	LostRecords uint64
}

// Backlog returns what is stored and has not ended, as this process sees it.
func (c *Calls) Backlog() (b Backlog) {
	b.ByTenant = make(map[schema.TenantID]int)
	if c.o.Ledger != nil {
		c.o.Ledger.Each(schema.AllTenants(), func(a *ledger.Approval) {
			if a.State == ledger.Pending {
				b.ByTenant[a.Binding.Tenant.Stored()]++
				if b.Approvals++; b.OldestApproval.IsZero() || a.Created.Before(b.OldestApproval) {
					b.OldestApproval = a.Created
				}
			}
		})
		b.Held, b.HeldBytes = c.o.Ledger.Held()
	}
	if c.o.Durable != nil {
		b.Batches, b.OldestBatch = c.o.Durable.Batches.Unended()
	}
	if c.o.Records != nil {
		b.LostRecords = c.o.Records.Stats().Lost
	}
	return b
}
