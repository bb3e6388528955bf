package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// maxAttempts limits the number of times that one call is sent, even if it is certain each time
// that it did not start.
const maxAttempts = 8

// cancelGrace limits the wait for a worker's answer to a cancellation. A worker answers at once,
// unless its result was already in flight or it does not respond at all.
const cancelGrace = 5 * time.Second

// Do runs the call on the best worker and returns its result. The error is a *schema.Error with
// the id of the call. If ctx ends, or [Router.Cancel] is called with the id, Do sends a
// cancellation to the worker. A call that was sent then ends with the outcome that its worker
// reports, or with [schema.KindOutcomeUnknown]; [schema.KindCanceled] means that it never ran. Do
// returns at once when ctx ends, and within 5 s after Cancel.
func (r *Router) Do(ctx context.Context, call *schema.Call) (*schema.Result, error) {
	fl := r.flights.add(call.ID)
	defer r.flights.remove(fl)
	if call.Lease.Worker != "" {
		return r.leased(ctx, call, fl)
	}
	rt := r.lookup(call.Server)
	t := trial{router: r, call: call, rule: RetryRule(call)}
	return t.run(ctx, fl.stop, func(n int) (*schema.Result, next, error) {
		l, err := rt.acquire(ctx, call, t.avoid, fl.stop)
		if errors.Is(err, errNoWorker) {
			l, err = r.anyLane(ctx, rt, call)
		}
		if err != nil {
			if errors.Is(err, errNoOther) && t.last != nil {
				err = t.last
			}
			return nil, tryLater, err
		}
		res, next, err := r.traced(ctx, t.begin(), l, n, fl.stop)
		if next == tryOther {
			if t.avoid == nil {
				t.avoid = make(map[schema.WorkerID]bool)
			}
			t.avoid[l.worker] = true
		}
		return res, next, err
	})
}

// endOf is like EndOf, for a call that the caller may retry. Unless the call was canceled, the
// error keeps the kind of the reason for which it was not sent again, and has the doubt as its
// cause.
func endOf(call *schema.Call, doubt, err error, canceled bool) *schema.Error {
	if e := schema.AsError(err); doubt != nil && !canceled && (e.Kind == schema.KindUnavailable || e.Kind == schema.KindServerFailed) {
		both := schema.Errorf(e.Kind, "%s An earlier attempt may have run: %w", e.Detail, doubt)
		both.Retryable, both.RetryAfter = e.Retryable, e.RetryAfter
		return both.WithCall(call.ID)
	}
	return EndOf(call, doubt, err, canceled)
}

// UncertainErrorOf returns the error of an attempt that may have run from err, an error of [Router.Do]. It
// returns nil if there is none.
func UncertainErrorOf(err error) error {
	for ; err != nil; err = errors.Unwrap(err) {
		if e, ok := errors.AsType[*schema.Error](err); ok && e.Kind == schema.KindOutcomeUnknown {
			return e
		}
	}
	return nil
}

// EndOf returns the final error of a call whose last attempt failed with err. doubt is the error
// of an earlier attempt that may have run, or nil. With a doubt, the error of a later attempt that
// did not start must not imply that the call never ran. canceled means that the call was asked to
// stop.
func EndOf(call *schema.Call, doubt, err error, canceled bool) *schema.Error {
	e := schema.AsError(err)
	if doubt != nil && neverStarted(e) {
		e = schema.AsError(doubt)
	}
	e = e.WithCall(call.ID)
	e.CancelRequested = e.CancelRequested || canceled && e.Kind == schema.KindOutcomeUnknown
	return e
}

// neverStarted reports whether the error e proves that its attempt did not start.
func neverStarted(e *schema.Error) bool {
	switch e.Kind {
	case schema.KindCanceled, schema.KindUnavailable, schema.KindServerFailed, schema.KindConnectRequired, schema.KindQuota, schema.KindForbidden, schema.KindDisabled, schema.KindExpired, schema.KindNotFound, schema.KindConflict:
		return true
	}
	return false
}

// next is the retry decision after a failed attempt.
type next int

