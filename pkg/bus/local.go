package bus

import (
	"sync"

	"github.com/callyard/callyard/pkg/schema"
)

// Local connects the connections of one process directly. A call to a worker of the same
// process is handed over unchanged, without the NATS server. The behavior is the same for the
// caller and the worker (see docs/adr/0007). Presence, switches and calls to any worker of a
// server still use NATS.
//
// Set the same Local in the [Options] of every connection of the process.
type Local struct {
	listeners sync.Map // worker id → *Listener
	clients   sync.Map // ReplyTo → *Client
}

// listener returns the listener of a worker of this process, or nil. A nil Local has no
// listeners.
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

// localGate admits calls until it is closed. Closing waits for the calls inside.
type localGate struct {
	mu     sync.RWMutex
	closed bool
}

// take hands a call to the worker. It returns false if the worker accepts no more calls.
func (l *Listener) take(f *CallFrame, to ReplyTo) bool {
	l.gate.mu.RLock()
	defer l.gate.mu.RUnlock()
	if l.gate.closed {
		return false
	}
	l.handler.Call(f, to)
	return true
}

// closeGate accepts no more calls from this process and waits until calls that are being handed
// over have arrived.
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

// take removes a pending call and returns it, or nil if it is not pending.
func (cl *Client) take(seq uint64) *pendingCall {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	p := cl.pending[seq]
	delete(cl.pending, seq)
	return p
}
