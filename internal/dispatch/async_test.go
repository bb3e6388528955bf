package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// asyncCaller places asynchronous calls and collects their callbacks.
type asyncCaller struct {
	r      *Router
	placed chan *AsyncCall
	ended  chan asyncResult
}

type asyncResult struct {
	p *AsyncCall
	End
}

func newAsyncCaller(r *Router) *asyncCaller {
	return &asyncCaller{r: r, placed: make(chan *AsyncCall, 1000), ended: make(chan asyncResult, 1000)}
}

// newBusyAsyncCaller has seven calls placed, the maximum of bulk calls for a worker of eight slots, and
// makes the worker seem fast.
func newBusyAsyncCaller(r *Router) *asyncCaller {
	c := newAsyncCaller(r)
	for i := range 7 {
		c.place(schema.CallID(fmt.Sprintf("call_%d", i)), false)
	}
	quick(r)
	return c
}

func (c *asyncCaller) place(id schema.CallID, safe bool) *AsyncCall { return c.placeOf("", id, safe) }

func (c *asyncCaller) placeOf(principal string, id schema.CallID, safe bool) *AsyncCall {
	one := call(safe)
	one.ID, one.Bulk, one.Durable, one.Principal.Name = id, true, true, principal
	p := &AsyncCall{Call: one, Placed: func(p *AsyncCall) { c.placed <- p }, Ended: func(p *AsyncCall, e End) { c.ended <- asyncResult{p, e} }}
	c.r.Place(p)
	return p
}

const soon = 30 * time.Second

func (c *asyncCaller) nextPlaced(t *testing.T) *AsyncCall {
	t.Helper()
	select {
	case p := <-c.placed:
		return p
	case <-time.After(soon):
		t.Fatal("no asynchronous call was placed")
		return nil
	}
}

func (c *asyncCaller) nextEnd(t *testing.T) asyncResult {
	t.Helper()
	select {
	case e := <-c.ended:
		return e
	case <-time.After(soon):
		t.Fatal("no asynchronous call ended")
		return asyncResult{}
	}
}

// blocked starts a worker that answers a call when the test calls the received function.
func blocked(t *testing.T, srv *bustest.Server, r *Router, id schema.WorkerID) (*scripted, chan func()) {
	t.Helper()
	here := make(chan func(), 1000)
	w, _ := startScripted(t, srv, r, id, func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		seq, payload := f.Seq, f.Payload
		here <- func() { w.l.Result(to, seq, &schema.Result{Body: payload}) }
	})
	return w, here
}

func arrived(t *testing.T, here chan func()) func() {
	t.Helper()
	select {
	case answer := <-here:
		return answer
	case <-time.After(soon):
		t.Fatal("no call arrived")
		return nil
	}
}

func TestAsyncCallIsSentOnLeaveAndEndsOnce(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, _ := startScripted(t, srv, r, "w", echo)
	c := newAsyncCaller(r)
	p := c.place("call_a", false)
	if got := c.nextPlaced(t); got != p || got.Worker() != "w" {
		t.Fatalf("placed %v at %q", got == p, got.Worker())
	}
	if _, err := r.Do(context.Background(), call(false)); err != nil { // all calls sent before it have arrived too
		t.Fatal(err)
	}
	if n := w.calls.Load(); n != 1 {
		t.Fatalf("%d calls left before they were told to", n-1)
	}
	r.Leave([]*AsyncCall{p, p})
	e := c.nextEnd(t)
	if e.p != p || e.Err != nil || !e.Left || e.Result.Worker != "w" || string(e.Result.Body) != string(p.Call.Arguments) {
		t.Errorf("it ended with %+v", e.End)
	}
	r.Recall(p)
	r.Abandon(p)
	if len(c.ended) > 0 || w.calls.Load() != 2 {
		t.Errorf("%d ends more, %d calls", len(c.ended), w.calls.Load())
	}
	idle(t, r)
}

func TestAsyncCallsInFlightNeverExceedSlots(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	_, here := blocked(t, srv, r, "w")
	c := newAsyncCaller(r)
	const all, slots = 40, 7 // one of eight is reserved for interactive calls
	for i := range all {
		c.place(schema.CallID(fmt.Sprintf("call_%d", i)), false)
	}
	if len(c.placed) != slots {
		t.Fatalf("%d are placed at a worker of which nothing is known", len(c.placed))
	}
	leave := func(n int) {
		for range n {
			r.Leave([]*AsyncCall{c.nextPlaced(t)})
		}
	}
	leave(slots)
	arrived(t, here)()
	c.nextEnd(t)
	quick(r)
	leave(slots) // one has the slot, the others are placed ahead
	answers := []func(){}
	for range slots {
		answers = append(answers, arrived(t, here))
	}
	if l := r.Load()["s"]; l.InFlight != slots {
		t.Errorf("%d are in flight", l.InFlight)
	}
	done := 1
	for len(answers) > 0 {
		answers[0]()
		answers = answers[1:]
		c.nextEnd(t)
		if done++; done+len(answers) < all {
			r.Leave(receiveAll(c.placed))
			answers = append(answers, arrived(t, here))
		}
	}
	if done != all {
		t.Errorf("%d of %d ended", done, all)
	}
	idle(t, r)
}

