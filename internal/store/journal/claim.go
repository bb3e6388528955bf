package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// lease is the claim on a journal. The stream removes it if it is not renewed, so that only one clock
// counts: that of the NATS server.
type lease struct {
	Owner string `json:"owner"`
	Write string `json:"write"` // identifies the claim
}

// Claim makes owner the owner of a journal of the tenant if there is none, and rebuilds the outcomes
// of its calls. [schema.KindConflict] means that there is another owner; retry after its lease may
// have expired. An ended journal can be claimed, to settle calls, until its calls are purged.
func (s *Store) Claim(ctx context.Context, tenant schema.TenantID, id schema.BatchID, owner string) (*Owned, error) {
	return s.claim(ctx, schema.OnlyTenant(tenant), id, owner, &Owned{})
}

// ClaimEnded is Claim for an ended journal, even if its calls are purged. It is used to replace lost
// results. It is refused if the payloads were deleted because of the retention.
func (s *Store) ClaimEnded(ctx context.Context, tenant schema.TenantID, id schema.BatchID, owner string) (*Owned, error) {
	return s.claim(ctx, schema.OnlyTenant(tenant), id, owner, &Owned{purged: true})
}

// of reads the lease. It returns a zero lease if there is none.
func (s leases) of(ctx context.Context, id schema.BatchID) (lease, uint64, error) {
	data, revision, err := s.get(ctx, id)
	if errors.Is(err, bus.ErrNotFound) {
		return lease{}, 0, nil
	}
	var l lease
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	return l, revision, err
}

func (s *Store) claim(ctx context.Context, of schema.Tenants, id schema.BatchID, owner string, o *Owned) (*Owned, error) {
	if _, err := manifestOf(ctx, s, of, id); err != nil {
		return nil, err
	}
	held, revision, err := s.leases.of(ctx, id)
	if err != nil {
		return nil, unavailable(err)
	}
	if revision != 0 && !o.force {
		return nil, taken(id, held.Owner)
	}
	o.s, o.of, o.id, o.lease, o.lost, o.renewed = s, of, id, lease{owner, rand.Text()}, make(chan struct{}), make(chan struct{})
	if o.record, err = json.Marshal(o.lease); err != nil {
		return nil, fmt.Errorf("encoding the lease: %w", err)
	}
	begun := time.Now()
	o.revision, err = s.leases.put(ctx, id, o.record, revision, s.lease)
	if err != nil && !errors.Is(err, bus.ErrRefused) { // it may be stored anyway
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
		l, at, again := s.leases.of(look, id)
		cancel()
		switch {
		case again != nil:
			err = errors.Join(err, again)
		case l == o.lease:
			o.revision, err = at, nil
		case errors.Is(err, bus.ErrConflict):
			return nil, taken(id, l.Owner)
		}
	}
	if err != nil {
		return nil, unavailable(err)
	}
	o.until.Store(int64(begun.Sub(s.born) + s.lease))
	o.ctx, o.stop = context.WithCancel(context.Background())
	go o.renew()
	if err := o.begin(ctx); err != nil {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
		defer cancel()
		return nil, errors.Join(err, o.Release(release))
	}
	return o, nil
}

func taken(id schema.BatchID, owner string) error {
	return schema.Errorf(schema.KindConflict, "Journal %s is owned by %s.", id, cmp.Or(owner, "another process")).RetryableAfter(time.Second)
}

// begin increments the epoch, fences the logs and then reads them. The order matters: when the logs
// are read, no other writer can append to them any more.
func (o *Owned) begin(ctx context.Context) error {
	m, err := o.s.change(ctx, o.of, o.id, func(m *Manifest) error {
		if m.Forgotten || m.Purged && !o.purged {
			return schema.Errorf(schema.KindConflict, "Journal %s has ended and its calls have been deleted.", o.id)
		}
		m.Epoch++
		m.Owner = o.lease.Owner
		return nil
	})
	if err != nil {
		return err
	}
	o.manifest.Store(m)
	o.epoch.Store(m.Epoch)
	for _, log := range []Log{LogIntents, LogResults} {
		// Epoch 1 belongs to the first owner only, so the log is empty.
		t, err := o.s.attach(ctx, o.id, log, m.Epoch, m.Epoch == 1)
		if err != nil {
			return appendFault(o.id, err)
		}
		t.lost = o.lose
		if log == LogIntents {
			o.intents = t
		} else {
			o.results = t
		}
	}
	if err := o.rebuild(ctx); err != nil {
		return err
	}
	o.intents.run()
	o.results.run()
	o.running.Store(true)
	select {
	case <-o.lost: // lost before the tails were running, so they did not fail
		return appendFault(o.id, errLost)
	default:
		return nil
	}
}

