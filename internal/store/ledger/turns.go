package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// turns serializes the writers of one record in this process: each sees the result of the previous one,
// instead of failing at the server. It is an optimization and no guarantee; the server decides.
type turns struct {
	mu   sync.Mutex
	byID map[schema.ApprovalID]*turn
}

type turn struct {
	free    chan struct{} // holds one token while there is no writer
	waiting int
}

// turnWait is the maximum wait for a turn. After that, the writer proceeds without it, because the previous
// one may be waiting for an unreachable server.
const turnWait = 250 * time.Millisecond

// take waits for the turn on a record. The caller must call done.
func (t *turns) take(ctx context.Context, id schema.ApprovalID) (done func()) {
	t.mu.Lock()
	w := t.byID[id]
	if w == nil {
		w = &turn{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		t.byID[id] = w
	}
	w.waiting++
	t.mu.Unlock()
	mine := false
	select {
	case <-w.free:
		mine = true
	default:
		late := time.NewTimer(turnWait)
		select {
		case <-w.free:
			mine = true
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
	}
	return func() {
		if mine {
			w.free <- struct{}{}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.waiting--; w.waiting == 0 {
			delete(t.byID, id)
		}
	}
}
