package batch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
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

// Intake takes the calls of one batch. Its methods are called by one goroutine; what
// comes slowly is stored by a timer next to it.
type Intake struct {
	o       *Options
	intakes *intakes
	backlog *backlog

	id     schema.BatchID
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

// intakes are the batches whose calls come in here. It is safe for concurrent use.
type intakes struct {
	mu     sync.Mutex
	open   map[schema.BatchID]*Intake // by the id of the batch
	names  map[schema.BatchID]*names  // of open batches whose calls came here
	forgot time.Time                  // when names were last looked at to forget some
}

func newIntakes() *intakes {
	return &intakes{open: make(map[schema.BatchID]*Intake), names: make(map[schema.BatchID]*names)}
}

// begin notes that the intake is open, and gives it the names of the batch as far as they
// are known here. Only one is open at a time: KindConflict, retryable.
func (is *intakes) begin(in *Intake) error {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.open[in.id] != nil {
		return schema.Errorf(schema.KindConflict, "Another connection is sending calls of batch %s; close it first.", in.id).RetryableAfter(time.Second)
	}
	is.open[in.id] = in
	if in.seen = is.names[in.id]; in.seen == nil {
		in.seen = &names{ids: make(map[[16]byte]struct{})}
	}
	return nil
}

// end removes the intake. The names are kept for the next one, where it may
// come and they are those of calls that were stored.
func (is *intakes) end(in *Intake, keep bool) {
	is.mu.Lock()
	defer is.mu.Unlock()
	delete(is.open, in.id)
	in.seen.used = time.Now()
	if keep {
		is.names[in.id] = in.seen
	} else {
		delete(is.names, in.id)
	}
	is.forgetLocked()
}

// accepted returns how many calls of the batch are known here to be stored.
func (is *intakes) accepted(id schema.BatchID) uint64 {
	is.mu.Lock()
	defer is.mu.Unlock()
	if in := is.open[id]; in != nil {
		return in.stored.Load()
	}
	if known := is.names[id]; known != nil && known.next != math.MaxUint64 {
		return known.next
	}
	return 0
}

// forgetNamesLocked forgets names that were not used for long. Many batches come and
// go, so it looks at all of them now and then only. is.mu is held.
func (is *intakes) forgetLocked() {
	if time.Since(is.forgot) < keepNames/10 {
		return
	}
	is.forgot = time.Now()
	for id, n := range is.names {
		if time.Since(n.used) > keepNames && is.open[id] == nil {
			delete(is.names, id)
		}
	}
}

// Intake opens the intake of a batch of the principal's. Only one is open at a
// time; who comes later takes over. Close must be called.
func (b *Batches) Intake(ctx context.Context, id schema.BatchID, who schema.Principal) (*Intake, error) {
	m, err := b.Get(ctx, id, who)
	if err != nil {
		return nil, err
	}
	if m.State != journal.Receiving {
		return nil, schema.Errorf(schema.KindConflict, "Batch %s accepts no more calls: it is %s.", id, m.State)
	}
	if b.o.lost(m) {
		return nil, noIntake(id)
	}
	in := &Intake{o: b.o, intakes: b.intakes, backlog: b.backlog, id: id, who: who}
	if err := b.intakes.begin(in); err != nil {
		return nil, err
	}
	if in.writer, err = b.o.Store.Write(ctx, who.Tenant, id); err != nil {
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
func noIntake(id schema.BatchID) error {
	return schema.Errorf(schema.KindConflict, "Call records were lost with a damaged data folder, so it is unknown which calls of batch %s arrived; the batch accepts no more calls. Its results list the known calls; send the others as a new batch.", id)
}

// remember reads the custom ids of the calls that were taken before, as far as
// they are not known here.
func (in *Intake) remember(ctx context.Context) error {
	stored := in.writer.Next()
	if in.seen.next > stored { // what was added and never stored is no name
		in.seen = &names{ids: make(map[[16]byte]struct{})}
	}
	for in.seen.next < stored {
		calls, err := in.o.Store.Calls(ctx, in.who.Tenant, in.id, in.seen.next, chunkCalls)
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
	// What is stored is run later, without the credential that it came with.
	if err := in.who.MayCall(c.Server, c.Tool); err != nil {
		return in.refuseLocked(ctx, c.CustomID, schema.AsError(err))
	}
	if c.CustomID != "" {
		key := short(c.CustomID)
		if _, twice := in.seen.ids[key]; twice {
			return in.refuseLocked(ctx, "", schema.Errorf(schema.KindConflict, "This batch already has a line with custom_id %q; this line was not run.", c.CustomID))
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
		return schema.Errorf(schema.KindInternal, "The error for a line cannot be encoded: %w", err)
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
		n, err := in.backlog.space(ctx, in, len(in.pending))
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
	if n := in.backlog.spaceNow(in, len(in.pending)); n > 0 {
		in.failed = in.storeLocked(ctx, n)
	}
	if len(in.pending) > 0 {
		in.storeSoon.Reset(spaceEvery)
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

// dropLocked discards the pending calls. Some of them may be stored: the names are read
// again.
func (in *Intake) dropLocked() {
	in.pending, in.size = in.pending[:0], 0
	in.seen.next = math.MaxUint64
}

// Seal stores what was added and says that there will be no more. lines, unless it is "", is the
// digest of the request that brought all of it: see [journal.Manifest].
func (in *Intake) Seal(ctx context.Context, lines string) (*journal.Manifest, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.flushLocked(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx)
	defer cancel()
	if lines != "" { // before it is sealed, so that a request with the same key finds it
		if _, err := in.o.Store.Change(ctx, in.who.Tenant, in.id, func(m *journal.Manifest) error {
			m.Lines = lines
			return nil
		}); err != nil {
			return nil, err
		}
	}
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
	in.intakes.end(in, len(in.pending) == 0 && !in.sealed)
}