// Owned is a claimed journal. The claim is renewed until [Owned.Release] or [Owned.Close], one of
// which must be called.
type Owned struct {
	s        *Store
	of       schema.Tenants // tenants for which it was claimed
	id       schema.BatchID
	epoch    atomic.Uint64
	lease    lease
	record   []byte
	manifest atomic.Pointer[Manifest]
	progress *Progress
	intents  *tail
	results  *tail
	running  atomic.Bool // whether the tails run
	force    bool        // ignore the lease of another owner
	purged   bool        // claim it even if its calls are purged
	reader   reader

	until atomic.Int64 // expiry of the lease as time since Store.born, on the monotonic clock
	// Used by the renewing goroutine, and after it by Release:
	revision uint64 // of the lease
	doubtful bool   // the lease had expired, so another process may have claimed the journal
	gone     bool   // another process has the lease

	ctx     context.Context
	stop    context.CancelFunc
	renewed chan struct{} // closed when the goroutine has ended
	lose1   sync.Once
	lost    chan struct{}

	wakeMu       sync.Mutex
	subscription *subscription
	unlisten     func()
}

// ID returns the id of the journal.
func (o *Owned) ID() schema.BatchID { return o.id }

// Resumed reports whether the journal had an owner before this claim.
func (o *Owned) Resumed() bool { return o.Epoch() > 1 }

// Epoch returns the number of this claim. Later claims have greater numbers.
func (o *Owned) Epoch() uint64 { return o.epoch.Load() }

// Manifest returns a copy of the manifest as of the claim or the last change by this owner.
func (o *Owned) Manifest() *Manifest { return o.manifest.Load().Clone() }

// Sealed reports whether the journal accepts no more calls, as of the claim or the last change by this
// owner.
func (o *Owned) Sealed() bool { return !o.manifest.Load().Sealed.IsZero() }

// Progress returns the outcomes of the calls. It is updated with each result that is appended here.
func (o *Owned) Progress() *Progress { return o.progress }

// Lost returns a channel that is closed when another owner claims the journal. Nothing must be sent
// after that, and every append is refused with [schema.KindConflict].
func (o *Owned) Lost() <-chan struct{} { return o.lost }

// Held reports whether the lease is valid by the clock of this machine. Check it immediately before
// sending a call. It is also false while NATS is unreachable for longer than a lease, and may
// become true again.
func (o *Owned) Held() bool {
	select {
	case <-o.lost:
		return false
	default:
		return int64(time.Since(o.s.born)) < o.until.Load()
	}
}

// lose ends the claim.
func (o *Owned) lose(err error) {
	o.lose1.Do(func() {
		close(o.lost)
		o.s.log.Warn("a journal was taken over by another owner", "journal_id", o.id, "epoch", o.Epoch(), "error", err)
		if o.running.Load() {
			o.intents.fail(err)
			o.results.fail(err)
		}
	})
}

// renew renews the lease periodically.
func (o *Owned) renew() {
	defer close(o.renewed)
	tick := time.NewTicker(o.s.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-o.lost:
			return
		case <-o.ctx.Done():
			return
		}
		if err := o.renewOnce(); err != nil {
			o.gone = true
			o.lose(err)
			return
		}
	}
}

// renewOnce renews the lease. It returns an error if another process has it.
func (o *Owned) renewOnce() error {
	ctx, cancel := context.WithTimeout(o.ctx, max(o.s.lease/3, appendTimeout))
	defer cancel()
	for range 3 {
		begun := time.Now()
		revision, err := o.s.leases.put(ctx, o.id, o.record, o.revision, o.s.lease)
		if err == nil {
			o.doubtful = o.doubtful || o.revision == 0
			o.revision = revision
			if o.doubtful {
				m, _, err := o.s.read(ctx, o.of, o.id, bus.Leader)
				if err != nil {
					return nil // retried at the next renewal
				}
				if mine := o.Epoch(); mine != 0 && m.Epoch != mine {
					_ = o.s.leases.drop(ctx, o.id, revision) // otherwise it expires
					return fmt.Errorf("%w: its epoch is %d, ours %d", errLost, m.Epoch, mine)
				}
				o.doubtful = false
			}
			o.until.Store(int64(begun.Sub(o.s.born) + o.s.lease))
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return nil // the outcome is unknown; retried at the next renewal
		}
		l, at, err := o.s.leases.of(ctx, o.id)
		switch {
		case err != nil:
			return nil
		case at != 0 && l != o.lease:
			return fmt.Errorf("%w: %s", errLost, l.Owner)
		}
		o.doubtful = o.doubtful || at == 0
		o.revision = at // an earlier renewal whose reply was lost, or the lease expired
	}
	return nil
}

// Release waits for pending appends until ctx ends, and releases the claim, so that another process
// can claim the journal immediately.
func (o *Owned) Release(ctx context.Context) error {
	o.end(ctx)
	select {
	case <-o.lost:
		return nil
	default:
	}
	if o.gone || o.revision == 0 {
		return nil
	}
	if err := o.s.leases.drop(ctx, o.id, o.revision); err != nil {
		return unavailable(err)
	}
	return nil
}

// Close stops the owner without releasing the lease, as a crash would. Pending appends are abandoned.
func (o *Owned) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.end(ctx)
}

func (o *Owned) end(ctx context.Context) {
	for _, t := range []*tail{o.intents, o.results} {
		switch {
		case t == nil:
		case o.running.Load():
			t.close(ctx)
		default:
			t.stop()
		}
	}
	o.stop()
	<-o.renewed
	o.subscribe().leave() // a reader in progress keeps working, but gets no messages from memory
	o.wakeMu.Lock()
	defer o.wakeMu.Unlock()
	if o.unlisten != nil {
		o.unlisten()
		o.unlisten = nil
	}
}
