package batch

import (
	"context"
	"slices"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// pageCalls is the number of calls that an [ArgumentReader] reads at once. maxPages is the
	// number of pages that it keeps in memory.
	pageCalls = 256
	maxPages  = 8
)

// ArgumentReader reads the arguments of many durable calls, of any principal. It reads adjacent
// calls of a journal with one request. It must not be used concurrently.
type ArgumentReader struct {
	o     *Options
	pages []argumentPage // most recently used first
}

type argumentPage struct {
	tenant  schema.TenantID
	journal schema.BatchID
	first   uint64
	calls   []journal.CallRecord
}

// Arguments returns a new [ArgumentReader].
func (c *Calls) Arguments() *ArgumentReader { return &ArgumentReader{o: c.o} }

// Read returns the arguments of a durable call of the tenant, or nil if they are no longer kept.
// Errors are of KindUnavailable, or those of ctx.
func (r *ArgumentReader) Read(ctx context.Context, tenant schema.TenantID, id schema.CallID) ([]byte, error) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return nil, nil
	}
	calls, err := r.page(ctx, tenant.Stored(), journalID, index-index%pageCalls)
	at := slices.IndexFunc(calls, func(c journal.CallRecord) bool { return c.Index == index })
	if err == nil && at >= 0 {
		var args []byte
		if args, err = r.o.Store.Arguments(ctx, tenant, journalID, &calls[at]); err == nil {
			return args, nil
		}
	}
	if schema.KindOf(err) == schema.KindUnavailable || ctx.Err() != nil {
		return nil, err
	}
	return nil, nil // it was deleted or lost
}

func (r *ArgumentReader) page(ctx context.Context, tenant schema.TenantID, journalID schema.BatchID, first uint64) ([]journal.CallRecord, error) {
	at := slices.IndexFunc(r.pages, func(p argumentPage) bool { return p.tenant == tenant && p.journal == journalID && p.first == first })
	if at < 0 {
		calls, err := r.o.Store.CallsFrom(ctx, tenant, journalID, first, pageCalls)
		if err != nil && len(calls) == 0 { // nothing is known of the calls behind a gap
			return nil, err
		}
		r.pages = append([]argumentPage{{tenant, journalID, first, calls}}, r.pages[:min(len(r.pages), maxPages-1)]...)
		return calls, nil
	}
	p := r.pages[at]
	copy(r.pages[1:at+1], r.pages[:at])
	r.pages[0] = p
	return p.calls, nil
}

// ArgumentsOf returns the accepted arguments of a durable call of the tenant, from the log or from
// the object store. Errors: KindNotFound if they are no longer kept, and KindUnavailable.
func (c *Calls) ArgumentsOf(ctx context.Context, tenant schema.TenantID, id schema.CallID, rec *journal.CallRecord) ([]byte, error) {
	journalID, _, _ := ParseCallID(id)
	return c.o.Store.Arguments(ctx, tenant, journalID, rec)
}
