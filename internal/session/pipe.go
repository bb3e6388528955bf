package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxBacklog = 64 << 20  // bytes waiting for a server that does not read
	maxReplies = 1 << 20   // same for messages that may be dropped
	keepBuffer = 256 << 10 // larger write buffers are not reused
	burstGap   = 10 * time.Microsecond
	maxSkipped = 256 << 20 // bytes of a line beyond the limit
)

// errEndless ends the session of a server whose answer exceeds the limit by far. The call of the answer
// has ended.
var errEndless = errors.New("it writes an answer that far exceeds the limit for a result")

// pipeLink talks to a child process over its pipes, one message per line. Requests that arrive
// during a write are sent together in the next one.
type pipeLink struct {
	s     *session
	child *Process
	fd    syscall.RawConn // of stdin if it does not block, else nil
	try   func(fd uintptr) bool
	work  sync.WaitGroup
	wake  chan struct{}

	// Guarded by s.mu.
	buf, spare []byte
	busy       bool      // a goroutine is writing
	queued     int64     // bytes added to buf so far
	handed     int64     // bytes handed to a write, without those it certainly did not write
	writing    bool      // a write is in progress
	wrote      sync.Cond // signaled when the write has ended
	lost       error     // the write error
	last       time.Time // arrival of the last call
	gather     gathering

	// Owned by the goroutine that set busy.
	out []byte
	n   int
	err error
}

// newPipeLink returns the link of a session to its child process.
func newPipeLink(s *session, child *Process) *pipeLink {
	l := &pipeLink{s: s, child: child, wake: make(chan struct{}, 1), wrote: sync.Cond{L: &s.mu}}
	if conn, ok := child.Stdin.(syscall.Conn); ok {
		l.fd = nonBlocking(conn)
	}
	l.try = func(fd uintptr) bool {
		for {
			if l.n, l.err = unix.Write(int(fd), l.out); !errors.Is(l.err, unix.EINTR) {
				return true
			}
		}
	}
	s.link = l
	return l
}

// start starts the reader and the writer.
func (l *pipeLink) start() {
	l.work.Go(l.read)
	l.work.Go(l.write)
	l.work.Go(l.watchExit)
}

// nonBlocking returns the raw connection if a write to it never blocks, else nil.
func nonBlocking(conn syscall.Conn) syscall.RawConn {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	flags := 0
	if raw.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) }) != nil || err != nil || flags&unix.O_NONBLOCK == 0 {
		return nil
	}
	return raw
}

func (l *pipeLink) send(r *Running) bool {
	s := l.s
	s.mu.Lock()
	if len(l.buf) > maxBacklog {
		s.mu.Unlock()
		r.end(Outcome{Err: &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("The server %q does not read its input; the call was not sent.", s.pool.cfg.Spec.ID)}})
		return true
	}
	id, ok := s.register(r)
	if id == 0 {
		s.mu.Unlock()
		return ok
	}
	from := len(l.buf)
	r.offset = l.queued
	l.buf = appendRequest(l.buf, s.env.forCall(r), id, r.req)
	flatten(l.buf[from:])
	l.buf = append(l.buf, '\n')
	l.queued += int64(len(l.buf) - from)
	if l.busy {
		s.mu.Unlock()
		return true // the current writer sends it too
	}
	if l.gatherLocked(r.sent, r.req.More) {
		s.mu.Unlock()
		return true
	}
	l.busy = true
	// Waking the writing goroutine costs more than a write. In a burst it pays off: the
	// goroutine runs a little later and takes several calls at once.
	burst := r.sent.Sub(l.last) < burstGap
	l.last = r.sent
	s.mu.Unlock()
	if burst {
		l.signal()
	} else {
		l.begin()
	}
	return true
}

// enqueue adds a whole message to the buffer.
func (l *pipeLink) enqueue(body []byte, limit int) error {
	s := l.s
	s.mu.Lock()
	if l.lost != nil || s.closed {
		s.mu.Unlock()
		return errClosed
	}
	if len(l.buf) > limit {
		s.mu.Unlock()
		return errors.New("the server does not read its input")
	}
	l.buf = append(append(l.buf, body...), '\n')
	l.queued += int64(len(body) + 1)
	begin := !l.busy
	l.busy = true
	s.mu.Unlock()
	if begin {
		l.signal()
	}
	return nil
}

func (l *pipeLink) post(body []byte) {
	flatten(body)
	_ = l.enqueue(body, maxReplies) // dropped if the server does not read: it may be a reply to a message of the server
}

func (l *pipeLink) sdkWrite(_ context.Context, body []byte) error {
	return l.enqueue(body, maxBacklog)
}

func (l *pipeLink) cancel(_ *Running, id int64, reason string) { l.post(cancelMessage(id, reason)) }

func (l *pipeLink) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine that writes bursts, and the bytes that the pipe did not take at once.
func (l *pipeLink) write() {
	for {
		select {
		case <-l.wake:
		case <-l.s.dead:
			return
		}
		runtime.Gosched() // lets runnable callers add to the buffer first
		for l.flush(l.child.Stdin.Write) {
		}
		l.s.mu.Lock()
		lost := l.lost
		l.s.mu.Unlock()
		if lost == nil {
			continue
		}
		// The last answers may still be in the other pipe. Usually the process is about to
		// exit, and its exit status is more useful than a broken pipe.
		if sleep.For(l.s.pool.cfg.exitWait, l.s.dead) {
			l.s.fail(errors.New("it closed its input"))
		}
		return
	}
}

