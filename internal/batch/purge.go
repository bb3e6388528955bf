package batch

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// purgeEvery is how often the calls of ended batches are looked through.
const purgeEvery = 10 * time.Minute

// purge forgets the calls of batches that ended long ago, until ctx ends.
func (o *Options) purge(ctx context.Context) {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for m := range o.journals(schema.AllTenants(), journal.Filter{States: []journal.State{journal.Ended}}) {
			if m.Purged || time.Since(m.Ended) < o.KeepCalls {
				continue
			}
			bounded, cancel := bound(ctx)
			if err := o.Store.PurgeCalls(bounded, m.Principal.Tenant, m.ID); err != nil && !errors.Is(err, context.Canceled) {
				o.Log.Warn("deleting the calls of an ended journal failed", "journal", m.ID, "error", err)
			}
			cancel()
		}
	}
}

// journals returns the journals of these tenants that the filter selects, read page by page; its Limit is
// not used.
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
