package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxPacket and maxRecords limit one message, which is the unit of a sync and of a read.
	maxPacket  = 512 << 10
	maxRecords = 1000
	// maxWaiting limits the bytes that wait for a log. Above it, appends block.
	maxWaiting = 8 << 20
	// appendTimeout bounds one attempt at an append.
	appendTimeout = 2 * time.Second
	// takeOverTimeout bounds the takeover of a log.
	takeOverTimeout = 10 * time.Second
	// closeTimeout is how long a close waits for pending appends.
	closeTimeout = 5 * time.Second
)

// tail is the writing end of one log. Appends of all goroutines queue here. One goroutine packs the
// queued records into a message, stores it, and then packs those that arrived in the meantime. It
// does not wait for a message to fill.
type tail struct {
	logs   *logs
	recent *recent
	id     schema.BatchID
	log    Log
	epoch  uint64
	writer uint64
	most   int // maximum message size in bytes
	space  *semaphore.Weighted
	// lost is called once if another writer has taken over the log.
	lost func(error)

	mu      sync.Mutex
	waiting []piece
	why     error // if set, the reason why no more appends are accepted
	// next is the number of records that are stored or queued.
	next uint64

	// abandoned is set if an append was not stored in time, so that close does not wait for it
	// again.
	abandoned atomic.Bool

	wake chan struct{}
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}

	// Used by the goroutine only.
	last   uint64 // sequence of the last message of the log
	number uint64 // number of messages of this writer
	count  uint64 // number of stored records
	packet []byte
}

// group holds the pieces of one append. They are stored in order, without other records between them.
type group struct {
	left  int
	first uint64
	begun bool
	err   error
	bytes int64
	done  func(first uint64, err error)
}

// piece holds some records that go into one message.
type piece struct {
	g      *group
	frames []byte
	n      int
	seal   bool
	shared *[]byte // pool buffer of frames, returned after the write
}

// free returns the memory of frames to the pool.
func (p *piece) free() {
	if p.shared != nil && cap(p.frames) <= 2*maxPacket {
		*p.shared = p.frames[:0]
		frames.Put(p.shared)
	}
	p.frames, p.shared = nil, nil
}

// frames pools buffers for the frames of many records.
var frames = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// manyRecords is the minimum number of records for a pooled buffer. Fewer must not hold that much memory
// while they wait.
const manyRecords = 16

// attach takes over a log with the given epoch; 0 means one more than that of the last message. If fresh
// is set, no other writer can have written to the log, and nothing is read. It returns errLost if the
// log has a later epoch, and errSealed, with a tail that is not running, if it ends with a seal.
func (s *Store) attach(ctx context.Context, id schema.BatchID, log Log, epoch uint64, fresh bool) (*tail, error) {
	t := &tail{
		logs: s.logs, recent: &s.recent, id: id, log: log, epoch: epoch, writer: rand.Uint64(), most: s.most, space: semaphore.NewWeighted(maxWaiting),
		wake: make(chan struct{}, 1), done: make(chan struct{}), lost: func(error) {},
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	if !fresh {
		if err := t.takeOver(ctx); err != nil {
			t.stop()
			close(t.done)
			return t, err
		}
	} else if t.epoch == 0 {
		t.epoch = 1
	}
	return t, nil
}

// takeOver stores an opening message of this writer. After that, the log accepts no message of an
// earlier writer.
func (t *tail) takeOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverTimeout)
	defer cancel()
	given := t.epoch
	for {
		m, err := t.logs.Last(ctx, t.id, t.log)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			t.last, t.count = 0, 0
			if given == 0 {
				t.epoch = max(t.epoch, 2) // epoch 1 is reserved for a fresh log
			}
		case err != nil:
			return err
		default:
			h, _, err := ReadHead(m.Data, t.log)
			if err != nil {
				return damaged(t.id, err)
			}
			t.last, t.count = m.Sequence, h.First+uint64(h.Count)
			switch {
			case h.Writer == t.writer:
				t.next = t.count
				return nil // it was stored, but the reply was lost
			case h.Sealed:
				return errSealed
			case given == 0:
				t.epoch = max(t.epoch, h.Epoch+1)
			case h.Epoch >= given:
				return fmt.Errorf("%w: its epoch is %d, ours %d", errLost, h.Epoch, given)
			}
		}
		t.number = 1
		t.packet = appendHead(t.packet[:0], &Head{
			Log: t.log, Epoch: t.epoch, Writer: t.writer, Number: t.number, First: t.count, Opening: true, At: time.Now(),
		})
		try, cancel := context.WithTimeout(ctx, appendTimeout)
		seq, err := t.logs.Append(try, t.id, t.log, t.packet, t.last)
		cancel()
		if err == nil {
			t.last, t.next = seq, t.count
			return nil
		}
		if errors.Is(err, bus.ErrRefused) || ctx.Err() != nil {
			return err
		}
	}
}

