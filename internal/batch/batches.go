package batch

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Order is a batch to be made.
type Order struct {
	Principal schema.Principal
	// Key is the caller's Idempotency-Key, "" for none; Fingerprint the digest of
	// the request that carries it.
	Key, Fingerprint string
	Priority         int
	Life             time.Duration // 0: 24 h
	CallbackURL      string
	Labels           map[string]string
	// Calls is how many calls the batch is made with, where that is known.
	Calls int
	// Trace is the trace context of the request; its calls link to it.
	Trace string
}

// Batches are the batches of the principals. It is safe for concurrent use.
type Batches struct {
	o       *Options
	ids     *IDs
	jobs    *jobs
	backlog *backlog
	intakes *intakes
}

// CallID returns the id of a call of a journal, which is the named principal's.
func (b *Batches) CallID(journalID schema.BatchID, index uint64, principal string) schema.CallID {
	return b.ids.CallID(journalID, index, principal)
}

// MaxLife is the longest time that a batch may take.
func (b *Batches) MaxLife() time.Duration { return b.o.Store.MaxLife() }

// Create makes a batch, or returns the one that the key stands for.
func (b *Batches) Create(ctx context.Context, o Order) (m *journal.Manifest, replayed bool, err error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	if o.Life == 0 {
		o.Life = min(defaultLife, b.o.Store.MaxLife())
	}
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
	kept, mine, err := remember(ctx, b.o.Store, hash, o.Fingerprint, "", m.ID, 0)
	if err == nil && mine {
		if owned, claimErr := b.o.Store.Claim(ctx, m.Principal.Tenant, m.ID, b.o.ID); claimErr == nil {
			b.jobs.start(owned, false)
		}
		return m, false, nil
	}
	// An empty batch that nobody knows of: whoever adopts it ends it.
	if _, cancelErr := b.o.Store.Change(ctx, m.Principal.Tenant, m.ID, func(m *journal.Manifest) error {
		m.State, m.Reason = journal.Canceling, "two concurrent requests used the same key"
		return nil
	}); cancelErr != nil {
		b.o.Log.Warn("ending a batch whose key belongs to another batch", "journal", m.ID, "error", cancelErr)
	}
	if err != nil {
		return nil, false, err
	}
	return b.sameBatch(ctx, &o, kept)
}

// ErrKeyReused refuses a request with the key of another batch.
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

// Get returns the manifest of a batch of the principal's.
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

// current returns the manifest with the numbers of this moment.
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
		m.Counts = j.l.owned.Progress().Counts() // newer than what was written
	}
	return m, nil
}

// List returns a page of the principal's batches, the newest first, and the cursor of the next page.
func (b *Batches) List(who schema.Principal, states []journal.State, limit int, cursor string) ([]*journal.Manifest, string, error) {
	if cursor != "" && !journal.IsCursor(cursor) {
		return nil, "", schema.Errorf(schema.KindInvalidRequest, "This cursor is invalid; start again without a cursor.")
	}
	page, next := b.o.Store.List(schema.OnlyTenant(who.Tenant), journal.Filter{Kind: journal.Batch, States: states, Principal: who.Name, Limit: limit}, cursor)
	return page, next, nil
}

// Cancel lets nothing more of a batch start; what runs may finish. A batch that has
// ended stays as it is.
func (b *Batches) Cancel(ctx context.Context, id schema.BatchID, who schema.Principal) (*journal.Manifest, error) {
	return b.End(ctx, id, who, canceledByCaller)
}

// canceledByCaller is why a batch ends that was canceled.
const canceledByCaller = "its caller canceled it"

// End is Cancel with another reason, which the batch shows from then on.
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

// ResultBody returns the bytes that the tool of a call of the tenant's batch answered,
// wherever they lie.
func (b *Batches) ResultBody(ctx context.Context, tenant schema.TenantID, id schema.BatchID, rec *journal.ResultRecord) ([]byte, error) {
	return resultBody(ctx, b.o.Store, tenant, id, rec)
}

// Results returns a page of the results of a batch of the tenant; see [journal.Store.Results].
func (b *Batches) Results(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after journal.Cursor, most int) ([]journal.ResultRecord, journal.Cursor, error) {
	return b.o.Store.Results(ctx, tenant, id, after, most)
}

// Follow passes on the results of a batch of the tenant as they come; see
// [journal.Store.Follow].
func (b *Batches) Follow(ctx context.Context, tenant schema.TenantID, id schema.BatchID, after journal.Cursor, f func([]journal.ResultRecord, journal.Cursor) error) error {
	return b.o.Store.Follow(ctx, tenant, id, after, f)
}

// Changes returns a channel that gets a word after each change of a batch of the tenant; words
// that nobody reads are dropped. stop ends it.
func (b *Batches) Changes(tenant schema.TenantID, id schema.BatchID) (changed <-chan struct{}, stop func()) {
	words := make(chan struct{}, 1)
	return words, b.o.Store.WatchOne(schema.OnlyTenant(tenant), id, func(*journal.Manifest) { notify(words) })
}

// Unended returns how many batches have not ended, over all principals and front doors, and
// when the first of them was created; the zero time where there are none.
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
