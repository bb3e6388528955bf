package batch

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Order describes a batch to create.
type Order struct {
	Principal schema.Principal
	// Key is the caller's Idempotency-Key, or "". Fingerprint is the digest of the request with
	// that key.
	Key, Fingerprint string
	Priority         int
	Life             time.Duration // 0 means 24 h
	CallbackURL      string
	Labels           map[string]string
	// Calls is the number of calls that the batch is created with, if known.
	Calls int
	// Trace is the trace context of the request. The spans of its calls link to it.
	Trace string
}

// Batches gives principals access to their batches. It is safe for concurrent use.
type Batches struct {
	o       *Options
	ids     *IDs
	jobs    *jobs
	backlog *backlog
	intakes *intakes
}

// CallID returns the id of the call at index of a journal, for the named principal.
func (b *Batches) CallID(journalID schema.BatchID, index uint64, principal string) schema.CallID {
	return b.ids.CallID(journalID, index, principal)
}

// MaxLife returns the longest lifetime of a batch.
func (b *Batches) MaxLife() time.Duration { return b.o.Store.MaxLife() }

// Create creates a batch, or returns the existing batch of the key with replayed set.
func (b *Batches) Create(ctx context.Context, o Order) (m *journal.Manifest, replayed bool, err error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	o.Life = cmp.Or(o.Life, min(defaultLife, b.o.Store.MaxLife()))
	if o.Life < minLife || o.Life > b.o.Store.MaxLife() {
		return nil, false, schema.Errorf(schema.KindInvalidRequest, "The lifetime of a batch (expires_in) must be between %s and %s.", minLife, b.o.Store.MaxLife())
	}
	if o.Priority < -10 || o.Priority > 10 {
		return nil, false, schema.Errorf(schema.KindInvalidRequest, "The priority of a batch must be between -10 and 10; 0 is normal.")
	}
	hash := ""
	if o.Key != "" {
		hash = journal.KeyHash(o.Principal.ID(), o.Key)
		kept, err := b.o.recall(ctx, &o.Principal, o.Key)
		if err == nil {
			return b.sameBatch(ctx, &o, kept)
		}
		if schema.KindOf(err) != schema.KindNotFound {
			return nil, false, err
		}
	}
	id := newJournalID(journal.Batch)
	done, err := b.backlog.reserve(&o, id)
	if err != nil {
		return nil, false, err
	}
	now := time.Now().UTC()
	m = &journal.Manifest{
		ID: id, Kind: journal.Batch, Principal: o.Principal.Lasting(), Priority: o.Priority, Expires: now.Add(o.Life), CallbackURL: o.CallbackURL,
		Fingerprint: o.Fingerprint, Key: hash, Labels: o.Labels, Trace: o.Trace,
	}
	err = b.o.Store.Create(ctx, m)
	done()
	if err != nil {
		return nil, false, err
	}
	kept, mine, err := remember(ctx, b.o.Store, hash, journal.Entry{Fingerprint: o.Fingerprint, Journal: m.ID})
	if err == nil && mine {
		if owned, claimErr := b.o.Store.Claim(ctx, m.Principal.Tenant, m.ID, b.o.ID); claimErr == nil {
			b.jobs.start(newJob(b.o, b.ids, owned))
		}
		return m, false, nil
	}
	if err != nil {
		return nil, false, err // the key may be stored nevertheless; a repeated request then finds the batch open
	}
	// The batch is empty and no caller knows its id. The front door that adopts it ends it.
	if _, cancelErr := b.o.Store.Change(ctx, m.Principal.Tenant, m.ID, func(m *journal.Manifest) error {
		m.State, m.Reason = journal.Canceling, "two concurrent requests used the same key"
		return nil
	}); cancelErr != nil {
		b.o.Log.Warn("ending a batch whose key belongs to another batch", "journal", m.ID, "error", cancelErr)
	}
	return b.sameBatch(ctx, &o, kept)
}

// ErrKeyReused returns the error for a request that reuses the key of another batch.
func ErrKeyReused() *schema.Error {
	return schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for another request; no batch was created. Use a new key for a new request.")
}

func (b *Batches) sameBatch(ctx context.Context, o *Order, kept journal.Entry) (*journal.Manifest, bool, error) {
	if kept.Fingerprint != o.Fingerprint || kept.CallID != "" {
		return nil, false, ErrKeyReused()
	}
	m, err := b.o.Store.Get(ctx, o.Principal.Tenant, kept.Journal)
	if schema.KindOf(err) == schema.KindNotFound && time.Since(kept.At) > clocksDiffer {
		err = journal.LostKey()
	}
	return m, true, err
}

