package batch

import (
	"context"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// deletedTenant is the reason of batches that end because their tenant is deleted.
const deletedTenant = "its tenant is deleted"

// EndTenant cancels the batches of a tenant that is being deleted, and deletes those that have
// ended. open is the number of batches that have not ended yet, because their running calls may
// finish. Single durable calls share journals with other tenants, so they remain.
func (b *Batches) EndTenant(ctx context.Context, tenant schema.TenantID) (open, deleted int, err error) {
	var running, ended []schema.BatchID
	of := schema.OnlyTenant(tenant)
	b.o.Store.EachOpen(of, func(m *journal.Manifest) {
		if m.Kind == journal.Batch {
			running = append(running, m.ID)
		}
	})
	for _, id := range running {
		if _, err := b.end(ctx, tenant, id, deletedTenant); err != nil {
			return len(running), 0, err
		}
	}
	for m := range b.o.journals(of, journal.Filter{Kind: journal.Batch, States: []journal.State{journal.Ended}}) {
		if !m.Deleted {
			ended = append(ended, m.ID)
		}
	}
	for _, id := range ended {
		if err := b.o.Store.Delete(ctx, tenant, id); err != nil {
			return len(running), deleted, err
		}
		deleted++
	}
	return len(running), deleted, nil
}

// end cancels a batch with the given reason.
func (b *Batches) end(ctx context.Context, tenant schema.TenantID, id schema.BatchID, reason string) (*journal.Manifest, error) {
	m, err := b.o.Store.Change(ctx, tenant, id, func(m *journal.Manifest) error {
		if m.State != journal.Ended && m.State != journal.Canceling {
			m.State, m.Reason = journal.Canceling, reason
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.jobs.changed(m)
	return m, nil
}
