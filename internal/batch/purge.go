package batch

import (
	"context"
	"iter"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// purgeEvery is the interval between deletions.
const purgeEvery = 10 * time.Minute

// purge deletes expired data until ctx ends. All front doors do so.
func (o *Options) purge(ctx context.Context) {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			o.forget(ctx, now)
			o.purgeCalls(ctx, now)
		}
	}
}

// forget deletes the payloads of tenants whose retention has ended at the given time: those of
// ended journals and of held calls.
func (o *Options) forget(ctx context.Context, now time.Time) {
	for _, j := range o.Store.Payloads.Overdue(now) {
		bounded, cancel := bound(ctx)
		err := o.Store.Payloads.Forget(bounded, j.Tenant, j.ID)
		cancel()
		switch schema.KindOf(err) {
		case "", schema.KindNotFound: // it is no longer kept
		case schema.KindConflict:
			o.Log.Debug("the payloads of a journal cannot be deleted yet", "journal", j.ID, "error", err)
		default:
			if ctx.Err() == nil {
				o.Log.Warn("deleting the payloads of a journal failed; it is tried again", "journal", j.ID, "error", err)
			}
		}
	}
	if err := o.Ledger.Payloads.Forget(ctx, now, o.needsApproval); err != nil && ctx.Err() == nil {
		o.Log.Warn("deleting the payloads of held calls failed; it is tried again", "error", err)
	}
}

// needsApproval reports whether an approval is still needed: for audit lines that a lost process
// had not written, or by the journal of its call, which copies the result before it ends.
func (o *Options) needsApproval(ctx context.Context, a *ledger.Approval) (bool, error) {
	if !o.Desk.Repaired() {
		return true, nil
	}
	id, _, stored := ParseCallID(a.CallID)
	if !stored {
		return false, nil
	}
	m, err := o.Store.Get(ctx, a.Binding.Tenant, id)
	if schema.KindOf(err) == schema.KindNotFound {
		return false, nil
	}
	return err == nil && m.State != journal.Ended, err
}

// purgeCalls deletes the calls of journals that ended longer than KeepCalls ago.
func (o *Options) purgeCalls(ctx context.Context, now time.Time) {
	for _, j := range o.Store.Payloads.WithCalls(now.Add(-o.KeepCalls)) {
		bounded, cancel := bound(ctx)
		err := o.Store.PurgeCalls(bounded, j.Tenant, j.ID)
		cancel()
		if kind := schema.KindOf(err); err != nil && kind != schema.KindNotFound && kind != schema.KindConflict && ctx.Err() == nil {
			o.Log.Warn("deleting the calls of an ended journal failed; it is tried again", "journal", j.ID, "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// journals returns the journals of these tenants that the filter selects. It reads them page by
// page and ignores the filter's Limit.
func (o *Options) journals(of schema.Tenants, f journal.Filter) iter.Seq[*journal.Manifest] {
	f.Limit = 1000
	return func(yield func(*journal.Manifest) bool) {
		for cursor := ""; ; {
			page, next := o.Store.List(of, f, cursor)
			for _, m := range page {
				if !yield(m) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}