// run starts the goroutine.
func (t *tail) run() { go t.commitAll() }

// submit queues pieces. done is called once, on the tail's goroutine, unless submit returns an error.
// submit blocks while too many bytes are queued; ctx bounds that.
func (t *tail) submit(ctx context.Context, pieces []piece, done func(first uint64, err error)) error {
	g := &group{left: len(pieces), done: done}
	var n uint64
	for i := range pieces {
		pieces[i].g = g
		g.bytes += int64(len(pieces[i].frames)) + 64
		n += uint64(pieces[i].n)
	}
	g.bytes = min(g.bytes, maxWaiting)
	if err := t.space.Acquire(ctx, g.bytes); err != nil {
		return fmt.Errorf("waiting for earlier appends: %w", err)
	}
	t.mu.Lock()
	if why := t.why; why != nil {
		t.mu.Unlock()
		t.space.Release(g.bytes)
		return why
	}
	t.waiting = append(t.waiting, pieces...)
	t.next += n
	if pieces[len(pieces)-1].seal {
		t.why = errSealed
	}
	t.mu.Unlock()
	t.signal()
	return nil
}

func (t *tail) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// append calls submit and waits for the outcome. If ctx ends first, the records may or may not be
// stored.
func (t *tail) append(ctx context.Context, pieces []piece) (first uint64, err error) {
	type outcome struct {
		first uint64
		err   error
	}
	c := make(chan outcome, 1)
	if err := t.submit(ctx, pieces, func(first uint64, err error) { c <- outcome{first, err} }); err != nil {
		return 0, err
	}
	select {
	case o := <-c:
		return o.first, o.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.abandoned.Store(true)
		}
		return 0, fmt.Errorf("waiting for the append, which may still come: %w", ctx.Err())
	}
}

func (t *tail) commitAll() {
	defer close(t.done)
	for {
		batch, closing := t.take()
		if len(batch) == 0 {
			if closing {
				return
			}
			select {
			case <-t.wake:
			case <-t.ctx.Done():
				t.fail(errClosed)
			}
			continue
		}
		err := t.commit(batch)
		if errors.Is(err, errLost) || errors.Is(err, errClosed) {
			t.fail(err)
		}
		t.settle(batch, err)
		if errors.Is(err, errLost) {
			t.lost(err)
		}
	}
}

// take removes the pieces of the next message from the queue. It drops pieces of a failed group, because
// no record after a gap must be stored.
func (t *tail) take() (batch []piece, closing bool) {
	t.mu.Lock()
	size, n, i := 0, 0, 0
	var over []*group
	for ; i < len(t.waiting); i++ {
		p := t.waiting[i]
		if p.g.err != nil {
			over = t.drop(over, p, p.g.err)
			continue
		}
		if len(batch) > 0 && (size+len(p.frames) > t.most || n+p.n > maxRecords) {
			break
		}
		batch = append(batch, p)
		size += len(p.frames)
		n += p.n
	}
	rest := copy(t.waiting, t.waiting[i:])
	clear(t.waiting[rest:])
	t.waiting = t.waiting[:rest]
	closing = t.why != nil && rest == 0
	t.mu.Unlock()
	t.tell(over)
	return batch, closing
}

// drop ends a piece that is not stored, as one of its group. If that ends the group, it is appended to
// over. The caller must hold mu.
func (t *tail) drop(over []*group, p piece, err error) []*group {
	t.next -= uint64(p.n)
	if p.g.err == nil {
		p.g.err = err
	}
	if p.g.left--; p.g.left == 0 {
		over = append(over, p.g)
	}
	return over
}

// settle reports the outcome of a message to its groups.
func (t *tail) settle(batch []piece, err error) {
	t.mu.Lock()
	var over []*group
	for _, p := range batch {
		if err != nil {
			over = t.drop(over, p, err)
			continue
		}
		if !p.g.begun {
			p.g.begun, p.g.first = true, t.count
		}
		t.count += uint64(p.n)
		if p.g.left--; p.g.left == 0 {
			over = append(over, p.g)
		}
	}
	t.mu.Unlock()
	t.tell(over)
}

// tell calls the callbacks of groups without holding a lock, because they may append again.
func (t *tail) tell(over []*group) {
	for _, g := range over {
		t.space.Release(g.bytes)
		g.done(g.first, g.err)
	}
}

// writes is the backoff between attempts to append a packet.
var writes = backoff.Policy{First: 20 * time.Millisecond, Max: time.Second}

