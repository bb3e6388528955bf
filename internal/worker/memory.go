package worker

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// keptFor is how long the outcome of a call is remembered.
	keptFor = 2 * time.Minute
	// keptCalls and keptBytes limit the memory for all calls, keptOne the result of one call. Of a
	// larger result, only the digest is kept.
	keptCalls = 16_384
	keptBytes = 16 << 20
	keptOne   = 1 << 20
	// keptOverhead is the approximate size of a call without its result.
	keptOverhead = 256
	// briefFor, briefCalls and briefBytes are for calls without a ledger entry, whose callers
	// wait. They only have to cover answers that were lost with a NATS node.
	briefFor   = 15 * time.Second
	briefCalls = 16_384
	briefBytes = 8 << 20
)

// memory remembers the calls that have a ledger entry, so that a router that takes over calls from
// their owner learns their outcome.
//
// The calls of each router are stored separately, and the router with the most loses entries first.
// Thus the calls of live routers do not displace those of a router that died. It is safe for
// concurrent use.
type memory struct {
	worker schema.WorkerID
	// most limits the number, size and age of the calls that are kept.
	most struct {
		calls, bytes int
		age          time.Duration
	}

	mu     sync.Mutex
	calls  map[schema.CallID]*rememberedCall
	owners map[bus.ReplyTo]*routerCalls
	size   int // bytes of all chained calls
	count  int
	seen   duplicateFilter
	lost   lostMessages
}

// rememberedCall is one remembered call.
type rememberedCall struct {
	id    schema.CallID
	state bus.OutcomeState
	seq   uint64 // number of the message that is running, or was the last one
	// only, if set, is the router that last took over the call. The call is refused if it comes
	// from another router, because that router no longer owns it.
	only  bus.ReplyTo
	out   session.Outcome // if ended; Body is never changed
	since time.Time       // time of its end, or of the query about it
	size  int

	in         *routerCalls // nil while it is running
	next, prev *rememberedCall
}

// routerCalls holds the calls of one router that are not running, oldest first.
type routerCalls struct {
	router      bus.ReplyTo
	size        int
	first, last *rememberedCall
}

func newMemory(worker schema.WorkerID, now time.Time) *memory {
	m := &memory{worker: worker, calls: make(map[schema.CallID]*rememberedCall), owners: make(map[bus.ReplyTo]*routerCalls), seen: newDuplicateFilter(now)}
	m.most.calls, m.most.bytes, m.most.age = keptCalls, keptBytes, keptFor
	return m
}

// newBriefMemory returns a memory for calls with [bus.CallFrame.Brief].
func newBriefMemory(worker schema.WorkerID, now time.Time) *memory {
	m := newMemory(worker, now)
	m.most.calls, m.most.bytes, m.most.age = briefCalls, briefBytes, briefFor
	return m
}

// begin records that the call arrived from the router, before it is processed. It returns the
// reason if the call must not run.
func (m *memory) begin(id schema.CallID, seq uint64, from bus.ReplyTo, now time.Time) *schema.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.calls[id]
	if k != nil && k.only != "" && k.only != from {
		return schema.Errorf(schema.KindConflict, "Another front door took over this call; worker %s did not start it again.", m.worker)
	}
	if m.lost.has(seq) {
		return schema.Errorf(schema.KindConflict, "Worker %s had reported that it did not receive this call; it did not start.", m.worker)
	}
	m.seen.add(id, now)
	if k == nil {
		m.calls[id] = &rememberedCall{id: id, state: bus.OutcomeRunning, seq: seq}
		return nil
	}
	m.unchain(k)
	k.state, k.seq, k.out = bus.OutcomeRunning, seq, session.Outcome{}
	return nil
}

// end records the outcome of the message with the call. A call that did not start counts as never
// received. The router may have sent the call again already, because its answer is sent first. Then the
// outcome is that of the later message.
func (m *memory) end(id schema.CallID, seq uint64, from bus.ReplyTo, out session.Outcome, now time.Time) {
	state := bus.OutcomeEnded
	if !out.Started {
		state, out = bus.OutcomeNever, session.Outcome{}
	}
	out, size := m.keepable(id, out)
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.calls[id]
	if k == nil || k.state != bus.OutcomeRunning || k.seq != seq {
		return
	}
	k.state, k.out, k.since, k.size = state, out, now, size
	m.chain(k, from)
	m.bound()
}

