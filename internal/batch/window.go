package batch

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/store/journal"
)

// window bounds how many calls of a journal are under way, and how much their arguments
// take, and counts them. It is safe for concurrent use.
type window struct {
	places   *semaphore.Weighted
	bytes    *semaphore.Weighted
	maxBytes int64

	flying sync.WaitGroup // calls under way
	count  atomic.Int64   // calls under way
}

func newWindow(calls int, bytes int64) *window {
	return &window{places: semaphore.NewWeighted(int64(calls)), bytes: semaphore.NewWeighted(bytes), maxBytes: bytes}
}

// enter takes a place for the call; false means that ctx ended.
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

// leave gives back the place of a call that had the weight when it took it.
func (w *window) leave(weight int64) {
	w.bytes.Release(weight)
	w.places.Release(1)
	w.end()
}

// begin counts a call that needs no place: its caller waits for it.
func (w *window) begin() {
	w.flying.Add(1)
	w.count.Add(1)
}

func (w *window) end() {
	w.count.Add(-1)
	w.flying.Done()
}

// weight is how many bytes of the window a call takes: one at least, and never more
// than there are.
func (w *window) weight(c *journal.CallRecord) int64 {
	return min(max(int64(len(c.Arguments)), c.ArgumentsObject.Size, 1), w.maxBytes)
}