// quick makes the router believe that a call takes a microsecond.
func quick(r *Router) {
	rt := r.lookup("s")
	rt.mu.Lock()
	rt.lanes[0].pace = average(time.Microsecond)
	rt.giveLocked()
	rt.unlock()
}

// receiveAll receives all calls that are already in the channel.
func receiveAll(placed chan *AsyncCall) (all []*AsyncCall) {
	for len(placed) > 0 {
		all = append(all, <-placed)
	}
	return all
}

func TestRecalledAsyncCallIsNotSent(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, here := blocked(t, srv, r, "w")
	c := newBusyAsyncCaller(r)
	runs := receiveAll(c.placed)
	r.Leave(runs)
	for range runs {
		defer arrived(t, here)()
	}
	ready := c.place("call_ready", false)
	r.Leave([]*AsyncCall{ready})
	for _, p := range []*AsyncCall{ready, c.place("call_placed", false)} {
		r.Recall(p)
		if e := c.nextEnd(t); e.p != p || schema.KindOf(e.Err) != schema.KindCanceled || e.Left {
			t.Errorf("%s ended with %+v", e.p.Call.ID, e.End)
		}
		r.Leave([]*AsyncCall{p})
	}
	r.Recall(runs[0])
	if w.calls.Load() != 7 || len(c.ended) > 0 {
		t.Errorf("%d left, %d ended", w.calls.Load(), len(c.ended))
	}
}

func TestAsyncCallIsCancelledByIDInEveryState(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, here := blocked(t, srv, r, "w")
	c := newAsyncCaller(r)
	const slots = 7
	for i := range slots {
		c.place(schema.CallID(fmt.Sprintf("call_%d", i)), false)
	}
	quick(r)
	r.Leave(receiveAll(c.placed))
	var answers []func()
	for range slots {
		answers = append(answers, arrived(t, here))
	}
	ready := c.place("call_ready", false)
	r.Leave([]*AsyncCall{ready})
	placed := c.place("call_placed", false)
	for i := range 6 {
		c.place(schema.CallID(fmt.Sprintf("call_ahead_%d", i)), false)
	}
	waits := c.place("call_waits", false)
	for _, p := range []*AsyncCall{waits, placed, ready} {
		if err := r.Cancel(p.Call.ID); err != nil {
			t.Fatal(err)
		}
		if e := c.nextEnd(t); e.p != p || e.Left || schema.KindOf(e.Err) != schema.KindCanceled {
			t.Errorf("%s ended with %+v", p.Call.ID, e.End)
		}
	}
	if err := r.Cancel("call_3"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.cancelled:
	case <-time.After(soon):
		t.Fatal("the worker was not told")
	}
	select {
	case e := <-c.ended:
		t.Errorf("%s ended with %+v before its worker said how", e.p.Call.ID, e.End)
	default:
	}
	for _, p := range receiveAll(c.placed) {
		r.Recall(p)
	}
	for _, answer := range answers {
		answer()
	}
	for range slots { // the answer of call_3 was already in flight
		for e := c.nextEnd(t); e.Err != nil; e = c.nextEnd(t) {
			if e.Left {
				t.Errorf("%s ended with %+v", e.p.Call.ID, e.End)
			}
		}
	}
}

func TestACanceledAsyncCallThatRanIsUnknown(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	stop := make(chan func(), 2)
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		seq := f.Seq
		stop <- func() { w.l.Error(to, seq, schema.Errorf(schema.KindCanceled, "It was told to stop."), true, 0) }
	})
	c := newAsyncCaller(r)
	for _, safe := range []bool{false, true} {
		p := c.place(schema.CallID(fmt.Sprint("call_", safe)), safe)
		r.Leave([]*AsyncCall{c.nextPlaced(t)})
		end := arrived(t, stop)
		if err := r.Cancel(p.Call.ID); err != nil {
			t.Fatal(err)
		}
		<-w.cancelled
		end()
		got := c.nextEnd(t)
		if e := schema.AsError(got.Err); got.p != p || !got.Left || got.Again || e == nil || e.Kind != schema.KindOutcomeUnknown || !e.CancelRequested {
			t.Errorf("safe %v: it ended with %+v", safe, got.End)
		}
	}
	idle(t, r)
}

