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
	maxUnexpected = 1000             // messages in a row that are no protocol
	maxLate       = 3                // timeouts in a row before a session is suspected
	restTime      = 30 * time.Second // a session that lived as long is no failure
	frameHeadroom = 64 << 10         // what a message may have around its result

	stopGrace   = 500 * time.Millisecond // for a child to end by itself, and again after SIGTERM
	failedGrace = 50 * time.Millisecond  // the same for one that is broken already
)

// errClosed means that the session takes nothing any more.
var errClosed = errors.New("the session is closed")

// link carries requests to one server and feeds the responses into its session. There are
// five: pipes, the event stream of legacy SSE, streamable HTTP, functions of this process,
// and the WebSocket connection of an attached program, or to a server.
type link interface {
	// send registers the call with the session and sends it, without blocking.
	// It returns false, having done nothing, where the session takes no calls.
	send(r *Running) bool
	// post sends a message that has no answer here. It may drop it where the
	// server does not read.
	post(body []byte)
	// cancel tells the server that nobody waits for the call any more.
	cancel(r *Running, reason string)
	// close ends the connection and waits for what the link has started.
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
	closed bool // takes no calls
	why    error

	logs logForwarder

	dead     chan struct{} // closed when the connection is of no use any more
	deadOnce sync.Once
	empty    chan struct{} // closed when it is dead and its calls have ended

	emptyOnce sync.Once
	suspect   chan struct{} // holds a word when a check is due
	changes   atomic.Bool   // the server said that a list changed
	late      atomic.Int32  // timeouts since the last answer
	served    atomic.Bool   // answered a call
	heard     atomic.Int64  // the last sign of life, Unix nanoseconds
	failed    atomic.Bool

	places  int        // calls that it takes at once
	holders int        // bindings to it, guarded by pool.mu
	bound   []*Running // calls of bindings that wait for a place, guarded by pool.mu
	load    int        // calls that have a place here, guarded by pool.mu
	used    bool       // had a call, guarded by pool.mu

	reread bool // the lists, once in use
	pins   pins

	attached *attachment // the program of the session; nil for a server that is started or dialed here

	asks *questions // of a session that is one caller's own, else nil

	reading sync.Mutex // one reading of the lists at a time

	// Of the one goroutine that reads.
	scan       scanner
	unexpected int // messages in a row that are no protocol
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
	s.heard.Store(s.born.UnixNano())
	return s
}

// register gives the call an id. The caller holds s.mu. It returns false where
// the session is closed; a call that ended meanwhile gets id 0.
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

// begin registers a call and runs exchange for it by run, on another goroutine, with a context
// that ends with the given one, when the call is stopped, or when exchange calls stop. It
// returns what register says.
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

// take removes a call that was answered; nil where nobody waits for it.
func (s *session) take(id int64) *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.calls[id]
	delete(s.calls, id)
	s.settle()
	return r
}

// settle notes that the last call of a session out of use has ended. The caller
// holds s.mu.
func (s *session) settle() {
	if s.closed && len(s.calls) == 0 {
		s.emptyOnce.Do(func() { close(s.empty) })
	}
}

// forget drops an ended call, so that its late answer is nobody's, and tells the
// server.
func (s *session) forget(r *Running, reason string) {
	s.mu.Lock()
	waiting := s.calls[r.id] == r
	if waiting {
		delete(s.calls, r.id)
		if r.logs {
			s.logs.last, s.logs.lastAt = r.req.Caller, time.Now()
		}
		s.settle()
	}
	closed := s.closed
	s.mu.Unlock()
	if waiting && !closed {
		s.link.cancel(r, reason)
	}
}

// timedOut notes that a call got no answer in time.
func (s *session) timedOut() {
	if s.late.Add(1) >= maxLate {
		s.doubt()
	}
}

// doubt asks for a health check.
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

// fail takes the session out of use and ends its calls. why finishes a sentence
// about the session: "the process exited with code 1".
func (s *session) fail(why error) {
	s.failed.Store(true)
	s.endCalls(why, func(r *Running) Outcome {
		if errors.Is(why, lines.ErrTooLong) {
			return tooLarge(&s.pool.cfg)
		}
		return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
			"The session with the server %q broke while the call was running: %w. The call may have run.", s.pool.cfg.Spec.ID, why)}
	})
}

// endCalls retires the session and ends the calls that run on it. Those whose
// bytes certainly never left go back to the queue.
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

// sendElsewhere puts the calls of a session out of use back into the queue whose bytes
// certainly never left.
func (s *session) sendElsewhere() {
	l, ok := s.link.(interface{ handedOver() int64 })
	if !ok { // where that cannot be told, all may have left
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
	for _, r := range again { // the last one first: each goes in front of the others
		r.pool.requeue(r)
	}
}

// cause returns why the session is out of use.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// ask sends a request of the session's own and waits for the result. A JSON-RPC error is
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

// check asks for a sign of life. Any answer is one.
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