const (
	tryNone    next = iota // it may have run, or would fail again
	tryAny                 // at any open worker
	tryOther               // at any other worker
	tryStopped             // none: the guard refused it
	tryLater               // not now: it was not sent
)

// attempt is one attempt of a worker to run a call. It receives the replies.
type attempt struct {
	call   *schema.Call
	lane   *lane
	worker *worker // nil if unknown
	sent   time.Time
	brief  bool // the worker remembers the outcome for a few seconds
	budget time.Duration
	client *bus.Client // for answers to requests of the server
	router *Router
	final  chan bus.ReplyFrame
	parts  atomic.Pointer[chan bus.ReplyFrame] // created when a large result begins
	ended  atomic.Bool                         // the slot was released
	asked  atomic.Int32                        // number of credential requests
	async  *AsyncCall                          // if set, receives the final frame
	left   atomic.Pointer[leaving]             // set when its caller has left
}

// leaving is the wait for the end of a call whose caller has left.
type leaving struct {
	seq  uint64 // of the message
	late *time.Timer
}

// partsWaiting is larger than the number of parts in one grant.
const partsWaiting = 64

// Reply handles one frame; see [bus.Receiver]. The loss of the worker may be reported on another
// goroutine than a reply of the worker, at the same moment.
func (a *attempt) Reply(f *bus.ReplyFrame) {
	if a.worker != nil {
		a.worker.heard.Store(a.router.clock.now())
	}
	switch f.Kind {
	case bus.ReplyProgress:
		if a.call.Progress != nil {
			a.call.Progress(f.Payload)
		}
	case bus.ReplySaid:
		a.serverMessage(f)
	case bus.ReplyFirst:
		parts := make(chan bus.ReplyFrame, partsWaiting)
		if a.parts.CompareAndSwap(nil, &parts) {
			a.end(time.Since(a.sent))
			a.last(f)
		}
	case bus.ReplyPart:
		a.part(f)
	default:
		if a.part(f) {
			return
		}
		took := time.Duration(0)
		if f.Kind == bus.ReplyResult {
			took = time.Since(a.sent)
		}
		a.end(took)
		a.last(f)
	}
}

// last passes the final frame to the waiting goroutine or the asynchronous call. It must not block,
// because all replies of a router arrive on one goroutine.
func (a *attempt) last(f *bus.ReplyFrame) {
	if a.async != nil {
		a.async.answered(a, f)
		return
	}
	select {
	case a.final <- *f:
	default: // another final frame came first
	}
}

// part passes a frame to the reader of a large result. It returns false if no large result has begun.
func (a *attempt) part(f *bus.ReplyFrame) bool {
	parts := a.parts.Load()
	if parts == nil {
		return false
	}
	select {
	case *parts <- *f:
	default: // the reader detects the gap
	}
	return true
}

// end releases the slot, once.
func (a *attempt) end(took time.Duration) {
	if a.ended.Swap(true) {
		return
	}
	if l := a.left.Load(); l != nil {
		a.letGo(l)
	}
	if a.worker != nil {
		a.worker.owed.add(-1)
	}
	a.lane.release(took, kindOf(a.call))
}

// leave is called when the caller has left. The slot remains taken until the worker reports that the
// call has ended, or should have.
func (a *attempt) leave(seq uint64) {
	l := &leaving{seq: seq}
	l.late = time.AfterFunc(a.budget+replyGrace, func() {
		a.client.Forget(seq)
		a.end(0)
	})
	if !a.left.CompareAndSwap(nil, l) {
		l.late.Stop() // it was called before
	} else if a.ended.Load() {
		a.letGo(l)
	}
}

// letGo stops the timer of a call that has ended, because the timer keeps the call's arguments in
// memory.
func (a *attempt) letGo(l *leaving) {
	l.late.Stop()
	if a.async == nil {
		a.client.Forget(l.seq) // nobody fetches the rest of a large result
	}
}

