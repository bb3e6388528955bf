package bus

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/pkg/schema"
)

// Receiver receives the replies to one call. Reply is called from the client's subscription,
// one frame at a time, and must not block. The receiver may keep the payload of a frame, but
// not the frame.
type Receiver interface {
	Reply(*ReplyFrame)
}

// Client is the calling side of the bus, used by a router. A client has one reply subject.
// Concurrent calls to the same worker share messages. All methods are safe for concurrent use.
type Client struct {
	conn     *Conn
	id       string
	log      *slog.Logger
	sub      *nats.Subscription
	replies  string
	credit   *semaphore.Weighted // bytes of parts that were granted and have not arrived
	assembly *semaphore.Weighted // bytes of large results that are being assembled

	mu      sync.Mutex
	random  *rand.ChaCha8
	pending map[uint64]*pendingCall
	probes  map[uint64]chan bool // by message number; true: the worker listens

	outboxes sync.Map // subject → *outbox
}

type pendingCall struct {
	to      Receiver
	worker  schema.WorkerID // empty if sent to the queue group
	out     *outbox         // nil if handed over within the process
	bulk    bool
	partly  bool // the first part of a large result has arrived; guarded by the client's lock
	message atomic.Uint64
}

const (
	// partSize is the maximum size of a part of a result, and so of one message. It keeps
	// the data that a NATS server buffers for a slow router far below the server's limit of
	// 64 MiB per connection.
	partSize = 256 << 10
	// creditBytes limits the bytes of large results in transit to one client.
	creditBytes = 16 << 20
	// grantBytes limits the share of creditBytes that one result uses at a time.
	grantBytes = 4 << 20
	// assemblyBytes limits the memory for large results that are being assembled.
	assemblyBytes = 1 << 30
	// partTimeout is the maximum time between two parts from a worker. After half of it, the rest of
	// a grant is requested again.
	partTimeout = 10 * time.Second
	// maxUnexpected limits the parts of one grant that are not the next one: a grant has 16 parts.
	maxUnexpected = 256
	// pendingBytes limits the bytes that wait to be read by the subscription.
	pendingBytes = 512 << 20
	// probeTimeout is the time in which a worker must answer a probe.
	probeTimeout = 2 * time.Second
)

// NewClient opens the calling side of the router with this id.
func (c *Conn) NewClient(id string) (*Client, error) {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never fails
	cl := &Client{
		conn: c, id: id, log: c.log,
		replies:  subjectReply + Token(id) + ".",
		credit:   semaphore.NewWeighted(creditBytes),
		assembly: semaphore.NewWeighted(assemblyBytes),
		random:   rand.NewChaCha8(seed),
		pending:  make(map[uint64]*pendingCall),
		probes:   make(map[uint64]chan bool),
	}
	sub, err := c.subscribe(cl.replies+"*", "", cl.receive)
	if err != nil {
		return nil, fmt.Errorf("listening for replies: %w", err)
	}
	if err := sub.SetPendingLimits(-1, pendingBytes); err != nil {
		return nil, fmt.Errorf("listening for replies: %w", err)
	}
	cl.sub = sub
	if c.local != nil {
		c.local.clients.Store(ReplyTo(cl.replies), cl)
	}
	// The subscription must be active before the first call is sent.
	if err := c.nc.FlushTimeout(connectTimeout); err != nil {
		return nil, fmt.Errorf("listening for replies: %w", err)
	}
	return cl, nil
}

// Close unsubscribes from replies. Later replies are lost, so the caller must wait for its
// calls first.
func (cl *Client) Close() error {
	if l := cl.conn.local; l != nil {
		l.clients.Delete(ReplyTo(cl.replies))
	}
	if err := cl.sub.Unsubscribe(); err != nil && !cl.conn.nc.IsClosed() {
		return fmt.Errorf("closing the reply subscription: %w", err)
	}
	return nil
}

// Send sends f to a worker and returns its sequence number for [Client.Cancel] and
// [Client.Forget]. The receiver to gets exactly one final frame (result, error, first part,
// nobody, lost), unless Forget is called first. A message over the size limit of the NATS
// server is refused with KindTooLarge, and nothing is sent.
func (cl *Client) Send(worker schema.WorkerID, f *CallFrame, to Receiver) (uint64, error) {
	return cl.send(subjectCall+Token(worker), worker, f, to)
}

// SendAny sends f to any worker that offers f.Server. It is the fallback for callers that see
// no worker to choose.
func (cl *Client) SendAny(f *CallFrame, to Receiver) (uint64, error) {
	return cl.send(subjectServe+Token(f.Server), "", f, to)
}

