package ledger

import (
	"context"
	"sync"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// sharedReads shares reads from the leader: all callers that asked for a record before a read began get its
// result. So a thousand writers that lost a race cause two reads.
type sharedReads struct {
	store *Records
	mu    sync.Mutex
	byID  map[schema.ApprovalID]*asked
	work  sync.WaitGroup
}

// asked holds the read in progress for a record, and the next one, which begins when it has ended.
type asked struct{ now, next *read }

type read struct {
	done   chan struct{}
	record Stored
	err    error
}

func newReads(store *Records) *sharedReads {
	return &sharedReads{store: store, byID: map[schema.ApprovalID]*asked{}}
}

// read reads a record from the leader. The read begins after the call of this method.
func (r *sharedReads) read(ctx context.Context, id schema.ApprovalID) (Stored, error) {
	r.mu.Lock()
	a := r.byID[id]
	var mine *read
	switch {
	case a == nil:
		mine = &read{done: make(chan struct{})}
		a = &asked{now: mine}
		r.byID[id] = a
		r.work.Go(func() { r.run(id, a) })
	case a.next == nil:
		a.next = &read{done: make(chan struct{})}
		fallthrough
	default:
		mine = a.next
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.record, mine.err
	case <-ctx.Done():
		return Stored{}, ctx.Err()
	}
}

func (r *sharedReads) run(id schema.ApprovalID, a *asked) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		a.now.record, a.now.err = r.store.get(ctx, id, bus.Leader)
		cancel()
		close(a.now.done)
		r.mu.Lock()
		if a.now, a.next = a.next, nil; a.now == nil {
			delete(r.byID, id)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// close waits for reads in progress.
func (r *sharedReads) close() { r.work.Wait() }
