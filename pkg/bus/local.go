package bus

import (
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// Local joins the connections of one process: a call to a worker of the same
// process is handed over as it is, without a way over the NATS server. What a
// caller and a worker see is the same (see docs/adr/0007); presence, switches
// and calls to any worker of a server still go over NATS.
//
// Give the same Local to [Options] of every connection of the process.
type Local struct {
	listeners sync.Map // worker id → *Listener
	clients   sync.Map // ReplyTo → *Client
}

// listener returns the listener of a worker of this process, or nil. A nil Local
// knows nobody.
func (l *Local) listener(worker string) *Listener {
	if l == nil {
		return nil
	}
	v, ok := l.listeners.Load(worker)
	if !ok {
		return nil
	}
	return v.(*Listener)
}

func (l *Local) client(to ReplyTo) *Client {
	if l == nil {
		return nil
	}
	v, ok := l.clients.Load(to)
	if !ok {
		return nil
	}
	return v.(*Client)
}

// localGate lets calls in until it is closed, and then waits for those inside.
type localGate struct {
	mu     sync.RWMutex
	closed bool
}

// take hands a call to the worker, unless it stopped taking calls.
func (l *Listener) take(f *CallFrame, to ReplyTo) bool {
	l.gate.mu.RLock()
	defer l.gate.mu.RUnlock()
	if l.gate.closed {
		return false
	}
	l.handler.Call(f, to)
	return true
}

// closeGate takes no more calls from this process and waits until those that are
// being handed over have been.
func (l *Listener) closeGate() {
	l.conn.local.forgetListener(l)
	l.gate.mu.Lock()
	l.gate.closed = true
	l.gate.mu.Unlock()
}

func (l *Local) forgetListener(of *Listener) {
	if l != nil {
		l.listeners.CompareAndDelete(of.worker, of)
	}
}

// sendLocal hands a registered call to a worker of this process.
func (cl *Client) sendLocal(l *Listener, f *CallFrame) {
	if !l.take(f, ReplyTo(cl.replies)) {
		cl.end(f.Seq, ReplyNobody)
	}
}

// resultLocal hands a result to a router of this process, whatever its size.
func resultLocal(cl *Client, l *Listener, seq uint64, r *schema.Result) {
	cl.deliver(&ReplyFrame{Seq: seq, Kind: ReplyResult, Worker: l.worker, Took: r.Took, ToolError: r.ToolError, Input: r.InputRequired, Started: true, Payload: r.Body})
}

// end ends one call.
func (cl *Client) end(seq uint64, kind ReplyKind) {
	cl.mu.Lock()
	p := cl.pending[seq]
	delete(cl.pending, seq)
	cl.mu.Unlock()
	if p != nil {
		p.to.Reply(&ReplyFrame{Seq: seq, Kind: kind, Worker: p.worker})
	}
}
