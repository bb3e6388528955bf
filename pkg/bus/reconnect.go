package bus

import (
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// hooks are functions that are called when something has happened. It is safe for
// concurrent use.
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

// OnReconnect calls f each time the connection stands again after it was lost; f
// must not block. What was on its way when it broke may never come. When stop
// returns f is not called any more.
func (c *Conn) OnReconnect(f func()) (stop func()) { return c.again.add(f) }

// Waiting calls f with each call that waits for a reply at the moment, and the
// worker that it went to, "" where that is not known.
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

// Answer ends a call that still waits with what became of it, a frame of a result or
// an error: the reply itself was lost. It says whether the call still waited; one of
// which a large result has begun to come does not.
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
