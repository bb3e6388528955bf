package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// scripted is a worker whose answers the test provides.
type scripted struct {
	id        schema.WorkerID
	l         *bus.Listener
	listening chan struct{}
	calls     atomic.Int64
	cancelled chan uint64
	answer    func(w *scripted, f *bus.CallFrame, to bus.ReplyTo)
}

func (s *scripted) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-s.listening
	s.calls.Add(1)
	s.answer(s, f, to)
}
func (s *scripted) Cancel(seq uint64) { s.cancelled <- seq }

func startScripted(t *testing.T, srv *bustest.Server, r *Router, id schema.WorkerID, answer func(*scripted, *bus.CallFrame, bus.ReplyTo)) (*scripted, *bus.Conn) {
	t.Helper()
	conn := srv.Connect(t, string(id))
	s := &scripted{id: id, listening: make(chan struct{}), cancelled: make(chan uint64, 8), answer: answer}
	var err error
	if s.l, err = conn.Listen(id, s); err != nil {
		t.Fatal(err)
	}
	close(s.listening)
	t.Cleanup(s.l.Close)
	heard(t, conn)
	r.SetWorker(&schema.Worker{ID: id, Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	return s, conn
}

func echo(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
	w.l.Result(to, f.Seq, &schema.Result{Body: f.Payload})
}

// heard waits until NATS knows the subscriptions of the connection. Otherwise messages of other
// connections could arrive before them.
func heard(t *testing.T, conn *bus.Conn) {
	t.Helper()
	if err := conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func startRouter(t *testing.T, srv *bustest.Server) *Router {
	t.Helper()
	conn := srv.Connect(t, "router")
	r, err := New(conn, schema.NewID("router"), Options{WorkerWait: 50 * time.Millisecond}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	heard(t, conn)
	return r
}

func call(safe bool) *schema.Call {
	return &schema.Call{ID: "call_x", Server: "s", Tool: "t", Arguments: []byte(`{"n":9007199254740993}`), Timeout: time.Minute, Safe: safe}
}

func idle(t *testing.T, r *Router) {
	t.Helper()
	if l := r.Load()["s"]; l.InFlight != 0 || l.Waiting != 0 {
		t.Errorf("slots are still taken: %+v", l)
	}
}

func TestCallNotStartedByItsWorkerIsSentToAnother(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	full, _ := startScripted(t, srv, r, "full", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "full"), false, 0)
	})
	good, _ := startScripted(t, srv, r, "good", echo)
	r.SetWorker(&schema.Worker{ID: "deaf", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	for range 30 {
		res, err := r.Do(context.Background(), call(false))
		if err != nil || string(res.Body) != `{"n":9007199254740993}` || res.Worker != "good" {
			t.Fatalf("got %+v, %v", res, err)
		}
	}
	if full.calls.Load() == 0 || good.calls.Load() != 30 {
		t.Errorf("full was asked %d times, good %d", full.calls.Load(), good.calls.Load())
	}
	idle(t, r)
}

func TestACallThatMayHaveRunIsNotSentAgain(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	die := func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindOutcomeUnknown, "the server exited"), true, 0)
	}
	a, _ := startScripted(t, srv, r, "a", die)
	b, _ := startScripted(t, srv, r, "b", die)
	_, err := r.Do(context.Background(), call(false))
	e := schema.AsError(err)
	if e.Kind != schema.KindOutcomeUnknown || e.Retryable || e.CallID != "call_x" {
		t.Errorf("got %+v", e)
	}
	if n := a.calls.Load() + b.calls.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	_, err = r.Do(context.Background(), call(true))
	if e := schema.AsError(err); e.Kind != schema.KindOutcomeUnknown || !e.Retryable {
		t.Errorf("got %+v", e)
	}
	if n := a.calls.Load() + b.calls.Load(); n != 1+maxAttempts {
		t.Errorf("a call that is safe to repeat was sent %d times", n-1)
	}
	idle(t, r)
}

func TestALostWorkerIsNoticedAndItsCallEndsAsUnknown(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	got := make(chan struct{}, 2)
	_, conn := startScripted(t, srv, r, "dying", func(*scripted, *bus.CallFrame, bus.ReplyTo) { got <- struct{}{} })
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := r.Do(context.Background(), call(false))
		errs <- err
	})
	<-got
	conn.Close()
	if err := <-errs; schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	wg.Wait()
	idle(t, r)
}

func TestASafeCallSurvivesTheLossOfItsWorker(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	got := make(chan struct{}, 8)
	_, conn := startScripted(t, srv, r, "dying", func(*scripted, *bus.CallFrame, bus.ReplyTo) { got <- struct{}{} })
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		res, err := r.Do(context.Background(), call(true))
		if err == nil && res.Worker != "other" {
			err = fmt.Errorf("answered by %q", res.Worker)
		}
		errs <- err
	})
	<-got
	startScripted(t, srv, r, "other", echo)
	conn.Close()
	if err := <-errs; err != nil {
		t.Error(err)
	}
	wg.Wait()
	idle(t, r)
}