// commit stores one message. It returns nil if it is stored, errLost if another writer has the log,
// errClosed if the tail was closed before the outcome was known, and [bus.ErrRefused] if it is
// certainly not stored.
func (t *tail) commit(batch []piece) error {
	h := Head{Log: t.log, Epoch: t.epoch, Writer: t.writer, Number: t.number + 1, First: t.count, At: time.Now()}
	for _, p := range batch {
		h.Count += p.n
		h.Sealed = h.Sealed || p.seal
	}
	t.packet = appendHead(t.packet[:0], &h)
	for i := range batch {
		t.packet = append(t.packet, batch[i].frames...)
		batch[i].free()
	}
	t.packet = packMessage(t.packet)
	doubt := false // whether an earlier attempt may still arrive
	for tries := 0; ; tries++ {
		try, cancel := context.WithTimeout(t.ctx, appendTimeout)
		seq, err := t.logs.Append(try, t.id, t.log, t.packet, t.last)
		cancel()
		switch {
		case err == nil:
			t.stored(seq, h.Number)
			return nil
		case errors.Is(err, bus.ErrRefused) && !doubt:
			return err
		case errors.Is(err, bus.ErrConflict):
		default:
			doubt = true
		}
		m, again := t.lookUp()
		switch {
		case errors.Is(again, bus.ErrNotFound) && t.last == 0, again == nil && m.Sequence == t.last:
			// It is not there. Sending the same message again is safe, because it can be stored only once.
		case errors.Is(again, bus.ErrNotFound):
			return fmt.Errorf("%w: it was forgotten", errLost)
		case again == nil:
			other, _, err := ReadHead(m.Data, t.log)
			if err == nil && other.Writer == t.writer && other.Number == h.Number {
				t.stored(m.Sequence, h.Number)
				return nil
			}
			return fmt.Errorf("%w: its epoch is %d, ours %d", errLost, other.Epoch, t.epoch)
		}
		if !sleep.For(writes.Delay(tries), t.ctx.Done()) {
			return errClosed
		}
	}
}

// stored records that the packet is stored with the sequence, and notifies listeners.
func (t *tail) stored(sequence, number uint64) {
	t.recent.put(t.id, t.log, t.last, sequence, t.packet)
	t.logs.tell(t.id, t.log, sequence)
	t.last, t.number = sequence, number
}

func (t *tail) lookUp() (bus.Message, error) {
	ctx, cancel := context.WithTimeout(t.ctx, appendTimeout)
	defer cancel()
	return t.logs.Last(ctx, t.id, t.log)
}

// fail makes the tail refuse appends and fails all queued ones.
func (t *tail) fail(err error) {
	t.mu.Lock()
	if t.why == nil || errors.Is(t.why, errSealed) || errors.Is(t.why, errClosed) {
		t.why = err
	}
	var over []*group
	for _, p := range t.waiting {
		over = t.drop(over, p, err)
	}
	clear(t.waiting)
	t.waiting = t.waiting[:0]
	t.mu.Unlock()
	t.signal()
	t.tell(over)
}

// close refuses new appends, waits for queued ones until ctx ends, and then abandons them. It does not
// wait if an append was not stored in time. It returns when the goroutine has ended.
func (t *tail) close(ctx context.Context) {
	t.mu.Lock()
	if t.why == nil {
		t.why = errClosed
	}
	t.mu.Unlock()
	t.signal()
	if !t.abandoned.Load() {
		select {
		case <-t.done:
		case <-ctx.Done():
		}
	}
	t.stop()
	<-t.done
}

// upcoming returns the number of records that are stored or queued.
func (t *tail) upcoming() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}

// packer splits records into pieces.
type packer struct {
	pieces []piece
	most   int
	many   bool // at least manyRecords
}

// add adds one record to the pieces. encode appends its frame.
func (p *packer) add(encode func([]byte) []byte) error {
	if len(p.pieces) == 0 {
		var first piece
		if p.many {
			first.shared = frames.Get().(*[]byte)
			first.frames = (*first.shared)[:0]
		}
		p.pieces = append(p.pieces, first)
	}
	now := &p.pieces[len(p.pieces)-1]
	before := len(now.frames)
	now.frames = encode(now.frames)
	now.n++
	size := len(now.frames) - before
	if before > 0 && (len(now.frames) > p.most || now.n > maxRecords) {
		frame := append([]byte(nil), now.frames[before:]...)
		now.frames, now.n = now.frames[:before], now.n-1
		p.pieces = append(p.pieces, piece{frames: frame, n: 1})
	}
	if size > p.most {
		return fmt.Errorf("a record takes %d bytes; %d fit into a message", size, p.most)
	}
	return nil
}
