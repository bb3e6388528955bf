package batch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// chunkCalls and chunkBytes are how much of a batch is stored at once.
	chunkCalls = 1000
	chunkBytes = 512 << 10
	// storeAfter is how long a call that came waits for others to be stored with it.
	storeAfter = 20 * time.Millisecond
	// minLife and defaultLife bound how long a batch may take.
	minLife     = time.Second
	defaultLife = 24 * time.Hour
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

// MaxLife is the longest time that a batch may take.
func (r *Runner) MaxLife() time.Duration { return r.o.Store.MaxLife() }

// Create makes a batch, or returns the one that the key stands for.
func (r *Runner) Create(ctx context.Context, o Order) (m *journal.Manifest, replayed bool, err error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	if o.Life == 0 {
		o.Life = min(defaultLife, r.o.Store.MaxLife())
	}
	if o.Life < minLife || o.Life > r.o.Store.MaxLife() {
		return nil, false, schema.Errorf(schema.KindInvalidRequest, "The time of a batch (expires_in) is between %s and %s.", minLife, r.o.Store.MaxLife())
	}
	if o.Priority < -10 || o.Priority > 10 {
		return nil, false, schema.Errorf(schema.KindInvalidRequest, "The priority of a batch is between -10 and 10; 0 is normal.")
	}
	hash := ""
	if o.Key != "" {
		hash = journal.KeyHash(o.Principal.Name, o.Key)
		kept, err := r.o.Store.Recall(ctx, hash)
		if err == nil {
			return r.sameBatch(ctx, kept, o.Fingerprint)
		}
		if schema.KindOf(err) != schema.KindNotFound {
			return nil, false, err
		}
	}
	id := newJournalID(journal.Batch)
	done, err := r.reserve(&o, id)
	if err != nil {
		return nil, false, err
	}
	now := time.Now().UTC()
	m = &journal.Manifest{
		ID: id, Kind: journal.Batch, Principal: o.Principal, Priority: o.Priority, Expires: now.Add(o.Life), CallbackURL: o.CallbackURL,
		Fingerprint: o.Fingerprint, Key: hash, Labels: o.Labels, Trace: o.Trace,
	}
	err = r.o.Store.Create(ctx, m)
	done()
	if err != nil {
		return nil, false, err
	}
	kept, mine, err := r.remember(ctx, hash, o.Fingerprint, "", m.ID, 0)
	if err == nil && mine {
		if owned, claimErr := r.o.Store.Claim(ctx, m.ID, r.o.ID); claimErr == nil {
			r.start(owned, false)
		}
		return m, false, nil
	}
	// An empty batch that nobody knows of: whoever adopts it ends it.
	if _, cancelErr := r.o.Store.Change(ctx, m.ID, func(m *journal.Manifest) error {
		m.State, m.Reason = journal.Canceling, "the same key came twice at once"
		return nil
	}); cancelErr != nil {
		r.o.Log.Warn("ending a batch whose key belongs to another", "journal", m.ID, "error", cancelErr)
	}
	if err != nil {
		return nil, false, err
	}
	return r.sameBatch(ctx, kept, o.Fingerprint)
}

func (r *Runner) sameBatch(ctx context.Context, kept journal.Entry, fingerprint string) (*journal.Manifest, bool, error) {
	if kept.Fingerprint != fingerprint || kept.CallID != "" {
		return nil, false, schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for another request; no batch was made. Use a new key for a new request.")
	}
	m, err := r.o.Store.Get(ctx, kept.Journal)
	if schema.KindOf(err) == schema.KindNotFound && time.Since(kept.At) > clocksDiffer {
		err = journal.LostKey()
	}
	return m, true, err
}

// Intake takes the calls of one batch. Its methods are called by one goroutine; what
// comes slowly is stored by a timer beside it.
type Intake struct {
	r      *Runner
	id     string
	who    schema.Principal
	stored atomic.Uint64
	writer *journal.Writer
	// storeSoon is the timer of what is pending.
	storeSoon *time.Timer
	refused   uint64

	mu      sync.Mutex // the timer's goroutine shares what follows
	pending []journal.CallRecord
	size    int
	seen    *names
	failed  error // of the timer's storing; whoever calls next gets it
	sealed  bool
	closed  bool
}