// keepable returns the part of the outcome that is kept, and its size.
func (m *memory) keepable(id schema.CallID, out session.Outcome) (session.Outcome, int) {
	if n := len(out.Body); n > keptOne {
		out.Err = schema.Errorf(schema.KindResultTooLarge, "The tool answered, but its result of %d bytes (SHA-256 %x) is too large for worker %s to keep.", n, sha256.Sum256(out.Body), m.worker).WithCall(id)
		out.Body = nil
		return out, keptOverhead
	}
	if !out.Alone { // the buffer may be much larger than the answer
		out.Body = bytes.Clone(out.Body)
	}
	size := keptOverhead + len(out.Body)
	if e := out.Err; e != nil && e.RPC != nil {
		if n := len(e.RPC.Message) + len(e.RPC.Data); n > keptOne {
			out.Err = &schema.Error{Kind: e.Kind, CallID: id, Detail: "The server returned an error that is too large to keep."}
		} else {
			size += n
		}
	}
	return out, size
}

// asked returns the outcomes of the calls, in their order. From then on, calls that are not running
// are refused if they come from any router but the one that asks. If the router asks about messages of its
// own, these messages are refused instead, if they did not arrive.
func (m *memory) asked(q *bus.OutcomeQuery, from bus.ReplyTo, now time.Time) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trim(now)
	var answer []byte
	own := len(q.Seqs) == len(q.CallIDs)
	for i, id := range q.CallIDs {
		f := bus.Outcome{CallID: id}
		k := m.calls[id]
		if k == nil {
			f.State = bus.OutcomeForgotten
			if !m.seen.maybe(id) && m.seen.covers(q.Within, now) {
				f.State = bus.OutcomeNever
			}
			k = &rememberedCall{id: id, state: f.State, since: now, size: keptOverhead}
			m.calls[id] = k
			m.chain(k, from)
		}
		f.State = k.state
		switch {
		case !own: // it takes over the call
			k.only = from
		case k.state == bus.OutcomeNever:
			if f.Refused = m.lost.add(q.Seqs[i], now); !f.Refused {
				f.State = bus.OutcomeForgotten
			}
		}
		if k.state == bus.OutcomeEnded {
			if f.Err = k.out.Err; f.Err == nil || f.Err.Kind == schema.KindResultTooLarge && k.out.Body == nil {
				f.Result = &schema.Result{Body: k.out.Body, ToolError: k.out.ToolError, InputRequired: k.out.Input, Worker: m.worker, Took: k.out.Took}
			}
		}
		answer = bus.AppendOutcome(answer, &f)
	}
	m.trim(now)
	return answer
}

// sweep forgets calls that are too old.
func (m *memory) sweep(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trim(now)
}

func (m *memory) chain(k *rememberedCall, router bus.ReplyTo) {
	o := m.owners[router]
	if o == nil {
		o = &routerCalls{router: router}
		m.owners[router] = o
	}
	k.in, k.prev, k.next = o, o.last, nil
	if o.last == nil {
		o.first = k
	} else {
		o.last.next = k
	}
	o.last = k
	o.size += k.size
	m.size += k.size
	m.count++
}

// unchain removes the call from its chain, if it is in one.
func (m *memory) unchain(k *rememberedCall) {
	o := k.in
	if o == nil {
		return
	}
	if k.prev == nil {
		o.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		o.last = k.prev
	} else {
		k.next.prev = k.prev
	}
	k.in, k.next, k.prev = nil, nil, nil
	o.size -= k.size
	m.size -= k.size
	m.count--
	if o.first == nil {
		delete(m.owners, o.router)
	}
}

func (m *memory) forget(k *rememberedCall) {
	m.unchain(k)
	delete(m.calls, k.id)
}

// trim forgets calls and lost messages that are too old, and calls that exceed the limits.
func (m *memory) trim(now time.Time) {
	m.lost.trim(now)
	for _, o := range m.owners {
		for k := o.first; k != nil && now.Sub(k.since) > m.most.age; k = o.first {
			m.forget(k)
		}
	}
	m.bound()
}

// bound forgets calls that exceed the limits, and a few more, so that it rarely has work although
// it runs for each call.
func (m *memory) bound() {
	if m.size <= m.most.bytes && m.count <= m.most.calls {
		return
	}
	for bytes, calls := m.most.bytes-m.most.bytes/64, m.most.calls-m.most.calls/64; m.size > bytes || m.count > calls; {
		var most *routerCalls
		for _, o := range m.owners {
			if most == nil || o.size > most.size {
				most = o
			}
		}
		for range 16 { // look up the largest router only once per 16 calls
			if m.forget(most.first); most.first == nil || m.size <= bytes && m.count <= calls {
				break
			}
		}
	}
}
