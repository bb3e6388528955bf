package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/launch/attach"
	"github.com/callyard/callyard/pkg/schema"
)

// socketLink talks to an attached program, or to a dialed server, over a WebSocket connection,
// one message per frame.
type socketLink struct {
	s         *session
	conn      *attach.Conn
	work      sync.WaitGroup
	wake      chan struct{}
	ctx       context.Context // ends when the connection is being closed
	end       context.CancelFunc
	wroteLast chan struct{} // closed when nothing more is written

	// Guarded by s.mu.
	buf     []byte // waiting messages, one after the other
	ends    []int  // end offsets of the messages in buf
	queued  int64  // messages added to buf so far
	handed  int64  // messages whose write has begun
	writing bool   // a write is in progress
	wrote   sync.Cond
	lost    error    // why the connection is unusable
	last    [][]byte // messages that wait since the session is out of use
	lastLen int      // bytes of last
}

// errDrained retires the session of a program that takes no new calls.
var errDrained = errors.New("the program drained")

// overProgram performs the handshake with an attached program.
func (o opening) overProgram(ctx context.Context, a *attachment, guess era, probe time.Duration) (how probeResult, err error) {
	o.s.places, o.s.attached = a.places, a
	return o.overSocket(ctx, a.conn, guess, probe)
}

// overDialed dials the server and performs the handshake.
func (o opening) overDialed(ctx context.Context, guess era, probe time.Duration) (how probeResult, err error) {
	p := o.s.pool
	conn, err := attach.Dial(ctx, p.client, p.cfg.Spec.URL, attach.Options{MaxMessage: p.cfg.MaxResult + frameHeadroom, PingEvery: p.cfg.pingEvery})
	if err != nil {
		return probeAnswered, err
	}
	return o.overSocket(ctx, conn, guess, probe)
}

// overSocket performs the handshake over a WebSocket connection.
func (o opening) overSocket(ctx context.Context, conn *attach.Conn, guess era, probe time.Duration) (how probeResult, err error) {
	s := o.s
	l := &socketLink{s: s, conn: conn, wake: make(chan struct{}, 1), wroteLast: make(chan struct{}), wrote: sync.Cond{L: &s.mu}}
	s.link = l
	s.sdk = newSDKConn(s, probe, l.sdkWrite)
	l.ctx, l.end = context.WithCancel(context.Background())
	l.work.Go(l.read)
	l.work.Go(func() {
		defer close(l.wroteLast)
		l.write()
		l.writeLast()
	})
	l.work.Go(func() {
		if err := l.conn.KeepAlive(l.ctx); err != nil {
			l.lose(err)
		}
	})
	err = o.handshake(ctx, s.sdk, guess)
	return s.sdk.result(), err
}

func (l *socketLink) send(r *Running) bool {
	s := l.s
	s.mu.Lock()
	if len(l.buf) > maxBacklog {
		s.mu.Unlock()
		r.end(Outcome{Err: &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("%s does not read; the call was not sent.", l.peer())}})
		return true
	}
	id, ok := s.register(r)
	if id != 0 {
		r.offset = l.queued
		l.buf = appendRequest(l.buf, s.env.forCall(r), id, r.req)
		l.queuedLocked()
	}
	s.mu.Unlock()
	if id != 0 {
		l.signal()
	}
	return ok
}

// peer names the other side, for the beginning of a sentence.
func (l *socketLink) peer() string {
	if l.s.attached == nil {
		return fmt.Sprintf("The server %q", l.s.pool.cfg.Spec.ID)
	}
	return fmt.Sprintf("The program attached to the server %q", l.s.pool.cfg.Spec.ID)
}

// queuedLocked records that a whole message was added to the buffer.
func (l *socketLink) queuedLocked() {
	l.ends = append(l.ends, len(l.buf))
	l.queued++
}

// enqueue adds a whole message to the buffer.
func (l *socketLink) enqueue(body []byte, limit int) error {
	s := l.s
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return errClosed
	case len(l.buf) > limit:
		s.mu.Unlock()
		return errors.New("the program does not read")
	}
	l.buf = append(l.buf, body...)
	l.queuedLocked()
	s.mu.Unlock()
	l.signal()
	return nil
}

func (l *socketLink) post(body []byte) {
	// The message is dropped if the program does not read: it may be a reply to one of the program.
	if err := l.enqueue(body, maxReplies); errors.Is(err, errClosed) {
		l.enqueueLast(body)
	}
}

// enqueueLast adds a message for a program whose calls end while its session is out of use: the
// cancellation of a call, or the reply to a message of the program.
func (l *socketLink) enqueueLast(body []byte) {
	s := l.s
	s.mu.Lock()
	if l.lost == nil && l.lastLen <= maxReplies {
		l.last, l.lastLen = append(l.last, body), l.lastLen+len(body)
	}
	s.mu.Unlock()
	l.signal()
}

