package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// turns lets the writers of one record in this process come one after the other:
// each then sees what the one before it wrote, instead of losing against it at the
// server. It saves work and promises nothing; the fence is the server's.
type turns struct {
	mu   sync.Mutex
	byID map[schema.ApprovalID]*turn
}

type turn struct {
	free    chan struct{} // holds one token while nobody writes
	waiting int
}

// turnWait is how long a writer waits for its turn. Then it goes without: the one
// before it may be waiting for a server that is away.
const turnWait = 250 * time.Millisecond

// take waits for the turn on a record. done must be called.
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
