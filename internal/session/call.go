package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// Request is one call as a session sends it. The pool does not change it. The caller must not
// change it before the call has ended.
type Request struct {
	CallID schema.CallID
	Method string // a method of package schema; if empty, tools/call
	// Name is the tool of tools/call. For other methods it repeats what is in Params.
	Name string
	// Params is the raw arguments object of tools/call, or the raw params object of other
	// methods.
	Params []byte
	// Extra holds the other params of tools/call; see [schema.Call].
	Extra    []byte
	Timeout  time.Duration // if zero, the pool's default
	Trace    schema.Trace
	Progress func(params []byte) // if nil, no progress is requested; must not block; owns params
	// Said receives messages that the server sends to the caller. It must not block, and owns
	// message.
	//
	// On a session that belongs to the caller (see [Own]), message is a JSON object with method
	// and params, and number is above zero if it is a request, which [Owned.Answer] answers; its
	// id is the number. If the server cancels a request, notifications/cancelled names that id.
	// Said returns false if the message cannot be passed on. On a shared session it receives the log
	// messages of the call if LogLevel is set.
	Said func(number int64, message []byte) bool
	// LogLevel is the level of the log messages that the caller wants; if empty, it wants none.
	// Caller identifies the caller, because the logs of one caller's calls are not for another.
	LogLevel string
	Caller   string
	// Session is the same for all calls of one caller's conversation. Native tools keep state
	// by it. If empty, the session is unknown.
	Session string
	// Clock and Seed are those of [schema.Call]. They are sent to native tools, to programs with
	// [Config].Tells, and to attached programs with the calls of a [Binding].
	Clock, Seed string
	// Digest is the digest of the tool definition that the call was checked against; see
	// [Config].Pinned. If empty, any definition will do.
	Digest string
	// More is a hint that another request follows at once, usually to the same server, so that
	// this one can wait for it briefly.
	More bool

	bound *Binding // if nil, any session will do
}

func (r *Request) method() string {
	if r.Method == "" {
		return schema.MethodCallTool
	}
	return r.Method
}

// Outcome is the result or the error of a call.
type Outcome struct {
	Body      []byte // the result object as the server sent it, owned by the receiver; nil if Err is set
	Alone     bool   // Body is not part of a larger buffer: keeping it costs only its length
	ToolError bool   // the result has isError:true
	Input     bool   // the result is a request for input, which the call allowed
	Err       *schema.Error
	Started   bool // the request may have reached the server
	Took      time.Duration

	lost bool // the server did not know the session, or did not listen, and did not take the call
}

// SessionLost reports whether the server no longer knew the session and did not take the call,
// so that another session may send it.
func (o *Outcome) SessionLost() bool { return o.lost }

// Running is a call in progress.
type Running struct {
	req     *Request
	done    func(*Request, Outcome)
	pool    *Pool // nil for a session's own requests
	timer   *time.Timer
	timeout time.Duration
	ended   atomic.Bool // the goroutine that sets it ends the call

	again atomic.Bool // the call was sent again because a server did not know its session

	on   *session // guarded by pool.mu; nil while the call waits for a session
	came uint64   // sequence number among the calls of the pool, guarded by pool.mu

	// Guarded by the session's mu.
	id     int64
	offset int64 // where its bytes begin in the data queued for a pipe
	sent   time.Time
	logs   bool               // the server was asked for log messages, which belong to this caller
	stop   context.CancelFunc // cancels its HTTP exchange
	span   *telemetry.Span    // nil if traces are off or the call was not sent
}

// CanceledEarly returns the error of a call that was canceled before it was sent.
func CanceledEarly() *schema.Error {
	return &schema.Error{Kind: schema.KindCanceled, Retryable: true, Detail: "The call was canceled before it was sent to the server."}
}

// Cancel ends the call with kind canceled if it has not ended yet, and notifies the server. It is
// safe at any time and from any goroutine.
func (r *Running) Cancel() {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	r.timer.Stop()
	s, sent, took := r.leave()
	o := Outcome{Started: sent, Took: took, Err: CanceledEarly()}
	if sent {
		o.Err.Retryable = false
		o.Err.Detail = "The call was canceled while it was running; the server was notified and may have done part of it."
		s.forget(r, "canceled")
	}
	r.finish(o)
}

// CancelWaiting is Cancel for a call that no session has taken yet. It has no effect on other
// calls. It reports whether the call has ended, or ends because of this.
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

// expire runs when the timer of a call fires.
func (r *Running) expire() {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	s, sent, took := r.leave()
	o := Outcome{Started: sent, Took: took}
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

// end ends the call with the outcome from its session.
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

// sendAgain resets the call to unsent, so that the next session can take it: a server that has
// restarted or is restarting has not taken it. This is done once per call, and never on a
// caller's own session, because its next call opens another.
func (r *Running) sendAgain(o *Outcome) bool {
	if r.pool == nil || r.pool.declared != nil || r.ended.Load() || !r.again.CompareAndSwap(false, true) {
		return false
	}
	r.pool.mu.Lock()
	s := r.on
	r.pool.drop(s)
	r.pool.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ended.Load() { // leave locks the session after that, and reads what is reset here
		return false
	}
	r.id, r.sent, r.logs = 0, time.Time{}, false
	if r.span != nil {
		endSpan(r.span, o)
		r.span = nil
	}
	return true
}

// leave releases the place of the call in a session or in the queue. It returns the session, whether
// the request was handed to its connection, and how long ago.
func (r *Running) leave() (s *session, sent bool, took time.Duration) {
	if r.pool != nil {
		s = r.pool.release(r)
	}
	if s == nil {
		return nil, false, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, r.id != 0, r.took()
}

// finish reports the outcome to the caller. The place has been released by then, so done may
// start the next call.
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
