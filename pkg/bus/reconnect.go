package bus

import (
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// hooks are functions that are called on an event. It is safe for concurrent use.
type hooks struct {
	mu  sync.RWMutex
	all map[*func()]struct{}
}

func (h *hooks) add(f func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = make(map[*func()]struct{})
	}
	h.all[&f] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.all, &f)
	}
}

func (h *hooks) run() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for f := range h.all {
		(*f)()
	}
}

// OnReconnect calls f each time the connection is re-established after a loss. f must not block.
// Messages in flight when the connection was lost may never arrive. After stop returns, f is not
// called again.
func (c *Conn) OnReconnect(f func()) (stop func()) { return c.again.add(f) }

// Waiting calls f for each call that currently waits for a reply. worker is the worker that it was
// sent to, or "" if unknown.
func (cl *Client) Waiting(f func(seq uint64, worker schema.WorkerID, to Receiver)) {
	type one struct {
		seq    uint64
		worker schema.WorkerID
		to     Receiver
	}
	cl.mu.Lock()
	all := make([]one, 0, len(cl.pending))
	for seq, p := range cl.pending {
		all = append(all, one{seq, p.worker, p.to})
	}
	cl.mu.Unlock()
	for _, o := range all {
		f(o.seq, o.worker, o.to)
	}
}

// Answer ends a call that still waits, with a frame of a result or an error, after the reply
// itself was lost. It reports whether the call still waited. A call whose large result has begun
// to arrive does not count as waiting.
func (cl *Client) Answer(f *ReplyFrame) bool {
	cl.mu.Lock()
	p := cl.pending[f.Seq]
	if p == nil || p.partly {
		cl.mu.Unlock()
		return false
	}
	delete(cl.pending, f.Seq)
	cl.mu.Unlock()
	p.out.endedWithout(p.bulk)
	p.to.Reply(f)
	return true
}
