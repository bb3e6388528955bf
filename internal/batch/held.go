package batch

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// HeldCall is a call that waits for an approval.
type HeldCall struct {
	Index    uint64
	CustomID string
	Approval *ledger.Approval
}

// Held returns the number of calls of each of the tenant's batches that wait for an approval, as
// of a moment ago. Batches without such calls are omitted.
func (b *Batches) Held(tenant schema.TenantID, batches ...schema.BatchID) map[schema.BatchID]int {
	if len(batches) == 0 {
		return nil
	}
	held := make(map[schema.BatchID]int, len(batches))
	b.o.Ledger.EachUnended(schema.OnlyTenant(tenant), func(a *ledger.Approval) {
		if a.State != ledger.Pending {
			return
		}
		if id, _, ok := ParseCallID(a.CallID); ok && slices.Contains(batches, id) {
			held[id]++
		}
	})
	return held
}

// indexedApproval is the approval of a call of a journal, with the index of the call.
type indexedApproval struct {
	*ledger.Approval
	index uint64
}

// approvalsOf returns the approvals of the calls of a journal, of these tenants, for which fit
// returns true. Their order is undefined.
func approvalsOf(book *ledger.Ledger, tenants schema.Tenants, id schema.BatchID, fit func(*ledger.Approval) bool) (found []indexedApproval) {
	beginning := string(appendJournal(nil, id)) // compared first, because the ids of most approvals differ
	book.Each(tenants, func(a *ledger.Approval) {
		if !strings.HasPrefix(string(a.CallID), beginning) {
			return
		}
		if of, index, ok := ParseCallID(a.CallID); ok && of == id && fit(a) {
			found = append(found, indexedApproval{a.Clone(), index})
		}
	})
	return found
}

// HeldCalls returns at most the given number of calls of a batch of the principal that wait for an
// approval, ordered by index.
func (b *Batches) HeldCalls(ctx context.Context, id schema.BatchID, who schema.Principal, most int) ([]HeldCall, error) {
	m, err := b.Get(ctx, id, who)
	if err != nil || m.State == journal.Ended {
		return nil, err
	}
	found := approvalsOf(b.o.Ledger, schema.OnlyTenant(who.Tenant), id, func(a *ledger.Approval) bool { return a.State == ledger.Pending })
	held := make([]HeldCall, 0, len(found))
	for _, a := range found {
		held = append(held, HeldCall{Index: a.index, Approval: a.Approval})
	}
	slices.SortFunc(held, func(a, b HeldCall) int { return cmp.Compare(a.Index, b.Index) })
	held = held[:min(most, len(held))]
	j := b.jobs.find(id)
	for i := range held {
		if held[i].CustomID, err = b.customID(ctx, j, who.Tenant, id, held[i].Index); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// customID returns the caller's own id of a held call. It is in memory if the batch runs here.
func (b *Batches) customID(ctx context.Context, j *job, tenant schema.TenantID, id schema.BatchID, index uint64) (string, error) {
	if j != nil {
		if it := j.l.calls.heldCall(index); it != nil {
			return it.rec.CustomID, nil
		}
	}
	c, err := b.o.Store.FindCall(ctx, schema.OnlyTenant(tenant), id, index)
	if err != nil {
		return "", err
	}
	return c.CustomID, nil
}

// HeldSingly returns the number of calls of the principal that are held and belong to no batch.
func HeldSingly(book *ledger.Ledger, who *schema.Principal) (n int) {
	book.EachUnended(schema.OnlyTenant(who.Tenant), func(a *ledger.Approval) {
		if a.State != ledger.Pending || a.Binding.Requester.Name != who.Name {
			return
		}
		if _, _, stored := ParseCallID(a.CallID); !stored {
			n++
		}
	})
	return n
}
