package calls

import (
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Backlog summarizes the stored calls and batches that have not ended, over all principals and
// front doors.
type Backlog struct {
	// Approvals is the number of calls that wait for an approval. OldestApproval is the time at
	// which the oldest of them was held; it is zero if there are none.
	Approvals      int
	OldestApproval time.Time
	// ByTenant splits Approvals by stored tenant id.
	ByTenant map[schema.TenantID]int
	// Held is the number of calls that wait for an approval or run after one. HeldBytes is the
	// total size of their arguments.
	Held      int
	HeldBytes int64
	// Batches is the number of batches that have not ended. OldestBatch is the creation time of
	// the oldest of them.
	Batches     int
	OldestBatch time.Time
	// LostRecords counts execution records that this process could not store.
	LostRecords uint64
}

// Backlog returns the current backlog as this process sees it.
func (c *Calls) Backlog() (b Backlog) {
	b.ByTenant = make(map[schema.TenantID]int)
	if c.o.Ledger != nil {
		c.o.Ledger.EachUnended(schema.AllTenants(), func(a *ledger.Approval) {
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