func TestCancelledCallKeepsItsSlotUntilTheWorkerEnds(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	started := make(chan func(), 1)
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		started <- func() { w.l.Error(to, f.Seq, schema.Errorf(schema.KindCanceled, "cancelled"), true, 0) }
	})
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := r.Do(ctx, call(false))
		errs <- err
	})
	end := <-started
	cancel()
	if e := schema.AsError(<-errs); e.Kind != schema.KindOutcomeUnknown || !e.CancelRequested {
		t.Errorf("got %+v", e)
	}
	<-w.cancelled
	if l := r.Load()["s"]; l.InFlight != 1 {
		t.Errorf("the slot must stay taken while the worker works: %+v", l)
	}
	end()
	w.answer = echo
	if _, err := r.Do(context.Background(), call(false)); err != nil { // its reply follows the end of the first call on the same subscription
		t.Error(err)
	}
	wg.Wait()
	idle(t, r)
}

func TestLargeResultsAndProgressReachTheCaller(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	body := make([]byte, 20<<20)
	for i := range body {
		body[i] = byte(i * 7)
	}
	startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Progress(to, f.Seq, []byte("1"))
		w.l.Progress(to, f.Seq, []byte("2"))
		w.l.Result(to, f.Seq, &schema.Result{Body: body})
	})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			var progress []string
			c := call(false)
			c.Progress = func(p []byte) { progress = append(progress, string(p)) }
			res, err := r.Do(context.Background(), c)
			if err != nil || string(res.Body) != string(body) {
				t.Errorf("%v", err)
			}
			if fmt.Sprint(progress) != "[1 2]" {
				t.Errorf("progress was %v", progress)
			}
		})
	}
	wg.Wait()
	idle(t, r)
}

func TestTheSlotsOfAWorkerAreSharedAmongRouters(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	startScripted(t, srv, r, "w", echo)
	r.SetRouters(3)
	if l := r.Load()["s"]; l.Slots != 3 {
		t.Errorf("a third of 8 slots is %d", l.Slots)
	}
	r.SetRouters(1)
	if l := r.Load()["s"]; l.Slots != 8 {
		t.Errorf("alone it has %d", l.Slots)
	}
}

func TestUnannouncedWorkerIsReachedThroughItsServer(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, conn := startScripted(t, srv, r, "unseen", echo)
	r.RemoveWorker("unseen", false)
	_, err := r.Do(context.Background(), call(false))
	if e := schema.AsError(err); e.Kind != schema.KindUnavailable || !e.Retryable || e.RetryAfter == 0 {
		t.Errorf("with nobody there: %+v", err)
	}
	if err := w.l.Offer("s"); err != nil {
		t.Fatal(err)
	}
	heard(t, conn)
	res, err := r.Do(context.Background(), call(false))
	if err != nil || res.Worker != "unseen" {
		t.Errorf("got %+v, %v", res, err)
	}
	w.l.Withdraw("s")
}

func TestARefusalNamesTheErrorOfAServerThatNoWorkerCanRun(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	r.SetWorker(&schema.Worker{ID: "b", Servers: []schema.Server{{ID: "s", State: schema.StateError, Error: "It exited with code 3."}}})
	r.SetWorker(&schema.Worker{ID: "a", Servers: []schema.Server{{ID: "s", State: schema.StateStarting, Error: "No program is attached."}, {ID: "other", State: schema.StateError, Error: "Other."}}})
	_, err := r.Do(context.Background(), call(false))
	if e := schema.AsError(err); e.Kind != schema.KindUnavailable || !e.Retryable || !strings.HasPrefix(e.Detail, `Server "s" is not ready: No program is attached; the call did not start.`) {
		t.Errorf("got %+v", err)
	}
	r.RemoveWorker("a", false)
	r.RemoveWorker("b", false)
	if _, err := r.Do(context.Background(), call(false)); !strings.HasPrefix(schema.AsError(err).Detail, `No live worker runs server "s"`) {
		t.Errorf("without workers: %v", err)
	}
}

func TestContinuousSingleCallsSlowBatchesUnlessUnpaced(t *testing.T) {
	for _, unpaced := range []bool{false, true} {
		srv := bustest.Start(t)
		r := startRouter(t, srv)
		r.limits.Unpaced = unpaced
		startScripted(t, srv, r, "w", echo)
		for range 2 * rateWindow {
			r.Pace(t.Context()) // a batch call next to each
			if _, err := r.Do(t.Context(), call(false)); err != nil {
				t.Fatal(err)
			}
		}
		if pace := r.BatchPace(); pace > 0 == unpaced {
			t.Errorf("unpaced %t: batches may begin %.0f calls a second", unpaced, pace)
		}
	}
}