// flush writes the buffer. It returns true if the writing goroutine has more to do. Only the
// goroutine that set busy calls it.
func (l *pipeLink) flush(write func([]byte) (int, error)) bool {
	s := l.s
	s.mu.Lock()
	if l.lost != nil || s.closed {
		s.mu.Unlock() // the link remains busy: nothing more is written
		return false
	}
	if len(l.buf) == 0 {
		l.busy = false
		s.mu.Unlock()
		return false
	}
	l.letGoLocked()
	out := l.buf
	l.buf, l.spare = l.spare[:0], nil
	l.handed += int64(len(out))
	l.writing = true
	s.mu.Unlock()

	n, err := write(out)

	s.mu.Lock()
	defer s.mu.Unlock()
	l.writing = false
	l.wrote.Broadcast()
	l.handed -= int64(len(out) - n)
	switch {
	case err != nil:
		l.lost = err
		return true
	case n < len(out):
		// Only a non-blocking write, for a single call, stops half way.
		l.buf = append(out[n:], l.buf...)
		return true
	}
	if cap(out) <= keepBuffer {
		l.spare = out[:0]
	}
	l.busy = len(l.buf) > 0
	return l.busy
}

// tryWrite writes as many bytes as the pipe takes without blocking.
func (l *pipeLink) tryWrite(out []byte) (int, error) {
	l.out, l.n, l.err = out, 0, nil
	err := l.fd.Write(l.try)
	l.out = nil
	if err == nil {
		err = l.err
	}
	if errors.Is(err, unix.EAGAIN) {
		err = nil
	}
	return max(l.n, 0), err
}

func (l *pipeLink) handedOver() int64 {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.handed
}

// read is the goroutine that reads the output of the child process.
func (l *pipeLink) read() {
	in := lines.NewReader(l.child.Stdout, lines.Long, l.s.pool.cfg.MaxResult+frameHeadroom)
	in.Idle = l.answersRead
	for {
		line, err := in.Next()
		if err == nil {
			// A message that the process left unfinished is not an answer. The exit of the
			// process decides the outcome of the call.
			if len(line) > 0 && !(in.Cut() && !json.Valid(line)) {
				l.s.receive(line)
			}
			continue
		}
		if errors.Is(err, lines.ErrTooLong) {
			if err = l.skip(in); err == nil {
				continue
			}
		}
		if !errors.Is(err, lines.ErrTooLong) && !errors.Is(err, errEndless) {
			err = l.exit(err)
		}
		l.s.fail(err)
		return
	}
}

// skip discards a line that exceeds the limit and ends its call. It returns an error if the session cannot
// continue: the line does not name its call, or does not end.
func (l *pipeLink) skip(in *lines.Reader) error {
	head, tail, err := in.Skip(maxSkipped)
	if err != nil {
		if !errors.Is(err, lines.ErrTooLong) {
			return err // the process has probably ended; the outcome of the call depends on how
		}
		l.s.retire(errEndless) // before the caller of the call can send another one, which would come here
	}
	switch named := l.s.tooLong(head, tail); {
	case !named:
		return lines.ErrTooLong
	case err != nil:
		return errEndless
	}
	return nil
}

// exit returns the reason why the child's output ended. The exit status of the process is known
// slightly later than the end of its output.
func (l *pipeLink) exit(err error) error {
	l.s.mu.Lock()
	l.s.closed = true // new calls wait for the next session
	l.s.mu.Unlock()
	select {
	case <-l.child.Done():
		l.waitForWrite()
		return fmt.Errorf("the process %w", l.child.Err())
	case <-l.s.dead:
	case <-time.After(l.s.pool.cfg.exitWait):
	}
	if killed := l.child.Err(); killed != nil { // a container engine may need long for the rest
		return fmt.Errorf("the process %w", killed)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it closed its output")
	}
	return fmt.Errorf("reading from it failed: %w", err)
}

// waitForWrite waits until the write in progress has returned, which it does once the process has
// exited. Only then is it known which calls were never sent and can run elsewhere. It waits at
// most as long as for the process itself.
func (l *pipeLink) waitForWrite() {
	late := false
	timer := time.AfterFunc(l.s.pool.cfg.exitWait, func() {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		late = true
		l.wrote.Broadcast()
	})
	defer timer.Stop()
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for l.writing && !late {
		l.wrote.Wait()
	}
}

// watchExit ends the session of a child process that has exited while another process keeps its
// output open.
func (l *pipeLink) watchExit() {
	select {
	case <-l.s.dead:
		return
	case <-l.child.Done():
	}
	if sleep.For(l.s.pool.cfg.exitWait, l.s.dead) { // the reader did not reach the end of the output
		l.waitForWrite()
		l.s.fail(fmt.Errorf("the process %w", l.child.Err()))
	}
}

// close stops the child process and waits for the goroutines.
func (l *pipeLink) close() {
	grace := stopGrace
	if l.s.failed.Load() {
		grace = failedGrace
	}
	l.child.Stop(grace)
	l.work.Wait()
	l.stopGathering()
}