// names are the custom ids of a batch, up to an index. They are kept between the
// requests that send its calls.
type names struct {
	ids  map[[16]byte]struct{}
	next uint64
	used time.Time
}

// keepNames is how long the names of an open batch are kept without being used;
// after that they are read again.
const keepNames = 10 * time.Minute

// forgetNamesLocked forgets names that were not used for long. Many batches come and
// go, so it looks at all of them now and then only. r.mu is held.
func (r *Runner) forgetNamesLocked() {
	if time.Since(r.forgot) < keepNames/10 {
		return
	}
	r.forgot = time.Now()
	for id, n := range r.names {
		if time.Since(n.used) > keepNames && r.intake[id] == nil {
			delete(r.names, id)
		}
	}
}

// Intake opens the intake of a batch of the principal's. Only one is open at a
// time; who comes later takes over. Close must be called.
func (r *Runner) Intake(ctx context.Context, id string, who schema.Principal) (*Intake, error) {
	m, err := r.Batch(ctx, id, who)
	if err != nil {
		return nil, err
	}
	if m.State != journal.Receiving {
		return nil, schema.Errorf(schema.KindConflict, "Batch %s takes no more calls: it is %s.", id, m.State)
	}
	if r.o.lost(m) {
		return nil, noIntake(id)
	}
	in := &Intake{r: r, id: id, who: who}
	r.mu.Lock()
	if r.intake[id] != nil {
		r.mu.Unlock()
		e := schema.Errorf(schema.KindConflict, "Calls of batch %s are being taken over another connection; end that first.", id)
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, e
	}
	r.intake[id] = in
	if in.seen = r.names[id]; in.seen == nil {
		in.seen = &names{ids: make(map[[16]byte]struct{})}
	}
	r.mu.Unlock()
	if in.writer, err = r.o.Store.Write(ctx, id); err != nil {
		in.Close()
		return nil, err
	}
	in.stored.Store(in.writer.Next())
	if err := in.remember(ctx); err != nil {
		in.Close()
		if _, lost := gapOf(err); lost {
			return nil, noIntake(id)
		}
		return nil, err
	}
	in.storeSoon = time.AfterFunc(math.MaxInt64, func() { in.storeWaiting(ctx) })
	return in, nil
}

// noIntake is for who adds calls to a batch of which nobody knows which came.
func noIntake(id string) error {
	return schema.Errorf(schema.KindConflict, "Records of calls were lost with a damaged data folder, so nobody knows which calls of batch %s came: it takes no more. Its results say what is known; send the rest as a new batch.", id)
}

// remember reads the custom ids of the calls that were taken before, as far as
// they are not known here.
func (in *Intake) remember(ctx context.Context) error {
	stored := in.writer.Next()
	if in.seen.next > stored { // what was added and never stored is no name
		in.seen = &names{ids: make(map[[16]byte]struct{})}
	}
	for in.seen.next < stored {
		calls, err := in.r.o.Store.Calls(ctx, in.id, in.seen.next, chunkCalls)
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			return schema.Errorf(schema.KindUnavailable, "The calls of batch %s cannot be read at the moment.", in.id)
		}
		for i := range calls {
			if id := calls[i].CustomID; id != "" {
				in.seen.ids[short(id)] = struct{}{}
			}
			in.seen.next = calls[i].Index + 1
		}
	}
	return nil
}

// short is enough of a digest to tell a million ids apart.
func short(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}

// Next is the index of the next call that is added: how many were taken so far,
// refused lines included.
func (in *Intake) Next() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.writer.Next() + uint64(len(in.pending))
}

// Stored is how many calls are stored.
func (in *Intake) Stored() uint64 { return in.writer.Next() }

// Refused is how many lines were refused since the intake was opened.
func (in *Intake) Refused() uint64 { return in.refused }

// Add takes one call. It is stored with those around it: at once when enough are
// there, else after 20 ms or by Flush. The error may be that of an earlier one that
// could not be stored then.
func (in *Intake) Add(ctx context.Context, c journal.CallRecord) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.CustomID != "" {
		key := short(c.CustomID)
		if _, twice := in.seen.ids[key]; twice {
			return in.refuseLocked(ctx, "", schema.Errorf(schema.KindConflict, "The custom_id %q stands in this batch already; this line was not run.", c.CustomID))
		}
		in.seen.ids[key] = struct{}{}
	}
	return in.addLocked(ctx, c)
}