// try sends the call to the worker of the lane and waits for its end. The second result is the
// retry decision if the attempt failed.
func (r *Router) try(ctx context.Context, call *schema.Call, l *lane, n int, stop <-chan struct{}) (*schema.Result, next, error) {
	err := r.mayLeave(call, l)
	if call.Chosen != nil && err == nil {
		call.Chosen(l.worker)
		err = r.mayLeave(call, l) // writing an intent takes time
	}
	if err != nil {
		l.release(0, kindOf(call))
		return nil, tryStopped, err
	}
	if ended(ctx, stop) {
		l.release(0, kindOf(call))
		return nil, tryNone, errWaitEnded()
	}
	budget := call.Timeout
	if budget <= 0 {
		budget = r.limits.CallTimeout
	}
	a := &attempt{call: call, lane: l, worker: l.host.Load(), sent: time.Now(), budget: budget, client: r.client, router: r, final: make(chan bus.ReplyFrame, 1)}
	if a.worker != nil {
		if a.worker.owed.add(1) == 1 {
			a.worker.heard.Store(r.clock.of(a.sent))
		}
	}
	f := frameOf(call, budget, n)
	f.Brief = !kept(call) && !r.client.Near(l.worker)
	a.brief = f.Brief
	seq, err := a.send(f)
	if err != nil {
		a.end(0)
		return nil, tryNone, err
	}
	timer := time.NewTimer(budget + replyGrace)
	defer timer.Stop()
	var grace <-chan time.Time
	overdue := false
	for {
		select {
		case f := <-a.final:
			if grace == nil {
				r.rate.measure(a, &f)
			}
			return a.finish(ctx, &f)
		case <-stop: // the caller still waits for the outcome
			a.cancel(seq)
			late := time.NewTimer(cancelGrace)
			defer late.Stop()
			stop, grace = nil, late.C
			continue
		case <-ctx.Done():
		case <-grace:
		case <-timer.C:
			overdue = true
		}
		select {
		case f := <-a.final: // at the same moment: the outcome is known
			return a.finish(ctx, &f)
		default:
		}
		a.cancel(seq)
		if overdue {
			r.client.Forget(seq)
			a.end(budget)
			return nil, tryNone, errNoAnswer(call, l.worker, budget)
		}
		a.leave(seq)
		return nil, tryNone, errCanceledRunning(call)
	}
}

// ErrStopped is the cause in the error of a call that its worker stopped after a cancellation. The
// worker has no further information about the outcome.
var ErrStopped = errors.New("canceled it while it ran")

// errCanceledRunning is the error of a call whose worker was asked to stop it and has not answered.
func errCanceledRunning(call *schema.Call) *schema.Error {
	e := unknown(call, "it was asked to stop while it ran")
	e.CancelRequested = true
	return e
}

func errNoAnswer(call *schema.Call, worker schema.WorkerID, budget time.Duration) *schema.Error {
	if worker == anyWorker {
		return unknown(call, "no worker answered within %s", budget)
	}
	return unknown(call, "worker %s did not answer within %s", worker, budget)
}

