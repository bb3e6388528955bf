package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	maxUnexpected = 1000             // consecutive messages that violate the protocol
	maxLate       = 3                // consecutive timeouts before a session is suspected
	restTime      = 30 * time.Second // a session that lived this long does not count as a failure
	frameHeadroom = 64 << 10         // maximum size of a message without its result

	stopGrace   = 500 * time.Millisecond // for a child process to exit by itself, and again after SIGTERM
	failedGrace = 50 * time.Millisecond  // the same for a process that is broken already
)

// errClosed means that the session takes no more requests.
var errClosed = errors.New("the session is closed")

// link sends requests to one server and feeds the responses into its session. There are five:
// pipes, the event stream of legacy SSE, streamable HTTP, functions of this process, and the
// WebSocket connection of an attached program or to a server.
type link interface {
	// send registers the call with the session and sends it without blocking. It returns
	// false, without any effect, if the session takes no calls.
	send(r *Running) bool
	// post sends a message that has no answer here. It may drop the message if the server does
	// not read.
	post(body []byte)
	// cancel notifies the server that the call with the id has no waiting caller any more. It does
	// so also if the session is out of use, as long as the server can be reached.
	cancel(r *Running, id int64, reason string)
	// close closes the connection and waits for everything that the link has started.
	close()
}

// session is one live connection to the server.
type session struct {
	pool  *Pool
	link  link
	env   envelope
	child *Process // nil for remote servers
	cs    *mcp.ClientSession
	sdk   *sdkConn // nil for streamable HTTP
	about *mcp.InitializeResult
	born  time.Time

	mu     sync.Mutex
	calls  map[int64]*Running
	next   int64
	closed bool // takes no more calls
	why    error

	logs logForwarder

	dead     chan struct{} // closed when the connection is unusable
	deadOnce sync.Once
	empty    chan struct{} // closed when it is dead and its calls have ended

	emptyOnce sync.Once
	suspect   chan struct{} // signaled when a check is due
	changes   atomic.Bool   // the server reported a list change
	late      atomic.Int32  // timeouts since the last answer
	served    atomic.Bool   // has answered a call
	heard     atomic.Int64  // last sign of life, in nanoseconds since born, which no change of the machine's clock affects
	failed    atomic.Bool

	places  int        // maximum concurrent calls
	holders int        // bindings to it, guarded by pool.mu
	bound   []*Running // calls of bindings that wait for a place, guarded by pool.mu
	load    int        // calls that have a place here, guarded by pool.mu
	used    bool       // had a call; guarded by pool.mu

	reread bool // read the lists again once in use
	pins   pins

	attached *attachment // the program of the session; nil if this process starts or dials the server

	asks *questions // set for a caller's own session, else nil

	reading sync.Mutex // serializes reads of the lists

	// Owned by the reading goroutine.
	scan       scanner
	unexpected int // consecutive messages that violate the protocol
}

func newSession(p *Pool) *session {
	s := &session{
		pool: p, calls: make(map[int64]*Running), next: firstID, born: time.Now(), places: p.cfg.InFlight,
		dead: make(chan struct{}), empty: make(chan struct{}), suspect: make(chan struct{}, 1),
		env: envelope{tells: p.cfg.Tells},
	}
	s.logs.s = s
	if p.declared != nil {
		s.asks = &questions{s: s, open: make(map[int64][]byte)}
	}
	return s
}

// register gives the call an id. It returns false if the session is closed. A call that has ended
// in the meantime gets id 0. The caller holds s.mu.
func (s *session) register(r *Running) (id int64, ok bool) {
	if s.closed {
		return 0, false
	}
	if r.ended.Load() {
		return 0, true
	}
	id = s.next
	s.next++
	r.id, r.sent = id, time.Now()
	if s.pool.cfg.Traces != nil && r.pool != nil {
		r.trace(s)
	}
	r.logs = s.logs.wanted(r)
	s.calls[id] = r
	return id, true
}

// begin registers a call and passes exchange to run, which runs it on another goroutine. The
// context of exchange ends with ctx, when the call is stopped, or when exchange calls stop.
// begin returns the result of register.
func (s *session) begin(ctx context.Context, r *Running, run func(func()), exchange func(ctx context.Context, stop context.CancelFunc, id int64)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.register(r)
	if id == 0 {
		return ok
	}
	ctx, stop := context.WithCancel(ctx)
	r.stop = stop
	run(func() {
		defer stop()
		exchange(ctx, stop, id)
	})
	return true
}

// take removes a call that was answered. It returns nil if no call waits for the answer.
func (s *session) take(id int64) *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.calls[id]
	delete(s.calls, id)
	s.settle()
	return r
}

