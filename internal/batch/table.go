package batch

import (
	"maps"
	"slices"
	"sync"

	"github.com/callyard/callyard/internal/dispatch"
)

// callTable tracks the calls of a journal that are in progress here, held, or being canceled
// before they were read. A call is in at most one of these states, so that none runs twice. It is
// safe for concurrent use.
type callTable struct {
	// ended reports whether the call at index has its result.
	ended func(index uint64) bool
	// changed is signaled when a call is no longer held or being canceled.
	changed chan struct{}

	mu        sync.Mutex
	running   map[uint64]*item
	held      map[uint64]*item
	ending    map[uint64]struct{} // held calls whose results are being stored
	canceling map[uint64]struct{} // calls canceled before they were read
	closed    bool                // no further call may begin, and no person may order one
}

func newCallTable(ended func(index uint64) bool) *callTable {
	return &callTable{ended: ended, changed: make(chan struct{}, 1), running: make(map[uint64]*item), held: make(map[uint64]*item), ending: make(map[uint64]struct{}), canceling: make(map[uint64]struct{})}
}

// enlist adds a call in progress. It returns false if the call must not run, because it runs already, is
// held, has ended, or was canceled before it was read.
func (t *callTable) enlist(it *item) bool {
	index := it.rec.Index
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, canceled := t.canceling[index]; canceled || t.held[index] != nil || t.ended(index) {
		return false
	}
	if other := t.running[index]; other != nil && !other.isOver() {
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

// find returns the call if it is in progress or held here, or nil.
func (t *callTable) find(index uint64) *item {
	t.mu.Lock()
	defer t.mu.Unlock()
	if it := t.running[index]; it != nil {
		return it
	}
	return t.held[index]
}

// park adds a held call.
func (t *callTable) park(it *item) {
	it.waits.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[it.rec.Index] = it
}

// drop removes a held call. It returns false if the result of the call is or was being stored, or
// another goroutine removed the call.
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

// claimEnd reports whether the goroutine that knows the outcome of a held call may store it. The
// call counts as held until [callTable.endStored]. Otherwise another goroutine could find it
// neither held nor ended, and store that it was canceled.
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

// endStored removes a held call after its result was stored or could not be.
func (t *callTable) endStored(it *item) {
	t.mu.Lock()
	delete(t.held, it.rec.Index)
	delete(t.ending, it.rec.Index)
	t.mu.Unlock()
	notify(t.changed)
}

// heldCall returns the call if it is held here, or nil.
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

// unsettled returns the number of calls that are held or being canceled.
func (t *callTable) unsettled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held) + len(t.canceling)
}

// whileHeld calls begin if the call is held here and the table is open. begin must not block.
func (t *callTable) whileHeld(it *item, begin func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[it.rec.Index] == it && !t.closed {
		begin()
	}
}

// cancel returns the call if it is in progress. If the call is unknown and readable reports that
// it is still to be read, unread is true: the call can no longer be enlisted, and canceled must
// be called once its result is stored or cannot be.
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

// canceled removes a call that was canceled unread, after its result was stored or could not be.
func (t *callTable) canceled(index uint64) {
	t.mu.Lock()
	delete(t.canceling, index)
	t.mu.Unlock()
	notify(t.changed)
}

// send records that a call is in the pipeline.
func (t *callTable) send(it *item, p *dispatch.AsyncCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	it.async = p
}

// sent returns the calls in progress that are in the pipeline.
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

// whileOpen calls begin if the table is open, and reports whether it is. begin must not block.
func (t *callTable) whileOpen(begin func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		begin()
	}
	return !t.closed
}

// close lets no further watcher begin.
func (t *callTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// notify sends a signal to a channel with a buffer of one, unless one is pending.
func notify(words chan struct{}) {
	select {
	case words <- struct{}{}:
	default:
	}
}