func TestEndAfterAttemptInDoubtIsOutcomeUnknown(t *testing.T) {
	one := call(true)
	doubt := unknown(one, "worker w was lost")
	for _, c := range []struct {
		err      *schema.Error
		canceled bool
		want     schema.Kind
	}{
		{errWaitEnded(), true, schema.KindOutcomeUnknown},
		{schema.Errorf(schema.KindUnavailable, "Nobody is there."), false, schema.KindUnavailable},
	} {
		if e := endOf(one, doubt, c.err, c.canceled); e.Kind != c.want || e.CancelRequested != c.canceled || UncertainErrorOf(e) == nil {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
	if e := endOf(one, nil, errWaitEnded(), true); e.Kind != schema.KindCanceled || e.CancelRequested || UncertainErrorOf(e) != nil {
		t.Errorf("a call that never left ended with %+v", e)
	}
	if e := EndOf(one, doubt, schema.Errorf(schema.KindForbidden, "It is switched off."), false); e.Kind != schema.KindOutcomeUnknown || e.CancelRequested {
		t.Errorf("a call that may have run was refused: %+v", e)
	}
}

func TestUnsentAsyncCallsOfDrainingWorkerMayTryAnother(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	_, here := blocked(t, srv, r, "w")
	c := newBusyAsyncCaller(r)
	r.Leave(receiveAll(c.placed))
	ready, placed := c.place("call_ready", false), c.place("call_placed", false)
	r.Leave([]*AsyncCall{ready})
	r.SetWorker(&schema.Worker{ID: "w", Draining: true, Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	if e := c.nextEnd(t); e.p != ready || e.Left || !e.Again || schema.KindOf(e.Err) != schema.KindUnavailable {
		t.Errorf("%s ended with %+v", e.p.Call.ID, e.End)
	}
	r.Leave([]*AsyncCall{placed})
	if e := c.nextEnd(t); e.p != placed || e.Left || !e.Again {
		t.Errorf("%s ended with %+v", e.p.Call.ID, e.End)
	}
	for range 7 { // calls that were sent may finish
		arrived(t, here)()
		if e := c.nextEnd(t); e.Err != nil {
			t.Errorf("%s ended with %+v", e.p.Call.ID, e.End)
		}
	}
	idle(t, r)
}

func TestAnAsyncCallOfALostOrSilentWorkerEndsAsUnknown(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	_, here := blocked(t, srv, r, "w")
	c := newAsyncCaller(r)
	p := c.place("call_silent", false)
	r.Leave([]*AsyncCall{c.nextPlaced(t)})
	arrived(t, here)
	for _, p := range r.flights.overdue(r.clock.now()) {
		p.expire()
	}
	if len(c.ended) > 0 {
		t.Fatal("it ended before its time was over")
	}
	for _, p := range r.flights.overdue(r.clock.of(time.Now().Add(time.Hour))) {
		p.expire()
	}
	if e := c.nextEnd(t); e.p != p || !e.Left || e.Again || schema.KindOf(e.Err) != schema.KindOutcomeUnknown {
		t.Errorf("it ended with %+v", e.End)
	}
	c.place("call_lost", false)
	r.Leave([]*AsyncCall{c.nextPlaced(t)})
	arrived(t, here)
	r.client.Lost("w")
	if e := c.nextEnd(t); !e.Left || e.Again || schema.KindOf(e.Err) != schema.KindOutcomeUnknown {
		t.Errorf("it ended with %+v", e.End)
	}
	idle(t, r)
}

func TestALargeResultOfAnAsyncCallArrivesWhole(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	body := bytes.Repeat([]byte("0123456789"), 200_000)
	startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Result(to, f.Seq, &schema.Result{Body: body})
	})
	c := newAsyncCaller(r)
	c.place("call_a", false)
	r.Leave([]*AsyncCall{c.nextPlaced(t)})
	if e := c.nextEnd(t); e.Err != nil || !bytes.Equal(e.Result.Body, body) {
		t.Errorf("%v", e.Err)
	}
}

func TestConcurrentAsyncCallsEachEndOnce(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	startScripted(t, srv, r, "a", echo)
	startScripted(t, srv, r, "b", echo)
	const many = 300
	ends := make(chan schema.CallID, 2*many)
	var placing sync.WaitGroup
	for i := range many {
		placing.Go(func() {
			one := call(i%2 == 0)
			one.ID, one.Bulk = schema.CallID(fmt.Sprintf("call_%d", i)), true
			r.Place(&AsyncCall{
				Call: one, Placed: func(p *AsyncCall) { r.Leave([]*AsyncCall{p}) },
				Ended: func(p *AsyncCall, e End) { ends <- p.Call.ID },
			})
			if i%10 == 0 {
				_ = r.Cancel(one.ID)
			}
		})
	}
	placing.Wait()
	seen := map[schema.CallID]bool{}
	for range many {
		select {
		case id := <-ends:
			if seen[id] {
				t.Errorf("%s ended twice", id)
			}
			seen[id] = true
		case <-time.After(soon):
			t.Fatalf("%d of %d ended", len(seen), many)
		}
	}
}

func TestFastServerGetsConsecutiveCalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		took  time.Duration
		slots int
		want  int
	}{
		{"nothing is known of it", 0, 64, 1},
		{"it is quick", 100 * time.Microsecond, 64, runMost},
		{"it works on one at a time", 2 * time.Millisecond, 2, 4},
		{"it is slow", time.Second, 64, 1},
	} {
		r := newRoute(Options{})
		r.set("w", nil, c.slots, true)
		l, err := r.acquire(t.Context(), bulkCall("some"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.release(c.took, bulk)
		if got := r.run(); got != c.want {
			t.Errorf("%s: it is given %d in a row, want %d", c.name, got, c.want)
		}
	}
}