// settle records that the last call of a session out of use has ended. The caller holds s.mu.
func (s *session) settle() {
	if s.closed && len(s.calls) == 0 {
		s.emptyOnce.Do(func() { close(s.empty) })
	}
}

// forget drops an ended call, so that its late answer is ignored, and notifies the server. It does that
// first, because the connection of a session that is out of use is closed with its last call.
func (s *session) forget(r *Running, reason string) {
	s.mu.Lock()
	id := r.id
	waiting := s.calls[id] == r
	if waiting && r.logs {
		s.logs.last, s.logs.lastAt = r.req.Caller, time.Now()
	}
	s.mu.Unlock()
	if !waiting {
		return
	}
	s.link.cancel(r, id, reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[id] == r {
		delete(s.calls, id)
		s.settle()
	}
}

// timedOut records that a call got no answer in time.
func (s *session) timedOut() {
	if s.late.Add(1) >= maxLate {
		s.doubt()
	}
}

// doubt requests a health check.
func (s *session) doubt() {
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// retire takes the session out of use: it takes no new calls, and running calls continue.
func (s *session) retire(why error) {
	s.mu.Lock()
	s.closed = true
	if s.why == nil {
		s.why = why
	}
	s.settle()
	s.mu.Unlock()
	s.deadOnce.Do(func() { close(s.dead) })
}

// fail takes the session out of use and ends its calls. why completes a sentence about the
// session: "the process exited with code 1".
func (s *session) fail(why error) {
	s.failed.Store(true)
	s.retire(why)
	s.sendElsewhere()
	s.mu.Lock()
	alone := len(s.calls) == 1
	s.mu.Unlock()
	s.endCalls(why, func(r *Running) Outcome {
		if alone && errors.Is(why, lines.ErrTooLong) { // with several calls, nobody knows whose answer it was
			return tooLarge(&s.pool.cfg)
		}
		return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
			"The session with the server %q broke while the call was running: %w. The call may have run.", s.pool.cfg.Spec.ID, why)}
	})
}

// endCalls retires the session and ends its running calls. Calls whose bytes were certainly never
// sent go back to the queue.
func (s *session) endCalls(why error, how func(*Running) Outcome) {
	s.retire(why)
	s.sendElsewhere()
	s.mu.Lock()
	calls := s.calls
	s.calls = make(map[int64]*Running)
	s.settle()
	s.mu.Unlock()
	for _, r := range calls {
		r.end(how(r))
	}
}

// sendElsewhere requeues the calls of a session out of use whose bytes were certainly never sent.
func (s *session) sendElsewhere() {
	l, ok := s.link.(interface{ handedOver() int64 })
	if !ok { // unknown for this link: all may have been sent
		return
	}
	left := l.handedOver()
	s.mu.Lock()
	var again []*Running
	for id, r := range s.calls {
		if r.pool != nil && r.offset >= left {
			delete(s.calls, id)
			r.id, r.sent = 0, time.Time{} // it was never sent
			again = append(again, r)
		}
	}
	s.settle()
	s.mu.Unlock()
	slices.SortFunc(again, func(a, b *Running) int { return cmp.Compare(b.offset, a.offset) })
	for _, r := range again { // last one first: each goes to the front
		r.pool.requeue(r)
	}
}

// cause returns the reason why the session is out of use, or nil.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// ask sends a request of the session itself and waits for the result. A JSON-RPC error is
// returned as a *schema.Error of kind tool-protocol-error.
func (s *session) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	answer := make(chan Outcome, 1)
	r := &Running{
		req:  &Request{Method: method, Params: params},
		done: func(_ *Request, o Outcome) { answer <- o },
	}
	if !s.link.send(r) {
		if err := s.cause(); err != nil {
			return nil, err
		}
		return nil, errClosed
	}
	select {
	case o := <-answer:
		if o.Err != nil {
			return nil, o.Err
		}
		return o.Body, nil
	case <-ctx.Done():
		if r.ended.CompareAndSwap(false, true) {
			s.forget(r, "timeout")
		}
		return nil, ctx.Err()
	}
}

// busy reports whether a request is running.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

// check asks the server for a sign of life. Any answer counts.
func (s *session) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.pool.cfg.checkTime)
	defer cancel()
	method := mcpwire.MethodPing
	if s.modern() {
		method = mcpwire.MethodDiscover
	}
	_, err := s.ask(ctx, method, nil)
	if schema.KindOf(err) == schema.KindProtocol || errors.Is(err, launch.ErrRefused) {
		return nil
	}
	return err
}

func (s *session) modern() bool { return s.env.fixed != "" }
