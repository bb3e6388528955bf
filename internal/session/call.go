package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Request is one call as a session sends it. It is not changed by the pool and
// must not be changed by the caller before the call has ended.
type Request struct {
	CallID schema.CallID
	Method string // one of the methods of package schema; empty means tools/call
	// Name is the tool of tools/call. For the other methods it says nothing that
	// Params do not.
	Name string
	// Params is the raw arguments object of tools/call, and the raw params object
	// of other methods.
	Params []byte
	// Extra is what goes along with the arguments of tools/call; see [schema.Call].
	Extra    []byte
	Timeout  time.Duration // zero means the pool's default
	Trace    schema.Trace
	Progress func(params []byte) // nil asks for no progress; must not block; owns params
	// Said, on a session of the caller's own, takes what the server says to the caller
	// by itself: a JSON object with method and params, and a number above zero for a
	// request, which [Owned.Answer] answers. It returns false for what cannot be
	// passed on; it must not block and owns message. On a session that callers share it
	// takes the log messages of the call, where LogLevel is set.
	Said func(number int64, message []byte) bool
	// LogLevel is that of the log messages that the caller wants, "" for none; Caller
	// is who it is, because what one caller's calls log is not for another.
	LogLevel string
	Caller   string
	// Session is the same for the calls of one caller's conversation; native tools with
	// state keep it by that. Empty means that nobody knows.
	Session string
	// Clock and Seed are those of [schema.Call]. Native tools get them, programs with
	// [Config].Tells, and attached programs with the calls of a [Binding].
	Clock, Seed string
	// Digest names the definition of the tool that the call was checked against; see
	// [Config].Pinned. Empty means that any will do.
	Digest string
	// More says that another request follows at once, mostly to the same server,
	// so that this one can wait for it a moment.
	More bool

	bound *Binding // nil where any session will do
}

func (r *Request) method() string {
	if r.Method == "" {
		return schema.MethodCallTool
	}
	return r.Method
}

// Outcome is how a call ended.
type Outcome struct {
	Body      []byte // the result object as the server sent it, owned by the receiver; nil with Err
	Alone     bool   // Body is no part of something larger: to keep it costs its length
	ToolError bool   // the result carries isError:true
	Input     bool   // the result asks for input, which the request allowed
	Err       *schema.Error
	Started   bool // the request may have reached the server
	Took      time.Duration

	lost bool // the server did not know the session, or did not listen, and took nothing
}

// SessionLost says that the server did not know the session any more and took nothing of
// the call, so that another session may send it.
func (o *Outcome) SessionLost() bool { return o.lost }

// Running is a call under way.
type Running struct {
	req     *Request
	done    func(*Request, Outcome)
	pool    *Pool // nil for a session's own requests
	timer   *time.Timer
	timeout time.Duration
	ended   atomic.Bool // whoever sets it ends the call

	again atomic.Bool // it was sent again, because a server did not know its session

	on   *session // guarded by pool.mu, nil while the call waits for a session
	came uint64   // its number among the calls of the pool, guarded by pool.mu

	// Guarded by the session's mu.
	id     int64
	offset int64 // where its bytes begin in what was queued for a pipe
	sent   time.Time
	logs   bool               // the server was asked for log messages, which are this caller's
	stop   context.CancelFunc // ends its HTTP exchange
	span   *telemetry.Span    // nil where there are no traces, or it was not sent
}

// CanceledEarly is how a call ends that was canceled before it was sent.
func CanceledEarly() *schema.Error {
	return &schema.Error{Kind: schema.KindCanceled, Retryable: true, Detail: "The call was canceled before it was sent to the server."}
}

// Cancel ends the call with kind canceled, where it has not ended yet, and tells
// the server. It is safe at any time and from any goroutine.
func (r *Running) Cancel() {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	r.timer.Stop()
	s, sent := r.leave()
	o := Outcome{Started: sent, Took: r.took(), Err: CanceledEarly()}
	if sent {
		o.Err.Retryable = false
		o.Err.Detail = "The call was canceled while it was running; the server was notified and may have done part of it."
		s.forget(r, "canceled")
	}
	r.finish(o)
}

// CancelWaiting is Cancel for a call that no session has taken yet, and does nothing to any
// other. It reports whether the call has ended, or ends by this.
func (r *Running) CancelWaiting() bool {
	if r.pool == nil {
		return r.ended.Load()
	}
	r.pool.mu.Lock()
	won := r.on == nil && r.ended.CompareAndSwap(false, true)
	r.pool.mu.Unlock()
	if !won {
		return r.ended.Load()
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.leave()
	r.finish(Outcome{Err: CanceledEarly()})
	return true
}

// expire is what the timer of a call runs.
func (r *Running) expire() {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	s, sent := r.leave()
	o := Outcome{Started: sent, Took: r.took()}
	if sent {
		o.Err = schema.Errorf(schema.KindOutcomeUnknown,
			"The server %q did not answer within %v; the call was given up, but it may have run.", s.pool.cfg.Spec.ID, r.timeout)
		o.Err.TimedOut = true
		s.forget(r, "timeout")
		s.timedOut()
	} else {
		o.Err = r.pool.notReady(r.timeout)
	}
	r.finish(o)
}

// end ends the call with what its session found out.
func (r *Running) end(o Outcome) {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	if o.Started {
		o.Took = r.took()
	}
	r.leave()
	r.finish(o)
}

// sendAgain makes the call one that was never sent, so that it can go to the next session:
// a server that was restarted, or is being restarted, has taken nothing of it. That is done once, and not on a
// session of a caller's own, whose next call opens another.
func (r *Running) sendAgain(o *Outcome) bool {
	if r.pool == nil || r.pool.declared != nil || r.ended.Load() || !r.again.CompareAndSwap(false, true) {
		return false
	}
	r.pool.mu.Lock()
	s := r.on
	r.pool.drop(s)
	r.pool.mu.Unlock()
	s.mu.Lock()
	r.id, r.sent, r.logs = 0, time.Time{}, false
	if r.span != nil {
		endSpan(r.span, o)
		r.span = nil
	}
	s.mu.Unlock()
	return true
}

// leave frees the place that the call has in a session or in the queue. It
// returns the session, and whether the request was handed to its connection.
func (r *Running) leave() (s *session, sent bool) {
	if r.pool != nil {
		s = r.pool.release(r)
	}
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, r.id != 0
}

// finish tells the caller. The place is free by then, so that the next call may
// come from inside done.
func (r *Running) finish(o Outcome) {
	if o.Err != nil && r.req.CallID != "" {
		o.Err = o.Err.WithCall(r.req.CallID)
	}
	if r.span != nil {
		endSpan(r.span, &o)
	}
	r.done(r.req, o)
	if r.pool != nil {
		r.pool.finished()
	}
}

func (r *Running) took() time.Duration {
	if r.sent.IsZero() {
		return 0
	}
	return time.Since(r.sent)
}