// ended reports whether the call was canceled or its context has ended.
func ended(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// send sends the call to the worker or, if none is known, to any worker that offers the server.
func (a *attempt) send(f *bus.CallFrame) (uint64, error) {
	if a.lane.worker == anyWorker {
		return a.client.SendAny(f, a)
	}
	return a.client.Send(a.lane.worker, f, a)
}

func frameOf(call *schema.Call, budget time.Duration, n int) *bus.CallFrame {
	method := call.Method
	if method == schema.MethodCallTool {
		method = ""
	}
	return &bus.CallFrame{
		ID: call.ID, Method: method, Server: call.Server, Tool: call.Tool, Budget: budget,
		Principal: call.Principal.Name, Owner: call.Principal.Owner, Groups: call.Principal.Groups, Tenant: call.Principal.Tenant.Stored(),
		ToolDigest: call.ToolDigest, TraceParent: call.Trace.Parent, TraceState: call.Trace.State,
		Attempt: n, Progress: call.Progress != nil, Safe: call.Safe, Keep: kept(call), Bulk: call.Bulk, Approval: call.Approval, Warrant: call.Warrant, Extra: call.Extra, Session: call.Session, Clock: call.Clock, Seed: call.Seed, Lease: call.Lease.ID, Hears: call.Hear != nil, Payload: call.Arguments,
	}
}

// finish converts the final frame to a result or an error.
func (a *attempt) finish(ctx context.Context, f *bus.ReplyFrame) (*schema.Result, next, error) {
	switch f.Kind {
	case bus.ReplyResult:
		return &schema.Result{Body: f.Payload, ToolError: f.ToolError, InputRequired: f.Input, Worker: f.Worker, Took: f.Took}, tryNone, nil
	case bus.ReplyFirst:
		body, err := a.client.Fetch(ctx, f.Worker, *f, *a.parts.Load())
		if err != nil {
			e := unknown(a.call, "the tool ran and returned %d bytes, but they did not arrive in full: %v", f.Total, err)
			return nil, tryNone, e
		}
		return &schema.Result{Body: body, ToolError: f.ToolError, InputRequired: f.Input, Worker: f.Worker, Took: f.Took}, tryNone, nil
	case bus.ReplyNobody:
		if a.lane.worker == anyWorker {
			return nil, tryNone, a.lane.route.fullError(0)
		}
		a.lane.route.closeLane(a.lane.worker)
		return nil, tryAny, schema.Errorf(schema.KindUnavailable, "Worker %s no longer listens; the call did not start.", a.lane.worker).RetryableAfter(time.Second)
	case bus.ReplyLost:
		a.lane.route.closeLane(a.lane.worker)
		if !kept(a.call) {
			a.cancel(f.Seq) // a worker that was only stopped must not start it when it continues; nobody asks for its outcome
		}
		return nil, a.ifSafe(tryAny), unknown(a.call, "worker %s was lost while the call was running", a.lane.worker)
	}
	e := &schema.Error{}
	if err := json.Unmarshal(f.Payload, e); err != nil || e.Kind == "" {
		e = unknown(a.call, "worker %s returned an error that cannot be decoded", a.lane.worker)
	}
	if !f.Started {
		// Nothing reached the MCP server, so another worker may succeed.
		if e.Kind == schema.KindUnavailable || e.Kind == schema.KindServerFailed {
			e.Retryable = true
			return nil, tryOther, e
		}
		return nil, tryNone, e
	}
	if e.Kind == schema.KindCanceled {
		e = unknown(a.call, "worker %s %w", a.lane.worker, ErrStopped)
		e.CancelRequested = true
		return nil, tryNone, e
	}
	if e.Kind != schema.KindOutcomeUnknown {
		return nil, tryNone, e
	}
	e.Retryable = a.call.Safe
	return nil, a.ifSafe(tryAny), e
}

// repeatable reports whether a call may be repeated after an attempt that may have run. An
// approved call may not: it was approved to run once.
func repeatable(call *schema.Call) bool { return call.Safe && call.Approval == "" }

// ifSafe returns n if the call may be repeated and its time has not expired, otherwise tryNone.
func (a *attempt) ifSafe(n next) next {
	if repeatable(a.call) && time.Since(a.sent) < a.budget {
		return n
	}
	return tryNone
}

func unknown(call *schema.Call, format string, args ...any) *schema.Error {
	e := schema.Errorf(schema.KindOutcomeUnknown, format, args...)
	e.Detail = "The outcome of the call is unknown: " + e.Detail + ". It may have run."
	e.Retryable = call.Safe
	if call.Safe {
		e.Detail += " The tool is safe to repeat."
	} else {
		e.Detail += " Check its effects before you send it again."
	}
	return e
}

// Request sends an internal request (describe, start, stop) to one worker and returns the body of
// its answer. It takes no slot.
func (r *Router) Request(ctx context.Context, workerID schema.WorkerID, method string, server schema.ServerID, payload []byte, timeout time.Duration) ([]byte, error) {
	rt := &route{limits: &r.limits}
	call := &schema.Call{ID: schema.CallID(schema.NewID("ask")), Method: method, Server: server, Arguments: payload, Timeout: timeout}
	l := &lane{route: rt, worker: workerID, inFlight: 1, slots: 1, internal: true}
	l.host.Store(r.worker(workerID))
	res, _, err := r.try(ctx, call, l, 1, nil)
	if err != nil {
		return nil, schema.AsError(err).WithCall("") // the id is not that of a call that can be looked up
	}
	return res.Body, nil
}