func (cl *Client) send(subject string, worker schema.WorkerID, f *CallFrame, to Receiver) (uint64, error) {
	size := len(f.Payload) + len(f.Extra) + headSize(f)
	if most := cl.conn.MaxPayload(); size > most {
		return 0, schema.Errorf(schema.KindTooLarge, "The arguments have %d bytes and exceed the limit of %d bytes for a message to a worker. Send less, or raise max_payload of the NATS server.", len(f.Payload), most-(size-len(f.Payload)))
	}
	p := &pendingCall{to: to, worker: worker, bulk: f.Bulk}
	cl.mu.Lock()
	for f.Seq = cl.random.Uint64(); f.Seq == 0 || cl.pending[f.Seq] != nil; {
		f.Seq = cl.random.Uint64()
	}
	l := cl.conn.local.listener(worker)
	if l == nil {
		p.out = cl.outboxOf(subject)
	}
	cl.pending[f.Seq] = p
	cl.mu.Unlock()
	if l != nil {
		cl.sendLocal(l, f)
		return f.Seq, nil
	}
	p.out.addCall(size, f.Bulk, func(dst []byte) []byte { return AppendCall(dst, f) }, p.message.Store)
	return f.Seq, nil
}

// Headroom is an upper bound of the size of a frame head without Extra, unless the caller is in an
// extreme number of groups. Ids, names and the trace context are limited where they are received.
const Headroom = 16 << 10

// headSize returns an upper bound of the size of the head of f without Extra.
func headSize(f *CallFrame) int {
	groups := 0
	for _, group := range f.Groups {
		groups += len(group) + 1 + binary.MaxVarintLen32
	}
	return max(Headroom, groups+Headroom/2)
}

func (cl *Client) outboxOf(subject string) *outbox {
	if b, ok := cl.outboxes.Load(subject); ok {
		return b.(*outbox)
	}
	b, _ := cl.outboxes.LoadOrStore(subject, &outbox{
		nc: cl.conn.nc, subject: subject, numbers: cl.number,
		limit:   min(partSize, cl.conn.MaxPayload()),
		reply:   cl.replySubject,
		onError: cl.unsent,
	})
	return b.(*outbox)
}

// forgetOutbox drops the outbox of a worker that is disconnected.
func (cl *Client) forgetOutbox(worker schema.WorkerID) {
	cl.outboxes.Delete(subjectCall + Token(worker))
}

// unsent ends the calls of a message that could not be published. They did not start.
func (cl *Client) unsent(number uint64, err error) {
	level := slog.LevelWarn
	if !cl.conn.nc.IsConnected() {
		level = slog.LevelDebug // the connection has logged that it is down, and the calls end with an error
	}
	cl.log.Log(context.Background(), level, "a message was not sent", "error", err)
	cl.endMessage(number, ReplyNobody)
}

// number returns a random number for a message. It is the last token of the reply subject. A
// process that knows the number could report that no worker received the message, so that its
// calls are sent again. It is random because every worker may publish on reply subjects.
func (cl *Client) number() uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return max(cl.random.Uint64(), 1) // 0 means calls within this process
}

func (cl *Client) replySubject(n uint64) string { return cl.replies + strconv.FormatUint(n, 36) }

// receive handles one message of replies.
func (cl *Client) receive(m *nats.Msg) {
	if len(m.Data) == 0 {
		cl.receiveEmpty(m)
		return
	}
	// The frames of a message come from one worker, so they usually belong to one outbox.
	var out *outbox
	n, bulk := 0, 0
	err := ReadReplies(m.Data, func(f *ReplyFrame) {
		p, ended := cl.deliver(f)
		if p == nil {
			return
		}
		if p.out != out {
			out.endedIf(n, bulk)
			out, n, bulk = p.out, 0, 0
		}
		if ended {
			n++
			if p.bulk {
				bulk++
			}
		}
	})
	out.endedIf(n, bulk)
	if err != nil {
		cl.conn.dropped(UnexpectedBytes)
		cl.log.Error("a reply cannot be read", "subject", m.Subject, "bytes", len(m.Data), "error", err)
	}
}

// deliver passes a frame to its receiver. It returns the call, or nil if there is none, and
// whether this frame ended it.
func (cl *Client) deliver(f *ReplyFrame) (p *pendingCall, ended bool) {
	cl.mu.Lock()
	p = cl.pending[f.Seq]
	if p == nil {
		cl.mu.Unlock()
		cl.conn.dropped(UnexpectedNumber)
		return nil, false
	}
	if ended = f.Kind == ReplyResult || f.Kind == ReplyError; ended {
		delete(cl.pending, f.Seq)
	}
	p.partly = p.partly || f.Kind == ReplyFirst
	cl.mu.Unlock()
	p.to.Reply(f)
	return p, ended
}

