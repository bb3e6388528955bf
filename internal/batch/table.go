package batch

import (
	"maps"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/dispatch"
)

// callTable knows which calls of a journal are under way here, held, or being canceled
// before they were read. A call is in one of these states at most, so that none runs
// twice. It is safe for concurrent use.
type callTable struct {
	// ended reports whether the call with the index has its result.
	ended func(index uint64) bool
	// changed gets a word when a call is no longer held or being canceled.
	changed chan struct{}

	mu        sync.Mutex
	running   map[uint64]*item
	held      map[uint64]*item
	ending    map[uint64]struct{} // held, and its end is being stored
	canceling map[uint64]struct{} // before they were read
	closed    bool                // nothing more begins
}

func newCallTable(ended func(index uint64) bool) *callTable {
	return &callTable{ended: ended, changed: make(chan struct{}, 1), running: make(map[uint64]*item), held: make(map[uint64]*item), ending: make(map[uint64]struct{}), canceling: make(map[uint64]struct{})}
}

// enlist notes that a call is under way here. False means that it must not be: it
// is held, has ended, or was canceled before it was read.
func (t *callTable) enlist(it *item) bool {
	index := it.rec.Index
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, canceled := t.canceling[index]; canceled || t.held[index] != nil || t.ended(index) {
		return false
	}
	t.running[index] = it
	return true
}

func (t *callTable) delist(it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[it.rec.Index] == it {
		delete(t.running, it.rec.Index)
	}
}

// find returns the call where it is under way or held here, else nil.
func (t *callTable) find(index uint64) *item {
	t.mu.Lock()
	defer t.mu.Unlock()
	if it := t.running[index]; it != nil {
		return it
	}
	return t.held[index]
}

// park notes that a call is held.
func (t *callTable) park(it *item) {
	it.waits.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[it.rec.Index] = it
}

// drop forgets that a call is held; false means that its end is being stored, or was, or that
// somebody else dropped it.
func (t *callTable) drop(it *item) bool {
	t.mu.Lock()
	_, ending := t.ending[it.rec.Index]
	mine := t.held[it.rec.Index] == it && !ending
	if mine {
		delete(t.held, it.rec.Index)
	}
	t.mu.Unlock()
	if !mine {
		return false
	}
	it.waits.Store(false)
	notify(t.changed)
	return true
}

// claimEnd is asked by who knows how a held call ended: true means that the end is theirs to
// store. The call counts as held until [callTable.endStored], so that nobody who finds it
// neither held nor ended stores that it was canceled.
func (t *callTable) claimEnd(it *item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	index := it.rec.Index
	if _, twice := t.ending[index]; twice || t.held[index] != it {
		return false
	}
	t.ending[index] = struct{}{}
	it.waits.Store(false)
	return true
}

// endStored forgets a held call whose end is stored, or could not be.
func (t *callTable) endStored(it *item) {
	t.mu.Lock()
	delete(t.held, it.rec.Index)
	delete(t.ending, it.rec.Index)
	t.mu.Unlock()
	notify(t.changed)
}

// heldCall returns the call where it is held here, else nil.
func (t *callTable) heldCall(index uint64) *item {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[index]
}

func (t *callTable) heldCalls() []*item {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.held))
}

func (t *callTable) heldCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

// unsettled is the number of calls that are held or being canceled.
func (t *callTable) unsettled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held) + len(t.canceling)
}

// whileHeld calls begin, which must not block, where the call is held here and more may
// begin.
func (t *callTable) whileHeld(it *item, begin func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[it.rec.Index] == it && !t.closed {
		begin()
	}
}

// cancel returns the call where it is under way. Where nothing is known of it, and
// readable says that it is still to be read, unread is true: it can no longer be enlisted,
// and canceled must be called once its end is stored, or cannot be.
func (t *callTable) cancel(index uint64, readable func() bool) (it *item, unread bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	it = t.running[index]
	_, twice := t.canceling[index]
	if it != nil || t.held[index] != nil || twice || t.ended(index) || !readable() {
		return it, false
	}
	t.canceling[index] = struct{}{}
	return nil, true
}

// canceled says that the end of a call that was canceled unread is stored, or never
// will be.
func (t *callTable) canceled(index uint64) {
	t.mu.Lock()
	delete(t.canceling, index)
	t.mu.Unlock()
	notify(t.changed)
}

// send notes that a call is in the pipeline.
func (t *callTable) send(it *item, p *dispatch.AsyncCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	it.async = p
}

// sent returns the calls under way that are in the pipeline.
func (t *callTable) sent() []*dispatch.AsyncCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*dispatch.AsyncCall
	for _, it := range t.running {
		if it.async != nil {
			all = append(all, it.async)
		}
	}
	return all
}

// close lets nothing more begin.
func (t *callTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// notify puts a word into a channel with room for one, unless there is one.
func notify(words chan struct{}) {
	select {
	case words <- struct{}{}:
	default:
	}
}
