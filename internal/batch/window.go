package batch

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/store/journal"
)

// window limits the number of calls of a journal in flight and the size of their arguments. It is
// safe for concurrent use.
type window struct {
	places   *semaphore.Weighted
	bytes    *semaphore.Weighted
	maxBytes int64

	mu    sync.Mutex
	none  sync.Cond    // signaled when count is 0
	count atomic.Int64 // calls in flight; changed with mu held
}

func newWindow(calls int, bytes int64) *window {
	w := &window{places: semaphore.NewWeighted(int64(calls)), bytes: semaphore.NewWeighted(bytes), maxBytes: bytes}
	w.none.L = &w.mu
	return w
}

// enter acquires a place for the call. It returns false if ctx ended first.
func (w *window) enter(ctx context.Context, c *journal.CallRecord) bool {
	if w.places.Acquire(ctx, 1) != nil {
		return false
	}
	if w.bytes.Acquire(ctx, w.weight(c)) != nil {
		w.places.Release(1)
		return false
	}
	w.begin()
	return true
}

// leave releases the place of a call that entered with the given weight.
func (w *window) leave(weight int64) {
	w.bytes.Release(weight)
	w.places.Release(1)
	w.end()
}

// begin counts a call that needs no place because its caller waits for it.
func (w *window) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Add(1)
}

func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count.Add(-1) == 0 {
		w.none.Broadcast()
	}
}

// wait waits until no call is in flight. A call may begin meanwhile, for which a [sync.WaitGroup] panics.
func (w *window) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.count.Load() > 0 {
		w.none.Wait()
	}
}

// weight returns the bytes of the window that a call takes: at least one, and at most all of them.
func (w *window) weight(c *journal.CallRecord) int64 {
	return min(max(int64(len(c.Arguments)), c.ArgumentsObject.Size, 1), w.maxBytes)
}