// receiveEmpty handles the response to a whole message. Status 503, from NATS or from a worker
// that cannot read the message, means that no worker accepted it. Any other response means
// that the worker listens.
func (cl *Client) receiveEmpty(m *nats.Msg) {
	n, err := strconv.ParseUint(LastToken(m.Subject), 36, 64)
	if err != nil || n == 0 {
		cl.conn.dropped(UnexpectedNumber)
		return
	}
	nobody := m.Header.Get("Status") == "503"
	cl.mu.Lock()
	probe := cl.probes[n]
	delete(cl.probes, n)
	cl.mu.Unlock()
	switch {
	case probe != nil:
		probe <- !nobody // buffered for this one response
	case !nobody || cl.endMessage(n, ReplyNobody) == 0:
		cl.conn.dropped(UnexpectedNumber)
	}
}

// endMessage ends every call that was sent in one message, and returns the number of calls.
// It is rare, so it scans all calls rather than maintain a second index on the hot path.
func (cl *Client) endMessage(number uint64, kind ReplyKind) int {
	return cl.endWhere(kind, func(p *pendingCall) bool { return p.message.Load() == number })
}

// Lost ends every call in flight at the worker with [ReplyLost] and drops the worker's state.
func (cl *Client) Lost(worker schema.WorkerID) {
	cl.endWhere(ReplyLost, func(p *pendingCall) bool { return p.worker == worker })
	cl.forgetOutbox(worker)
}

// LostOf ends calls in flight at the worker with [ReplyLost] if which returns true for their
// receiver. The other calls continue to wait. which is called with a lock held and must not call
// the client.
func (cl *Client) LostOf(worker schema.WorkerID, which func(to Receiver) bool) {
	cl.endWhere(ReplyLost, func(p *pendingCall) bool { return p.worker == worker && which(p.to) })
}

func (cl *Client) endWhere(kind ReplyKind, which func(*pendingCall) bool) int {
	ended := make(map[uint64]*pendingCall)
	cl.mu.Lock()
	for seq, p := range cl.pending {
		if which(p) {
			ended[seq] = p
			delete(cl.pending, seq)
		}
	}
	cl.mu.Unlock()
	for seq, p := range ended {
		p.out.endedWithout(p.bulk)
		p.to.Reply(&ReplyFrame{Seq: seq, Kind: kind, Worker: p.worker})
	}
	return len(ended)
}

// Pending returns the number of calls that wait for a reply.
func (cl *Client) Pending() int {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return len(cl.pending)
}

// Forget drops a call. Its receiver gets no further frame, except one that is being delivered
// at this moment.
func (cl *Client) Forget(seq uint64) {
	if p := cl.take(seq); p != nil {
		p.out.endedWithout(p.bulk)
	}
}

// Cancel asks the worker to cancel the call seq. If it can, the worker responds with an error
// as usual.
func (cl *Client) Cancel(worker schema.WorkerID, seq uint64) {
	cl.control(worker, &ControlFrame{Kind: ControlCancel, Seq: seq})
}

// AnswerAsked sends the answer to a request that arrived as a frame of kind [ReplySaid].
// worker, seq and number are those of the frame. object is a JSON object with result or error.
// An object that does not fit into a message is refused with KindTooLarge.
func (cl *Client) AnswerAsked(worker schema.WorkerID, seq uint64, number int64, object []byte) error {
	if most := cl.conn.MaxPayload() - Headroom; len(object) > most {
		return schema.Errorf(schema.KindTooLarge, "The answer to the server has %d bytes and exceeds the limit of %d bytes for a message to a worker.", len(object), most)
	}
	cl.control(worker, &ControlFrame{Kind: ControlAnswer, Seq: seq, Offset: number, Payload: object})
	return nil
}

func (cl *Client) control(worker schema.WorkerID, f *ControlFrame) {
	if l := cl.conn.local.listener(worker); l != nil {
		l.obey(f)
		return
	}
	if err := cl.conn.nc.Publish(subjectControl+Token(worker), AppendControl(nil, f)); err != nil {
		cl.log.Warn("a control message was not sent", "worker", worker, "error", explained(err))
	}
}

// Near reports whether the worker is in this process, so that no message to or from it is lost.
func (cl *Client) Near(worker schema.WorkerID) bool { return cl.conn.local.listener(worker) != nil }

// settleFor is the time after a reconnect during which other connections may still be missing.
// They retry about every half second.
const settleFor = 5 * time.Second

