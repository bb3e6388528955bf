package bus

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	crand "crypto/rand"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/pkg/schema"
)

// Receiver takes the replies to one call. Reply is called on the client's
// subscription, one frame after the other; it must not block. The payload
// belongs to the receiver, the frame does not.
type Receiver interface {
	Reply(*ReplyFrame)
}

// Client is the calling side of the bus: a router's half. One client has one
// reply subject; its calls to one worker that are under way at once share
// messages. All methods are safe for concurrent use.
type Client struct {
	conn     *Conn
	id       string
	log      *slog.Logger
	sub      *nats.Subscription
	replies  string
	credit   *semaphore.Weighted // bytes of granted parts that are on their way
	assembly *semaphore.Weighted // bytes of results that are being put together

	mu      sync.Mutex
	random  *rand.ChaCha8
	pending map[uint64]*pendingCall
	probes  map[uint64]chan bool // by the number of their message; true: the worker listens

	outboxes sync.Map // subject → *outbox
}

type pendingCall struct {
	to      Receiver
	worker  schema.WorkerID // empty: sent to the queue group
	out     *outbox         // nil: handed over within the process
	bulk    bool
	partly  bool // the first part of a large result has come; under the client's lock
	message atomic.Uint64
}

const (
	// partSize is the most of a result that travels in one message. It keeps
	// what a NATS server has to hold for a router that reads slowly far below
	// its limit of 64 MiB for a connection.
	partSize = 256 << 10
	// creditBytes is how much of large results may be on its way to one client.
	creditBytes = 16 << 20
	// grantBytes is the most of that for one result at a time.
	grantBytes = 4 << 20
	// assemblyBytes bounds what large results may take while they are put together.
	assemblyBytes = 1 << 30
	// partTimeout is how long a worker may be silent between two parts.
	partTimeout = 10 * time.Second
	// pendingBytes is what may wait for the subscription to read it.
	pendingBytes = 512 << 20
	// probeTimeout is how long a worker has to say that it listens.
	probeTimeout = 2 * time.Second
)

// NewClient opens the calling side of the router id.
func (c *Conn) NewClient(id string) (*Client, error) {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("seeding call numbers: %w", err)
	}
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
	// The subscription must stand before the first call leaves.
	if err := c.nc.FlushTimeout(connectTimeout); err != nil {
		return nil, fmt.Errorf("listening for replies: %w", err)
	}
	return cl, nil
}

// Close stops listening. Replies that come later are lost, so the caller waits
// for its calls first.
func (cl *Client) Close() error {
	if l := cl.conn.local; l != nil {
		l.clients.Delete(ReplyTo(cl.replies))
	}
	if err := cl.sub.Unsubscribe(); err != nil && !cl.conn.nc.IsClosed() {
		return fmt.Errorf("closing the reply subscription: %w", err)
	}
	return nil
}

// Send sends f to a worker and returns the number by which [Client.Cancel] and
// [Client.Forget] know it. Exactly one final frame (result, error, first part,
// nobody, lost) reaches to, unless Forget is called first. A message over the
// server's limit is refused with KindTooLarge and nothing is sent.
func (cl *Client) Send(worker schema.WorkerID, f *CallFrame, to Receiver) (uint64, error) {
	return cl.send(subjectCall+Token(worker), worker, f, to)
}

// SendAny sends f to any worker that offers f.Server: the fallback for callers
// that see no worker to choose.
func (cl *Client) SendAny(f *CallFrame, to Receiver) (uint64, error) {
	return cl.send(subjectServe+Token(f.Server), "", f, to)
}

func (cl *Client) send(subject string, worker schema.WorkerID, f *CallFrame, to Receiver) (uint64, error) {
	size := len(f.Payload) + len(f.Extra) + Headroom
	if most := cl.conn.MaxPayload(); size > most {
		return 0, schema.Errorf(schema.KindTooLarge, "The arguments have %d bytes and exceed the limit of %d bytes for a message to a worker. Send less, or raise max_payload of the NATS server.", len(f.Payload), most-Headroom)
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

// Headroom is more than any head takes next to its payload: ids, names and the
// trace context are bounded where they come in.
const Headroom = 16 << 10

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

// forgetOutbox drops the outbox of a worker that is gone.
func (cl *Client) forgetOutbox(worker schema.WorkerID) {
	cl.outboxes.Delete(subjectCall + Token(worker))
}

// unsent ends the calls of a message that NATS did not take: they did not start.
func (cl *Client) unsent(number uint64, err error) {
	cl.log.Warn("a message was not sent", "error", err)
	cl.endMessage(number, ReplyNobody)
}

// number draws the number of a message, which is the last token of its reply subject.
// Whoever knows the number can say that nobody took the message, so that its calls are
// sent again: it is drawn at random, for any worker may publish on reply subjects.
func (cl *Client) number() uint64 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return max(cl.random.Uint64(), 1) // 0 is the number of calls within this process
}

func (cl *Client) replySubject(n uint64) string { return cl.replies + strconv.FormatUint(n, 36) }

// receive takes one message of replies.
func (cl *Client) receive(m *nats.Msg) {
	if len(m.Data) == 0 {
		cl.receiveEmpty(m)
		return
	}
	// The frames of a message come from one worker, so mostly from one outbox.
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

// deliver gives a frame to its receiver. It returns the call, nil where there is
// none, and whether it has ended with this frame.
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

// receiveEmpty takes the answer to a message as a whole: with the status 503 that
// nobody took it, which NATS says or a worker that cannot read it, else that the worker
// listens.
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
		probe <- !nobody // it has room for the one answer
	case !nobody || cl.endMessage(n, ReplyNobody) == 0:
		cl.conn.dropped(UnexpectedNumber)
	}
}

