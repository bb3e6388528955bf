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
func (l *Local) listener(worker schema.WorkerID) *Listener {
	if l == nil {
		return nil
	}
	v, _ := l.listeners.Load(worker)
	found, _ := v.(*Listener)
	return found
}

func (l *Local) client(to ReplyTo) *Client {
	if l == nil {
		return nil
	}
	v, _ := l.clients.Load(to)
	found, _ := v.(*Client)
	return found
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
	if l.take(f, ReplyTo(cl.replies)) {
		return
	}
	if p := cl.take(f.Seq); p != nil {
		p.to.Reply(&ReplyFrame{Seq: f.Seq, Kind: ReplyNobody, Worker: p.worker})
	}
}

// take removes a call from those that wait; nil where it does not.
func (cl *Client) take(seq uint64) *pendingCall {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	p := cl.pending[seq]
	delete(cl.pending, seq)
	return p
}