// Settled reports whether a worker that does not listen can be considered dead. In a cluster, while
// this connection is down, and for some seconds after it was re-established, the worker may be
// reconnecting.
func (cl *Client) Settled() bool {
	c := cl.conn
	// The handler of a reconnect runs in a goroutine of its own, so it may not have run yet.
	reconnecting := !c.nc.IsConnected() || c.nc.Stats().Reconnects != c.reconnects.Load()
	at := c.reconnectedAt.Load()
	return !c.Clustered() && !reconnecting && (at == nil || time.Since(*at) > settleFor)
}

// Listens checks whether the worker listens. False is certain only at this moment: the worker
// may be connecting to another server of a cluster, or to one that restarted.
func (cl *Client) Listens(ctx context.Context, worker schema.WorkerID) bool {
	if cl.Near(worker) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// The worker answers on the reply subject, because it may publish on no other.
	answer, n := make(chan bool, 1), cl.number()
	cl.mu.Lock()
	cl.probes[n] = answer
	cl.mu.Unlock()
	defer func() {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		delete(cl.probes, n)
	}()
	if err := cl.conn.nc.PublishRequest(subjectControl+Token(worker), cl.replySubject(n), nil); err != nil {
		return true // nothing is known about the worker
	}
	select {
	case listens := <-answer:
		return listens
	case <-ctx.Done():
		return true
	}
}

// Fetch fetches the rest of a large result. first is the frame of kind [ReplyFirst], and parts
// provides the frames of kind [ReplyPart] that the receiver passes on. It requests parts again that
// were lost on the way, as when a connection to NATS was re-established. It returns the whole result,
// or an error if ctx ends, the worker is lost, or a part does not arrive.
func (cl *Client) Fetch(ctx context.Context, worker schema.WorkerID, first ReplyFrame, parts <-chan ReplyFrame) ([]byte, error) {
	defer cl.Forget(first.Seq)
	// The worker keeps the result until then.
	defer cl.control(worker, &ControlFrame{Kind: ControlForget, Seq: first.Seq})
	if first.Total > assemblyBytes { // it would wait for memory forever
		return nil, fmt.Errorf("a result may have at most %d bytes", int64(assemblyBytes))
	}
	if err := cl.assembly.Acquire(ctx, first.Total); err != nil {
		return nil, fmt.Errorf("waiting for memory for a result of %d bytes: %w", first.Total, err)
	}
	defer cl.assembly.Release(first.Total)
	body := make([]byte, 0, first.Total)
	body = append(body, first.Payload...)
	for int64(len(body)) < first.Total {
		want := min(first.Total-int64(len(body)), grantBytes)
		if err := cl.fetchPart(ctx, worker, first.Seq, &body, want, parts); err != nil {
			return nil, err
		}
	}
	return body, nil
}

func (cl *Client) fetchPart(ctx context.Context, worker schema.WorkerID, seq uint64, body *[]byte, want int64, parts <-chan ReplyFrame) error {
	if err := cl.credit.Acquire(ctx, want); err != nil {
		return fmt.Errorf("waiting to fetch the rest of the result: %w", err)
	}
	defer cl.credit.Release(want)
	end := int64(len(*body)) + want
	grant := func() {
		at := int64(len(*body))
		cl.control(worker, &ControlFrame{Kind: ControlGrant, Seq: seq, Offset: at, Length: end - at})
	}
	grant()
	const half = partTimeout / 2
	silence := time.NewTimer(half)
	defer silence.Stop()
	silent := 0     // half periods without the next part
	again := false  // the next part was lost and requested again
	unexpected := 0 // parts other than the next one
	for int64(len(*body)) < end {
		select {
		case <-silence.C:
			// If this process was stopped for longer than the timeout, the timer fires before
			// the parts that have arrived meanwhile are read. So one period is not enough.
			if silent++; silent == 2 {
				return fmt.Errorf("the worker sent no data for %s", partTimeout)
			}
			grant()
			silence.Reset(half)
		case <-ctx.Done():
			return fmt.Errorf("fetching the rest of the result: %w", ctx.Err())
		case p := <-parts:
			switch {
			case p.Kind == ReplyPart && p.Offset == int64(len(*body)) && int64(len(*body)+len(p.Payload)) <= end:
				*body = append(*body, p.Payload...)
				silent, again = 0, false
				silence.Reset(half)
			case p.Kind == ReplyPart && p.Offset != int64(len(*body)) && unexpected < maxUnexpected:
				// A part before it was lost, or it was sent twice because it was requested again.
				if unexpected++; p.Offset > int64(len(*body)) && !again {
					again = true
					grant()
				}
			case p.Kind == ReplyLost:
				return errors.New("the worker was lost")
			case p.Kind == ReplyError:
				return fmt.Errorf("the worker no longer has the rest of the result: %s", p.Payload)
			default:
				return fmt.Errorf("a part of the result is missing at byte %d", len(*body))
			}
		}
	}
	return nil
}
