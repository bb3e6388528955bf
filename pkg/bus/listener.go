package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// Handler is the worker behind a [Listener]. Its methods are called from subscriptions and must
// not block.
type Handler interface {
	// Call accepts a call. The handler must respond with exactly one of [Listener.Result] and
	// [Listener.Error].
	Call(*CallFrame, ReplyTo)
	// Cancel cancels a call in flight. It ignores unknown numbers.
	Cancel(seq uint64)
}

// Answerer is a [Handler] that uses [Listener.Said]. Answer receives the response to request
// number of the call seq, unchanged. The handler may keep object. Answer ignores unknown
// numbers and must not block.
type Answerer interface {
	Answer(seq uint64, number int64, object []byte)
}

// ReplyTo is the destination of the replies to a call.
type ReplyTo string

// Listener is the answering side of the bus, used by a worker. All methods are safe for
// concurrent use.
type Listener struct {
	conn    *Conn
	worker  schema.WorkerID
	log     *slog.Logger
	handler Handler
	calls   *nats.Subscription
	control *nats.Subscription

	mu        sync.Mutex
	offers    map[schema.ServerID]*nats.Subscription
	transfers map[uint64]*transfer

	gate     localGate
	outboxes sync.Map // ReplyTo → *outbox
	grants   chan ControlFrame
	stop     chan struct{}
	done     chan struct{}

	inFlight   atomic.Int64 // calls that arrived over NATS and have not been answered
	unfetched  atomic.Int64 // bytes of the transfers
	publishers sync.WaitGroup
	closing    sync.Once
}

// transfer is a large result that waits to be fetched.
type transfer struct {
	to      ReplyTo
	body    []byte
	touched time.Time
	served  bool // all of it was sent, and the router may still request a lost part again
}

const (
	// transferKept is the time for which the rest of a result is kept after the last grant.
	transferKept = 30 * time.Second
	// servedKept is the time for which a result is kept after all of it was sent, unless the router
	// confirms that it has arrived. Routers of version 0.1 do not.
	servedKept = partTimeout
	sweepEvery = 5 * time.Second
	// idleSweeps is the number of sweeps without a reply after which the outbox for a router is
	// dropped: ten minutes. A router that was restarted has another subject for replies.
	idleSweeps = 120
	grantQueue = 1024
)

