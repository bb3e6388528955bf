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
	// chunkCalls and chunkBytes limit the calls of a batch that are stored with one write.
	chunkCalls = 1000
	chunkBytes = 512 << 10
	// storeAfter is the time that an added call waits for others to be stored with it.
	storeAfter = 20 * time.Millisecond
	// minLife and defaultLife are the minimum and the default lifetime of a batch.
	minLife     = time.Second
	defaultLife = 24 * time.Hour
)

// Intake adds calls to one batch. Its methods must be called by one goroutine. A timer stores
// calls that arrive slowly.
type Intake struct {
	o       *Options
	intakes *intakes
	backlog *backlog

	id     schema.BatchID
	who    schema.Principal
	stored atomic.Uint64
	writer *journal.Writer
	// storeSoon is the timer that stores pending calls.
	storeSoon *time.Timer
	refused   uint64

	mu      sync.Mutex // protects the fields below, which the timer's goroutine also uses
	pending []journal.CallRecord
	size    int
	seen    *names
	failed  error // error of the timer's write; the next method call returns it
	sealed  bool
	closed  bool
}

// names is the set of custom ids of a batch, up to index next. It is kept between the requests
// that send the calls of the batch.
type names struct {
	ids  map[[16]byte]struct{}
	next uint64
	used time.Time
}

// keepNames is the time that the unused names of an open batch are kept. After that they are read
// again.
const keepNames = 10 * time.Minute

// intakes tracks the batches whose calls are received here. It is safe for concurrent use.
type intakes struct {
	mu     sync.Mutex
	open   map[schema.BatchID]*Intake // by the id of the batch
	names  map[schema.BatchID]*names  // of open batches with calls that were received here
	forgot time.Time                  // time of the last search for unused names
}

func newIntakes() *intakes {
	return &intakes{open: make(map[schema.BatchID]*Intake), names: make(map[schema.BatchID]*names)}
}

// begin registers the intake, and gives it the known names of the batch. Only one intake of a
// batch can be open at a time: it returns a retryable KindConflict for another one.
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

// end removes the intake. If keep is true, the names are kept for the next one: the batch must
// be open, and they must be those of stored calls only.
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

// accepted returns the number of stored calls of the batch that is known here.
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

// forgetLocked drops names that have not been used for long. It scans all batches, of which there
// can be many, so it does so only now and then. is.mu must be held.
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

// Intake opens the intake of a batch of the principal. Only one can be open at a time: on this
// front door another one is refused with KindConflict, and an intake on another front door takes
// the batch over. Close must be called.
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

// noIntake returns the error for adding calls to a batch of which an unknown part was lost.
func noIntake(id schema.BatchID) error {
	return schema.Errorf(schema.KindConflict, "Call records were lost with a damaged data folder, so it is unknown which calls of batch %s arrived; the batch accepts no more calls. Its results list the known calls; send the others as a new batch.", id)
}

// remember reads the custom ids of the calls that were stored before and are not known here.
func (in *Intake) remember(ctx context.Context) error {
	stored := in.writer.Next()
	if in.seen.next > stored { // discard the names of calls that were added and never stored
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
				in.seen.ids[shortDigest(id)] = struct{}{}
			}
			in.seen.next = calls[i].Index + 1
		}
	}
	return nil
}

// shortDigest returns a part of a digest that is long enough to tell a million ids apart.
func shortDigest(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}

// Next returns the index of the next call, which is the number of calls added so far, including
// refused lines.
func (in *Intake) Next() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.writer.Next() + uint64(len(in.pending))
}

// Stored returns the number of stored calls.
func (in *Intake) Stored() uint64 { return in.writer.Next() }

// Refused returns the number of lines refused since the intake was opened.
func (in *Intake) Refused() uint64 { return in.refused }

// Add adds one call. Calls are stored together: at once if there are enough of them, otherwise
// after 20 ms or by Flush. The error may be that of an earlier call that could not be stored.
func (in *Intake) Add(ctx context.Context, c journal.CallRecord) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	// The stored call runs later, without the credential of this request.
	if err := in.who.MayCall(c.Server, c.Tool); err != nil {
		return in.refuseLocked(ctx, c.CustomID, schema.AsError(err))
	}
	if c.CustomID != "" {
		key := shortDigest(c.CustomID)
		if _, twice := in.seen.ids[key]; twice {
			return in.refuseLocked(ctx, "", schema.Errorf(schema.KindConflict, "This batch already has a line with custom_id %q; this line was not run.", c.CustomID))
		}
		in.seen.ids[key] = struct{}{}
	}
	return in.addLocked(ctx, c)
}

// Refuse adds a line that is not a valid call. The line gets a result like all others, and never
// runs. customID is set if it could be read from the line.
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

// Flush stores the added calls. It waits until the quota of the principal permits them. If it
// fails, it drops the calls that are not stored.
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

// storeWaiting stores calls that have waited for others. If the quota does not permit them yet, it
// tries again, because no later call may come to trigger a write. After the sender has
// disconnected, the calls wait for the last Flush.
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

// storeLocked stores the first n pending calls.
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

// dropLocked discards the pending calls. Some of them may be stored, so the names are read again.
func (in *Intake) dropLocked() {
	in.pending, in.size = in.pending[:0], 0
	in.seen.next = math.MaxUint64
}

// Seal stores the added calls and closes the batch to further calls. lines, if set, is the digest
// of the request that sent all of them; see [journal.Manifest].
func (in *Intake) Seal(ctx context.Context, lines string) (*journal.Manifest, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.flushLocked(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx)
	defer cancel()
	if lines != "" { // before sealing, so that a request with the same key finds it
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

// Close ends the intake. The batch remains open for another one unless it was sealed. Close may be
// called more than once.
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