// Get returns the manifest of a batch of the principal.
func (b *Batches) Get(ctx context.Context, id schema.BatchID, who schema.Principal) (*journal.Manifest, error) {
	none := schema.Errorf(schema.KindNotFound, "There is no batch %q.", id)
	if !strings.HasPrefix(string(id), batchPrefix) || len(id) != len(batchPrefix)+26 || !plain(string(id[len(batchPrefix):])) {
		return nil, none
	}
	m, err := b.o.Store.Get(ctx, who.Tenant, id)
	if schema.KindOf(err) == schema.KindNotFound && b.o.lostBefore(id) {
		return nil, journal.LostBatch()
	}
	if schema.KindOf(err) == schema.KindNotFound || err == nil && (m.Kind != journal.Batch || !m.Principal.Same(&who)) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	return b.current(ctx, m)
}

// current returns the manifest with up-to-date counts.
func (b *Batches) current(ctx context.Context, m *journal.Manifest) (*journal.Manifest, error) {
	if m.State == journal.Ended {
		return m, nil
	}
	m = m.Clone()
	if m.Sealed.IsZero() { // also while an open batch is being canceled
		stored, err := b.o.Store.Accepted(ctx, m.Principal.Tenant, m.ID)
		if err != nil {
			return nil, err
		}
		m.Calls = max(m.Calls, stored)
	}
	if j := b.jobs.find(m.ID); j != nil {
		m.Counts = j.l.owned.Progress().Counts() // more recent than the stored counts
	}
	return m, nil
}

// List returns a page of the principal's batches, newest first, and the cursor of the next page.
func (b *Batches) List(who schema.Principal, states []journal.State, limit int, cursor string) ([]*journal.Manifest, string, error) {
	if cursor != "" && !journal.IsCursor(cursor) {
		return nil, "", schema.Errorf(schema.KindInvalidRequest, "This cursor is invalid; start again without a cursor.")
	}
	page, next := b.o.Store.List(schema.OnlyTenant(who.Tenant), journal.Filter{Kind: journal.Batch, States: states, Principal: who.Name, Limit: limit}, cursor)
	return page, next, nil
}

// Cancel starts no further calls of a batch; running calls may finish. A batch that has ended
// remains unchanged.
func (b *Batches) Cancel(ctx context.Context, id schema.BatchID, who schema.Principal) (*journal.Manifest, error) {
	return b.End(ctx, id, who, canceledByCaller)
}

// canceledByCaller is the reason of a batch that its caller canceled.
const canceledByCaller = "its caller canceled it"

// End is like Cancel, with another reason, which the batch then shows.
func (b *Batches) End(ctx context.Context, id schema.BatchID, who schema.Principal, reason string) (*journal.Manifest, error) {
	if _, err := b.Get(ctx, id, who); err != nil {
		return nil, err
	}
	m, err := b.end(ctx, who.Tenant, id, reason)
	if err != nil {
		return nil, err
	}
	return b.current(ctx, m)
}

// ResultBody returns the result bytes of a call of the tenant's batch, from the log or from the
// object store.
func (b *Batches) ResultBody(ctx context.Context, tenant schema.TenantID, id schema.BatchID, rec *journal.ResultRecord) ([]byte, error) {
	return resultBody(ctx, b.o.Store, tenant, id, rec)
}

// Results returns a page of the results of a batch of the tenant; see [journal.Store.Results].
func (b *Batches) Results(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after journal.Cursor, most int) ([]journal.ResultRecord, journal.Cursor, error) {
	return b.o.Store.Results(ctx, tenant, id, after, most)
}

// Follow streams the results of a batch of the tenant as they are stored; see
// [journal.Store.Follow].
func (b *Batches) Follow(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after journal.Cursor, f func([]journal.ResultRecord, journal.Cursor) error) error {
	return b.o.Store.Follow(ctx, tenant, id, after, f)
}

// Changes returns a channel that receives a signal after each change of a batch of the tenant.
// Signals that are not received in time are dropped. stop ends the subscription.
func (b *Batches) Changes(tenant schema.TenantID, id schema.BatchID) (changed <-chan struct{}, stop func()) {
	words := make(chan struct{}, 1)
	return words, b.o.Store.WatchOne(schema.OnlyTenant(tenant), id, func(*journal.Manifest) { notify(words) })
}

// Unended returns the number of batches that have not ended, over all principals and front doors,
// and the creation time of the oldest one, or the zero time if there are none.
func (b *Batches) Unended() (n int, oldest time.Time) {
	b.o.Store.EachOpen(schema.AllTenants(), func(m *journal.Manifest) {
		if m.Kind != journal.Batch {
			return
		}
		if n++; oldest.IsZero() || m.Created.Before(oldest) {
			oldest = m.Created
		}
	})
	return n, oldest
}