// Listen starts to accept calls for the worker.
func (c *Conn) Listen(worker schema.WorkerID, h Handler) (*Listener, error) {
	l := &Listener{
		conn: c, worker: worker, log: c.log, handler: h,
		offers:    make(map[schema.ServerID]*nats.Subscription),
		transfers: make(map[uint64]*transfer),
		grants:    make(chan ControlFrame, grantQueue),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	var err error
	if l.calls, err = c.subscribe(subjectCall+Token(worker), "", l.receive); err != nil {
		return nil, fmt.Errorf("listening for calls: %w", err)
	}
	if err = l.calls.SetPendingLimits(-1, pendingBytes); err != nil {
		return nil, fmt.Errorf("listening for calls: %w", err)
	}
	if l.control, err = c.subscribe(subjectControl+Token(worker), "", l.receiveControl); err != nil {
		return nil, fmt.Errorf("listening for control messages: %w", err)
	}
	if err = c.nc.FlushTimeout(connectTimeout); err != nil {
		return nil, fmt.Errorf("listening for calls: %w", err)
	}
	go l.send()
	if c.local != nil {
		c.local.listeners.Store(worker, l)
	}
	return l, nil
}

// Offer also accepts calls that are sent to any worker of the server.
func (l *Listener) Offer(server schema.ServerID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.offers[server] != nil {
		return nil
	}
	sub, err := l.conn.subscribe(subjectServe+Token(server), queueWorkers, l.receive)
	if err != nil {
		return fmt.Errorf("offering server %q: %w", server, err)
	}
	l.offers[server] = sub
	return nil
}

// Withdraw reverts [Listener.Offer]. Calls that NATS already assigned to this worker still
// arrive.
func (l *Listener) Withdraw(server schema.ServerID) {
	l.mu.Lock()
	sub := l.offers[server]
	delete(l.offers, server)
	l.mu.Unlock()
	if sub != nil {
		if err := sub.Drain(); err != nil && !l.conn.nc.IsClosed() {
			l.log.Warn("withdrawing a server", "server", server, "error", err)
		}
	}
}

func (l *Listener) receive(m *nats.Msg) {
	if !fromRouter(m) {
		l.log.Error("a call that was not sent by a router is dropped", "bytes", len(m.Data))
		l.conn.dropped(UnexpectedOrigin)
		return
	}
	to := ReplyTo(m.Reply[:len(m.Reply)-len(LastToken(m.Reply))])
	err := ReadCalls(m.Data, func(f *CallFrame) {
		l.inFlight.Add(1)
		l.handler.Call(f, to)
	})
	if errors.Is(err, errVersion) {
		l.refuseMessage(m.Reply)
	}
	if err != nil {
		l.conn.dropped(UnexpectedBytes)
		l.log.Error("a call cannot be read", "bytes", len(m.Data), "error", err)
	}
}

// refuseMessage answers a message of another wire version like NATS answers a message without
// responders. Every version of a router understands that: nothing in the message has started.
func (l *Listener) refuseMessage(reply string) {
	m := nats.NewMsg(reply)
	m.Header.Set("Status", "503")
	if err := l.conn.nc.PublishMsg(m); err != nil {
		l.log.Warn("a message of another version could not be refused", "error", err)
	}
}

func (l *Listener) receiveControl(m *nats.Msg) {
	if len(m.Data) == 0 { // a probe: the router checks whether this worker listens
		if !fromRouter(m) {
			l.conn.dropped(UnexpectedOrigin)
			return
		}
		if err := m.Respond(nil); err != nil {
			l.log.Debug("answering a probe", "error", err)
		}
		return
	}
	if err := ReadControls(m.Data, l.obey); err != nil {
		l.conn.dropped(UnexpectedBytes)
		l.log.Error("a control message cannot be read", "error", err)
	}
}

func (l *Listener) obey(f *ControlFrame) {
	switch f.Kind {
	case ControlCancel:
		l.handler.Cancel(f.Seq)
	case ControlGrant:
		select {
		case l.grants <- *f:
		default: // the reader's timeout ends the transfer
			l.log.Warn("too many grants at once; one was dropped")
		}
	case ControlAnswer:
		if h, ok := l.handler.(Answerer); ok {
			h.Answer(f.Seq, f.Offset, f.Payload)
		}
	case ControlForget:
		l.mu.Lock()
		l.dropLocked(f.Seq)
		l.mu.Unlock()
	}
}

// dropLocked forgets a large result. The caller holds l.mu.
func (l *Listener) dropLocked(seq uint64) {
	if t := l.transfers[seq]; t != nil {
		delete(l.transfers, seq)
		l.unfetched.Add(-int64(len(t.body)))
	}
}

// Result sends the result of a call. r.Body must not be changed afterwards. A body that is
// larger than one part is kept until the router has fetched it.
func (l *Listener) Result(to ReplyTo, seq uint64, r *schema.Result) {
	f := &ReplyFrame{Seq: seq, Kind: ReplyResult, Worker: l.worker, Took: r.Took, ToolError: r.ToolError, Input: r.InputRequired, Started: true, Payload: r.Body}
	if cl := l.conn.local.client(to); cl != nil { // of any size
		cl.deliver(f)
		return
	}
	if part := l.partSize(); len(r.Body) > part {
		l.mu.Lock()
		l.dropLocked(seq)
		l.transfers[seq] = &transfer{to: to, body: r.Body, touched: time.Now()}
		l.unfetched.Add(int64(len(r.Body)))
		l.mu.Unlock()
		f.Kind, f.Total, f.Payload = ReplyFirst, int64(len(r.Body)), r.Body[:part]
	}
	l.reply(to, f)
}

// Error ends a call with e. started means that the request may have reached the MCP server.
func (l *Listener) Error(to ReplyTo, seq uint64, e *schema.Error, started bool, took time.Duration) {
	body, err := json.Marshal(e)
	if part := l.partSize(); err != nil || len(body) > part {
		// The data of a JSON-RPC error can be large or invalid. Send the detail without it.
		small := &schema.Error{Kind: e.Kind, CallID: e.CallID, Retryable: e.Retryable, Detail: truncate(e.Detail, 4<<10)}
		body, _ = json.Marshal(small) // cannot fail: only strings, booleans and numbers
	}
	l.reply(to, &ReplyFrame{Seq: seq, Kind: ReplyError, Worker: l.worker, Took: took, Started: started, Payload: body})
}

// Progress sends the params of a progress notification.
func (l *Listener) Progress(to ReplyTo, seq uint64, params []byte) {
	if len(params) > l.partSize() {
		return // progress is optional, so a notification of this size is dropped
	}
	l.reply(to, &ReplyFrame{Seq: seq, Kind: ReplyProgress, Payload: params})
}

// Said sends a request or notification of the MCP server, a JSON object with method and params,
// to the caller of a call whose frame has Hears. number is above zero for a request. If the
// message is too large, Said sends nothing and returns false.
func (l *Listener) Said(to ReplyTo, seq uint64, number int64, message []byte) bool {
	if len(message) > l.partSize() {
		return false
	}
	l.reply(to, &ReplyFrame{Seq: seq, Kind: ReplySaid, Worker: l.worker, Offset: number, Payload: message})
	return true
}

func (l *Listener) partSize() int { return min(partSize, l.conn.MaxPayload()-Headroom) }

func (l *Listener) reply(to ReplyTo, f *ReplyFrame) {
	if cl := l.conn.local.client(to); cl != nil {
		cl.deliver(f)
		return
	}
	out, frame := l.outboxOf(to), func(dst []byte) []byte { return AppendReply(dst, f) }
	final := f.Kind != ReplyProgress && f.Kind != ReplyPart && f.Kind != ReplySaid
	if final && l.inFlight.Add(-1) > 0 {
		// With other calls in flight, other replies may follow immediately: a reader often finds
		// several responses at once.
		out.addLater(len(f.Payload)+frameHeadroom, frame)
		return
	}
	out.add(len(f.Payload)+frameHeadroom, final, frame)
}

// frameHeadroom is larger than the head of any reply.
const frameHeadroom = 256

func (l *Listener) outboxOf(to ReplyTo) *outbox {
	if b, ok := l.outboxes.Load(to); ok {
		return b.(*outbox)
	}
	fresh := &outbox{
		nc: l.conn.nc, subject: string(to) + "r", limit: min(2*partSize, l.conn.MaxPayload()), later: make(chan struct{}, 1), done: make(chan struct{}),
		onError: func(_ uint64, err error) { l.log.Error("replies were not sent", "error", err) },
	}
	b, there := l.outboxes.LoadOrStore(to, fresh)
	if !there {
		l.publishers.Go(func() { fresh.publishLater(l.stop) })
	}
	return b.(*outbox)
}

// send serves grants one after the other, so that a slow socket does not block a subscription.
func (l *Listener) send() {
	defer close(l.done)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case now := <-tick.C:
			l.sweep(now)
		case g := <-l.grants:
			l.serve(g)
		}
	}
}

