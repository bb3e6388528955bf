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
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// maxPacket and maxRecords bound one message: one sync, one thing to read.
	maxPacket  = 512 << 10
	maxRecords = 1000
	// maxWaiting is how many bytes may wait for a log; above it appends wait.
	maxWaiting = 8 << 20
	// appendTimeout is how long one try of an append waits for its reply.
	appendTimeout = 2 * time.Second
	// takeOverTimeout is how long a log is tried to be taken over.
	takeOverTimeout = 10 * time.Second
	// closeTimeout is how long a close waits for what is under way.
	closeTimeout = 5 * time.Second
)

// tail is the end of one log in the hands of its writer. Appends of all goroutines
// queue here; one goroutine packs what waits into a message, stores it, and packs
// what has come meanwhile. Nobody waits for a message to fill.
type tail struct {
	logs   *logs
	recent *recent
	id     schema.BatchID
	log    Log
	epoch  uint64
	writer uint64
	most   int // bytes of a message
	space  *semaphore.Weighted
	// lost is called once when another writer is found on the log.
	lost func(error)

	mu      sync.Mutex
	waiting []piece
	why     error // set: nothing more is taken
	// next is how many records are stored or wait to be.
	next uint64

	// abandoned says that an append was not stored in its time: a close does not wait
	// for it again.
	abandoned atomic.Bool

	wake chan struct{}
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}

	// Of the goroutine alone.
	last   uint64 // sequence of the last message of the log
	number uint64 // of this writer's messages
	count  uint64 // records stored
	packet []byte
}

// group is what one append hands in: pieces that are stored in order, with nothing of
// others between them.
type group struct {
	left  int
	first uint64
	begun bool
	err   error
	bytes int64
	done  func(first uint64, err error)
}

// piece is some records that go into one message.
type piece struct {
	g      *group
	frames []byte
	n      int
	seal   bool
	shared *[]byte // where frames came from, for others when it is stored
}

// free gives the memory of frames back.
func (p *piece) free() {
	if p.shared != nil && cap(p.frames) <= 2*maxPacket {
		*p.shared = p.frames[:0]
		frames.Put(p.shared)
	}
	p.frames, p.shared = nil, nil
}

// frames is memory for the frames of many records at once.
var frames = sync.Pool{New: func() any { b := make([]byte, 0, 64<<10); return &b }}

// manyRecords is how many make it worth it: a few must not hold that much memory while
// they wait.
const manyRecords = 16

// attach takes a log over with the given epoch; 0 stands for one more than that
// of the last message. When fresh is set nobody can have written to the log, and
// nothing is read. It returns errLost when the log knows a later epoch, and
// errSealed, with a tail that is not running, when it ends with a seal.
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

// takeOver stores a message of this writer's own, after which the log takes none
// of an earlier writer.
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
				t.epoch = max(t.epoch, 2) // the first epoch is that of a fresh log
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
				return nil // it was stored, and only the reply was lost
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

// submit hands in pieces; done is called once, on the tail's goroutine, unless
// submit returns an error. It waits while too much is waiting; ctx bounds that.
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
	t.ring()
	return nil
}

func (t *tail) ring() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// append is submit and the wait for it. When ctx ends first, nobody knows whether
// the records are stored or will be.
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

// take takes what fits into one message. Pieces of a group that failed are dropped:
// what follows a gap must not be stored.
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

// drop ends a piece that is not stored, as one of its group. It is called with mu held and
// adds the group to the given ones if it has ended.
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

// settle tells the groups of a message what became of it.
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

// tell calls back without a lock held: what is called may append again.
func (t *tail) tell(over []*group) {
	for _, g := range over {
		t.space.Release(g.bytes)
		g.done(g.first, g.err)
	}
}

// writes are the pauses between tries to append a packet.
var writes = backoff.Policy{First: 20 * time.Millisecond, Max: time.Second}

// commit stores one message. It returns nil once it is stored, errLost when another
// writer has the log, errClosed when the tail was closed before that was known, and
// [bus.ErrRefused] when it is sure that it is not stored.
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
	doubt := false // an earlier try may still arrive
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
			// It is not there; the same message, sent again, can be stored once only.
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
		select {
		case <-t.ctx.Done():
			return errClosed
		case <-time.After(writes.Delay(tries)):
		}
	}
}

// stored notes that the packet is the message with the sequence, and tells of it.
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

// fail makes the tail take nothing more and ends what waits.
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
	t.ring()
	t.tell(over)
}

// close takes nothing more, waits for what waits to be stored until ctx ends, and
// then gives it up. After an append that was not stored in its time it does not wait.
// It returns when the goroutine has ended.
func (t *tail) close(ctx context.Context) {
	t.mu.Lock()
	if t.why == nil {
		t.why = errClosed
	}
	t.mu.Unlock()
	t.ring()
	if !t.abandoned.Load() {
		select {
		case <-t.done:
		case <-ctx.Done():
		}
	}
	t.stop()
	<-t.done
}

// upcoming is how many records are stored or wait to be.
func (t *tail) upcoming() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}

// packer cuts records into pieces.
type packer struct {
	pieces []piece
	most   int
	many   bool // there are at least manyRecords
}

// add puts one record into the pieces; encode appends its frame.
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