func (l *socketLink) sdkWrite(_ context.Context, body []byte) error {
	return l.enqueue(body, maxBacklog)
}

func (l *socketLink) cancel(_ *Running, id int64, reason string) { l.post(cancelMessage(id, reason)) }

func (l *socketLink) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes messages until the session is out of use.
func (l *socketLink) write() {
	var out []byte
	var ends []int
	for {
		select {
		case <-l.wake:
		case <-l.s.dead:
			return
		}
		l.s.mu.Lock()
		if cap(out) > keepBuffer {
			out = nil
		}
		out, l.buf = l.buf, out[:0]
		ends, l.ends = l.ends, ends[:0]
		l.s.mu.Unlock()
		from := 0
		for rest := ends; len(rest) > 0; {
			n := together(from, rest)
			if !l.writeSome(out, from, rest[:n]) {
				return
			}
			from, rest = rest[n-1], rest[n:]
		}
	}
}

// writeLast writes the messages of enqueueLast until the connection is being closed. Messages in buf are
// not written any more, because their calls may be in another session.
func (l *socketLink) writeLast() {
	s := l.s
	for ended := false; ; {
		s.mu.Lock()
		last := l.last
		l.last, l.lastLen = nil, 0
		s.mu.Unlock()
		for _, body := range last {
			if l.conn.Write(body, 0, []int{len(body)}) != nil {
				return // the reader reports the reason
			}
		}
		if ended {
			return
		}
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			ended = true
		}
	}
}

// writeTogether limits the bytes of messages in one write. If the connection breaks, no such
// message can go to another session.
const writeTogether = 16 << 10

// together returns the number of messages, at least one, to write at once. The first message
// begins at from. ends holds the end offsets of the messages.
func together(from int, ends []int) int {
	n := 1
	for n < len(ends) && ends[n]-from <= writeTogether {
		n++
	}
	return n
}

// writeSome writes the messages of b. The first begins at from, and ends holds their end offsets.
// It begins no write once the session is out of use: messages that are not being written yet can
// go to another session.
func (l *socketLink) writeSome(b []byte, from int, ends []int) bool {
	s := l.s
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	l.handed += int64(len(ends))
	l.writing = true
	s.mu.Unlock()
	err := l.conn.Write(b, from, ends)
	s.mu.Lock()
	l.writing = false
	l.wrote.Broadcast()
	s.mu.Unlock()
	return err == nil // the reader reports the reason
}

// handedOver returns the number of messages whose write has begun.
func (l *socketLink) handedOver() int64 {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.handed
}

// read is the goroutine that reads messages from the program.
func (l *socketLink) read() {
	for {
		message, err := l.conn.Read()
		if err == nil && isBatch(message) {
			err = errBatch
		}
		if err != nil {
			l.lose(err)
			return
		}
		l.s.receive(message)
	}
}

// errBatch ends the session of a program that sends JSON-RPC batches. MCP does not have them, and
// the answers in a batch would be lost.
var errBatch = errors.New("it sent a JSON-RPC batch; a frame holds one message")

func isBatch(message []byte) bool {
	for _, c := range message {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '['
		}
	}
	return false
}

// drain lets the calls that were sent end, and takes no new calls.
func (l *socketLink) drain() {
	l.s.retire(errDrained)
	l.s.sendElsewhere()
}

// lose ends the connection and its calls. The first reason counts.
func (l *socketLink) lose(why error) {
	s := l.s
	s.mu.Lock()
	if l.lost == nil {
		l.lost = why
	}
	why = l.lost
	s.closed = true // new calls wait for the next session
	s.mu.Unlock()
	switch {
	case errors.Is(why, attach.ErrBinary):
		l.conn.Close(attach.CodeBinary, why.Error())
	case errors.Is(why, errBatch):
		l.conn.Close(attach.CodePolicy, why.Error())
	}
	l.conn.Abort()
	s.mu.Lock()
	for l.writing { // the aborted connection ends the write
		l.wrote.Wait()
	}
	s.mu.Unlock()
	if errors.Is(why, attach.ErrTooLong) {
		why = lines.ErrTooLong
	}
	s.fail(why)
}

// close closes the connection and waits for the goroutines.
func (l *socketLink) close() {
	why := l.s.cause()
	l.end()
	if !l.s.failed.Load() {
		sleep.For(drainTime, l.wroteLast) // for a program that reads
	}
	switch {
	case l.s.failed.Load():
	case errors.Is(why, errDrained):
		l.conn.Close(attach.CodeDone, "all calls are answered")
	case errors.Is(why, errOtherDefinitions):
		l.conn.Close(attach.CodeRestart, why.Error())
	case l.s.attached == nil:
		l.conn.Close(attach.CodeDone, "the client ends this connection")
	default:
		l.conn.Close(attach.CodeAway, "the worker ends this connection; dial again")
	}
	l.conn.Abort()
	l.work.Wait()
}