func (l *Listener) serve(g ControlFrame) {
	l.mu.Lock()
	t := l.transfers[g.Seq]
	if t != nil {
		t.touched = time.Now()
		t.served = g.Offset+g.Length >= int64(len(t.body))
	}
	l.mu.Unlock()
	if t == nil || g.Offset < 0 || g.Length < 0 || g.Offset > int64(len(t.body)) {
		return // ended or invalid; the reader's timeout handles it
	}
	end := min(g.Offset+g.Length, int64(len(t.body)))
	for at := g.Offset; at < end; {
		n := min(int64(l.partSize()), end-at)
		l.reply(t.to, &ReplyFrame{Seq: g.Seq, Kind: ReplyPart, Offset: at, Payload: t.body[at : at+n]})
		at += n
	}
}

func (l *Listener) sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for seq, t := range l.transfers {
		kept := transferKept
		if t.served {
			kept = servedKept
		}
		if now.Sub(t.touched) > kept {
			l.dropLocked(seq)
		}
	}
	l.outboxes.Range(func(to, out any) bool {
		if out.(*outbox).retire(idleSweeps) {
			l.outboxes.CompareAndDelete(to, out)
		}
		return true
	})
}

// Transfers returns the number of large results that wait to be fetched.
func (l *Listener) Transfers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.transfers)
}

// Unfetched returns the number of bytes of the large results that wait to be fetched.
func (l *Listener) Unfetched() int64 { return l.unfetched.Load() }

// StopCalls accepts no further calls. A router that sends one is notified that no worker
// listens, which proves that the call did not start. Before StopCalls returns, it handles the
// calls that NATS already delivered to this worker.
func (l *Listener) StopCalls() {
	l.closeGate()
	l.mu.Lock()
	subs := []*nats.Subscription{l.calls}
	for _, s := range l.offers {
		subs = append(subs, s)
	}
	clear(l.offers)
	l.mu.Unlock()
	if l.conn.Ready() != nil {
		// No message can arrive, and draining would wait for a server that is not connected.
		for _, s := range subs {
			_ = s.Unsubscribe() // it fails only when the connection is closed
		}
		return
	}
	var wait []<-chan nats.SubStatus
	for _, s := range subs {
		if !s.IsValid() {
			continue
		}
		ch := s.StatusChanged(nats.SubscriptionClosed)
		if err := s.Drain(); err == nil {
			wait = append(wait, ch)
		}
	}
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	for _, ch := range wait {
		select {
		case <-ch:
		case <-deadline.C:
			l.log.Warn("subscriptions did not drain in time")
			return
		}
	}
}

// Close ends the listener. Calls and large results in flight are lost, so the caller must wait
// for them first. It may be called more than once.
func (l *Listener) Close() {
	l.StopCalls()
	l.closing.Do(func() {
		if err := l.control.Unsubscribe(); err != nil && !l.conn.nc.IsClosed() {
			l.log.Debug("closing the control subscription", "error", err)
		}
		close(l.stop)
	})
	<-l.done
	l.publishers.Wait()
}

// truncate bounds a text at a whole character. Packages of pkg import nothing internal, so it is
// not the one of internal/kit/truncate.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