// Refuse takes a line that is no call: it gets its answer like all others, and
// never runs. customID is what could be read of it.
func (in *Intake) Refuse(ctx context.Context, customID string, why *schema.Error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.refuseLocked(ctx, customID, why)
}

func (in *Intake) refuseLocked(ctx context.Context, customID string, why *schema.Error) error {
	in.refused++
	text, err := json.Marshal(why)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The refusal of a line cannot be written: %w", err)
	}
	return in.addLocked(ctx, journal.CallRecord{CustomID: customID, Method: methodRefused, Arguments: text})
}

func (in *Intake) addLocked(ctx context.Context, c journal.CallRecord) error {
	if in.failed != nil {
		return in.flushLocked(ctx)
	}
	in.pending = append(in.pending, c)
	in.size += len(c.Arguments) + len(c.CustomID) + len(c.Server) + len(c.Tool) + 32
	if len(in.pending) < chunkCalls && in.size < chunkBytes {
		if len(in.pending) == 1 {
			in.storeSoon.Reset(storeAfter)
		}
		return nil
	}
	return in.flushLocked(ctx)
}

// Flush stores what was added, as there is room for it in what the principal may
// have waiting. What is not stored when it fails is dropped.
func (in *Intake) Flush(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.flushLocked(ctx)
}

func (in *Intake) flushLocked(ctx context.Context) error {
	if err := in.failed; err != nil {
		in.failed = nil
		return err
	}
	for len(in.pending) > 0 {
		n, err := in.room(ctx, len(in.pending))
		if err != nil {
			in.dropLocked()
			return err
		}
		if err := in.storeLocked(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// storeWaiting stores what has waited for others to come. Where there is no room for
// it, it tries again: nothing may ever come that would have it stored. What was sent
// by who is gone is left to the last Flush.
func (in *Intake) storeWaiting(ctx context.Context) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || ctx.Err() != nil || len(in.pending) == 0 {
		return
	}
	if n := in.roomNow(len(in.pending)); n > 0 {
		in.failed = in.storeLocked(ctx, n)
	}
	if len(in.pending) > 0 {
		in.storeSoon.Reset(roomEvery)
	}
}

// storeLocked stores the first n of what is pending.
func (in *Intake) storeLocked(ctx context.Context, n int) error {
	ctx, cancel := bound(ctx)
	defer cancel()
	if _, err := in.writer.Append(ctx, in.pending[:n]); err != nil {
		in.dropLocked()
		return err
	}
	in.seen.next += uint64(n)
	in.stored.Store(in.writer.Next())
	in.pending = append(in.pending[:0], in.pending[n:]...)
	if len(in.pending) == 0 {
		in.size = 0
	}
	return nil
}

// dropLocked gives up what is pending. Nobody knows what of it is stored: the names
// are read again.
func (in *Intake) dropLocked() {
	in.pending, in.size = in.pending[:0], 0
	in.seen.next = math.MaxUint64
}

// Seal stores what was added and says that there will be no more.
func (in *Intake) Seal(ctx context.Context) (*journal.Manifest, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.flushLocked(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx)
	defer cancel()
	m, err := in.writer.Seal(ctx)
	in.sealed = err == nil
	return m, err
}

// Close ends the intake; the batch stays open for another one unless it was sealed.
// It may be called more than once.
func (in *Intake) Close() {
	in.mu.Lock() // the timer may be storing
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	in.closed = true
	if in.storeSoon != nil {
		in.storeSoon.Stop()
	}
	if in.writer != nil {
		in.writer.Close()
	}
	in.r.mu.Lock()
	defer in.r.mu.Unlock()
	delete(in.r.intake, in.id)
	in.seen.used = time.Now()
	if len(in.pending) == 0 && !in.sealed {
		in.r.names[in.id] = in.seen
	} else {
		delete(in.r.names, in.id) // no longer needed, or with names that were never stored
	}
	in.r.forgetNamesLocked()
}
