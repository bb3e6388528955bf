package dispatch

import (
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// AsyncCall is one attempt at a bulk call, for a runner that has many calls in flight and no
// goroutine for each. Its steps are:
//
//	Router.Place → Placed(worker) → Router.Leave → Ended
//
// Placed reports the chosen worker, so that the runner can write its intent. Some calls are placed
// ahead at a worker whose slots are in use: their intents are written while the calls before them
// run. A call is sent only after Leave, in its turn, when the worker has a free slot. Ended is
// called exactly once, in all cases.
//
// Placed and Ended are called on goroutines of the router and the bus and must not block. An
// AsyncCall can be used only once.
type AsyncCall struct {
	Call   *schema.Call
	Placed func(*AsyncCall)
	Ended  func(*AsyncCall, End)
	// Of is for the caller's own data.
	Of any

	router *Router
	route  *route
	flight *flight

	// Protected by the lock of the route. lane does not change after the call is placed.
	state  asyncState
	lane   *lane
	waiter waiter // waits for a place, and then for a slot

	attempt *attempt      // set when it is sent
	seq     atomic.Uint64 // of the message, set when it is sent
	due     atomic.Int64  // deadline of its answer, on the clock of the router
	stopped atomic.Bool   // cancelled while it ran
	over    atomic.Bool
}

type asyncState int

const (
	asyncWaits  asyncState = iota // waits for a place
	asyncPlaced                   // waits for Leave
	asyncReady                    // waits for a slot
	asyncLeft
	asyncOver
)

// End is the end of an asynchronous call.
type End struct {
	Result *schema.Result
	Err    error // a *schema.Error
	// Left reports that the call was sent. If there is an error, it may have started.
	Left bool
	// Again reports that another attempt may follow at once.
	Again bool
}

// Worker returns the worker of the call. It must not be called before the call is placed.
func (p *AsyncCall) Worker() schema.WorkerID { return p.lane.worker }

// Place queues the call for a place at a worker, as a bulk call. It waits until there is a place,
// or it is recalled or cancelled by its id.
func (r *Router) Place(p *AsyncCall) {
	p.router, p.route = r, r.lookup(p.Call.Server)
	p.waiter.async = p
	p.route.mu.Lock()
	p.flight = r.flights.addAsync(p.Call.ID, p) // a concurrent cancel waits for the lock
	p.route.waiting.push(p.Call, &p.waiter, r.limits.weights())
	p.route.giveLocked()
	p.route.unlock()
}

// Leave lets placed calls be sent. It ignores calls that ended in the meantime.
func (r *Router) Leave(calls []*AsyncCall) {
	by := r.limits.weights()
	for len(calls) > 0 {
		rt, n := calls[0].route, 0
		rt.mu.Lock()
		for ; n < len(calls) && calls[n].route == rt; n++ {
			p := calls[n]
			switch {
			case p.state != asyncPlaced:
			case p.lane.closed:
				rt.displaceLocked(p)
			default:
				p.state = asyncReady
				p.lane.ahead.ready.push(&p.waiter, by.key(p.Call), by)
				rt.waiting.ready++
			}
		}
		rt.giveLocked()
		rt.unlock()
		calls = calls[n:]
	}
}

// Recall cancels an asynchronous call that has not been sent, whether or not Leave was called. The
// call ends as cancelled. Recall does nothing for calls that were sent.
func (r *Router) Recall(p *AsyncCall) { p.recall() }

// Abandon ends an asynchronous call at once, in any state. If a worker runs the call, Abandon asks
// it to stop.
func (r *Router) Abandon(p *AsyncCall) {
	if p.cancel() {
		p.finish(End{Err: errCanceledRunning(p.Call), Left: true})
	}
}

// cancel recalls an asynchronous call that has not been sent. If a worker runs the call, cancel
// asks it to stop and returns true.
func (p *AsyncCall) cancel() bool {
	if p.recall() != asyncLeft || p.over.Load() {
		return false
	}
	p.stopped.Store(true)
	if seq := p.seq.Load(); seq != 0 {
		p.cancelSent(seq)
	}
	return true
}

// cancelByID is like cancel, but waits up to cancelGrace for the worker's answer, because the
// caller wants the outcome.
func (p *AsyncCall) cancelByID() {
	if p.cancel() {
		time.AfterFunc(cancelGrace, func() { p.finish(End{Err: errCanceledRunning(p.Call), Left: true}) })
	}
}

// recall is like Recall, and returns the previous state.
func (p *AsyncCall) recall() (was asyncState) {
	p.route.mu.Lock()
	if was = p.state; was < asyncLeft {
		p.route.takeOutLocked(p)
	}
	p.route.unlock()
	if was < asyncLeft {
		p.finish(End{Err: errWaitEnded()})
	}
	return was
}

// cancelSent sends the cancellation to the worker.
func (p *AsyncCall) cancelSent(seq uint64) {
	p.attempt.cancel(seq)
	p.attempt.leave(seq)
}

// takeOutLocked ends an asynchronous call that has not been sent and removes it from its queue.
func (r *route) takeOutLocked(p *AsyncCall) {
	if p.state == asyncWaits {
		r.waiting.remove(&p.waiter)
	} else if p.state < asyncLeft {
		r.loseLocked(p)
	}
	p.state = asyncOver
	r.giveLocked()
}

// loseLocked frees the place of an asynchronous call.
func (r *route) loseLocked(p *AsyncCall) {
	if p.state == asyncReady {
		p.lane.ahead.ready.remove(&p.waiter)
		r.waiting.ready--
	}
	p.lane.ahead.remove(p)
}

// displaceLocked ends an asynchronous call whose worker accepts no calls any longer. The runner may
// try another worker.
func (r *route) displaceLocked(p *AsyncCall) {
	r.loseLocked(p)
	p.state = asyncOver
	r.todo.displaced = append(r.todo.displaced, p)
}

// evictLocked calls displaceLocked for all calls that wait for a slot of the lane.
func (r *route) evictLocked(l *lane) {
	for w := l.ahead.ready.first(); w != nil; w = l.ahead.ready.first() {
		r.displaceLocked(w.async)
	}
}

// todo lists work that was decided under the lock of a route and is done after unlocking.
type todo struct {
	placed, leaving, displaced []*AsyncCall
}

// unlock releases the lock and does the work of todo.
func (r *route) unlock() {
	do := r.todo
	r.todo = todo{}
	r.mu.Unlock()
	for _, p := range do.placed {
		p.Placed(p)
	}
	for i, p := range do.leaving {
		p.send(i+1 < len(do.leaving))
	}
	for _, p := range do.displaced {
		e := schema.Errorf(schema.KindUnavailable, "Worker %s accepts no more calls; the call did not start.", p.lane.worker).RetryableAfter(time.Second)
		p.finish(End{Err: e, Again: true})
	}
}

// send sends a call that has a slot. more reports that another call follows at once.
func (p *AsyncCall) send(more bool) {
	r, l := p.router, p.lane
	if p.stopped.Load() {
		l.release(0, bulk)
		p.finish(End{Err: errWaitEnded().WithCall(p.Call.ID)})
		return
	}
	if err := r.mayLeave(p.Call, l); err != nil {
		l.release(0, bulk)
		p.finish(End{Err: schema.AsError(err).WithCall(p.Call.ID)})
		return
	}
	budget := p.Call.Timeout
	if budget <= 0 {
		budget = r.limits.CallTimeout
	}
	a := &attempt{call: p.Call, lane: l, worker: l.host.Load(), sent: time.Now(), budget: budget, client: r.client, router: r, async: p}
	p.attempt = a
	if a.worker != nil && a.worker.owed.add(1) == 1 {
		a.worker.heard.Store(r.clock.of(a.sent))
	}
	f := frameOf(p.Call, budget, 1)
	f.More = more
	seq, err := a.send(f)
	if err != nil {
		a.end(0)
		p.finish(End{Err: schema.AsError(err).WithCall(p.Call.ID)})
		return
	}
	p.due.Store(r.clock.of(a.sent.Add(budget + replyGrace)))
	p.seq.Store(seq)
	if p.stopped.Load() {
		p.cancelSent(seq) // possibly for the second time
	}
}

// answered handles the last frame of the call's attempt.
func (p *AsyncCall) answered(a *attempt, f *bus.ReplyFrame) {
	if f.Kind != bus.ReplyFirst {
		p.conclude(a.finish(p.router.life, f))
		return
	}
	first := *f
	p.router.wait.Go(func() { p.conclude(a.finish(p.router.life, &first)) })
}

func (p *AsyncCall) conclude(res *schema.Result, n next, err error) {
	stopped := p.stopped.Load()
	if err != nil {
		err = EndOf(p.Call, nil, err, stopped)
	}
	p.finish(End{Result: res, Err: err, Left: true, Again: n != tryNone && !stopped})
}

// expire ends an asynchronous call whose answer is overdue.
func (p *AsyncCall) expire() {
	seq := p.seq.Load()
	p.attempt.cancel(seq)
	p.router.client.Forget(seq)
	p.attempt.end(p.attempt.budget)
	p.conclude(nil, tryNone, errNoAnswer(p.Call, p.lane.worker, p.attempt.budget))
}

func (p *AsyncCall) finish(e End) {
	if p.over.Swap(true) {
		return
	}
	p.router.flights.remove(p.flight)
	p.Ended(p, e)
}