// endMessage ends every call that left in one message. It is rare, so it looks
// at all calls rather than keep a second index on the hot path.
// It returns their number.
func (cl *Client) endMessage(number uint64, kind ReplyKind) int {
	return cl.endWhere(kind, func(p *pendingCall) bool { return p.message.Load() == number })
}

// Lost ends every call that is under way at the worker with [ReplyLost] and
// drops what was kept for it.
func (cl *Client) Lost(worker schema.WorkerID) {
	cl.endWhere(ReplyLost, func(p *pendingCall) bool { return p.worker == worker })
	cl.forgetOutbox(worker)
}

// LostOf ends the calls under way at the worker whose receivers are selected by which, with
// [ReplyLost]; the others keep waiting. which is called with a lock held: it must not call
// back.
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

// Pending is how many calls wait for a reply.
func (cl *Client) Pending() int {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return len(cl.pending)
}

// Forget drops a call: no further frame reaches its receiver, except one that
// is being delivered at this moment.
func (cl *Client) Forget(seq uint64) {
	if p := cl.take(seq); p != nil {
		p.out.endedWithout(p.bulk)
	}
}

// Cancel asks the worker to end the call seq. The worker answers with an error
// as usual, if it can.
func (cl *Client) Cancel(worker schema.WorkerID, seq uint64) {
	cl.control(worker, &ControlFrame{Kind: ControlCancel, Seq: seq})
}

// AnswerAsked sends the answer to a request that came as a frame of kind [ReplySaid];
// worker, seq and number are that frame's, object is a JSON object with result or
// error. One that does not fit into a message is refused with KindTooLarge.
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
		cl.log.Warn("a control message was not sent", "worker", worker, "error", err)
	}
}

// Near says that the worker is in this process, so that no message to or from it is lost.
func (cl *Client) Near(worker schema.WorkerID) bool { return cl.conn.local.listener(worker) != nil }

// settleFor is how long after a connection was made again those of others may still be
// missing: they try about every half second.
const settleFor = 5 * time.Second

// Settled reports whether a worker that does not listen is gone. It may be reconnecting in a
// cluster, and for some seconds after this connection was made again.
func (cl *Client) Settled() bool {
	return !cl.conn.Clustered() && time.Now().UnixNano()-cl.conn.remade.Load() > int64(settleFor)
}

// Probe asks whether the worker still listens. When it does not, every call
// that is under way there ends with [ReplyLost], within one round trip.
func (cl *Client) Probe(ctx context.Context, worker schema.WorkerID) {
	if !cl.Listens(ctx, worker) {
		cl.Lost(worker)
	}
}

// Listens asks whether the worker listens. False is certain of this moment: the
// worker may be on its way to another server of a cluster, or to one that started again.
func (cl *Client) Listens(ctx context.Context, worker schema.WorkerID) bool {
	if cl.Near(worker) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// The worker answers where it answers calls: it may publish nowhere else.
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
		return true // nothing is known of the worker
	}
	select {
	case listens := <-answer:
		return listens
	case <-ctx.Done():
		return true
	}
}

// Fetch brings in the rest of a large result: first is the frame of kind
// [ReplyFirst], parts the frames of kind [ReplyPart] that the receiver passes
// on. It returns the whole result, or an error when ctx ends, the worker is
// lost, or a part is missing.
func (cl *Client) Fetch(ctx context.Context, worker schema.WorkerID, first ReplyFrame, parts <-chan ReplyFrame) ([]byte, error) {
	defer cl.Forget(first.Seq)
	if err := cl.assembly.Acquire(ctx, first.Total); err != nil {
		cl.control(worker, &ControlFrame{Kind: ControlForget, Seq: first.Seq})
		return nil, fmt.Errorf("waiting for memory for a result of %d bytes: %w", first.Total, err)
	}
	defer cl.assembly.Release(first.Total)
	body := make([]byte, 0, first.Total)
	body = append(body, first.Payload...)
	for int64(len(body)) < first.Total {
		want := min(first.Total-int64(len(body)), grantBytes)
		if err := cl.fetchPart(ctx, worker, first.Seq, &body, want, parts); err != nil {
			cl.control(worker, &ControlFrame{Kind: ControlForget, Seq: first.Seq})
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
	cl.control(worker, &ControlFrame{Kind: ControlGrant, Seq: seq, Offset: int64(len(*body)), Length: want})
	silence := time.NewTimer(partTimeout)
	defer silence.Stop()
	for end := int64(len(*body)) + want; int64(len(*body)) < end; silence.Reset(partTimeout) {
		select {
		case <-silence.C:
			return fmt.Errorf("the worker sent no data for %s", partTimeout)
		case <-ctx.Done():
			return fmt.Errorf("fetching the rest of the result: %w", ctx.Err())
		case p := <-parts:
			switch {
			case p.Kind == ReplyPart && p.Offset == int64(len(*body)) && int64(len(*body)+len(p.Payload)) <= end:
				*body = append(*body, p.Payload...)
			case p.Kind == ReplyError:
				return fmt.Errorf("the worker no longer has the rest of the result: %s", p.Payload)
			default:
				return fmt.Errorf("a part of the result is missing at byte %d", len(*body))
			}
		}
	}
	return nil
}
