package dispatch

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// A client could otherwise fill the memory of a front door with the arguments of calls that it cancels.
func TestCanceledCallIsForgottenWhenItsWorkerHasEndedIt(t *testing.T) {
	large := make([]byte, 1<<20) // arrives in parts, which nobody fetches
	for name, end := range map[string]func(w *scripted, seq uint64, to bus.ReplyTo){
		"an error": func(w *scripted, seq uint64, to bus.ReplyTo) {
			w.l.Error(to, seq, schema.Errorf(schema.KindCanceled, "It was told to stop."), true, 0)
		},
		"a large result": func(w *scripted, seq uint64, to bus.ReplyTo) { w.l.Result(to, seq, &schema.Result{Body: large}) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := bustest.Start(t)
			r := startRouter(t, srv)
			started := make(chan func(), 1)
			w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
				seq := f.Seq
				started <- func() { end(w, seq, to) }
			})
			var collected atomic.Bool
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				c := call(false)
				c.Timeout = time.Hour
				runtime.AddCleanup(c, func(*atomic.Bool) { collected.Store(true) }, nil)
				_, err := r.Do(ctx, c)
				ended <- err
			}()
			answer := <-started
			cancel()
			if err := <-ended; schema.KindOf(err) != schema.KindOutcomeUnknown {
				t.Fatal(err)
			}
			<-w.cancelled
			answer()
			polltest.Within(t, 30*time.Second, "the call is not kept in memory", func() bool {
				runtime.GC()
				return collected.Load() && r.client.Pending() == 0
			})
			idle(t, r)
		})
	}
}

// The router learns of the loss of a worker on another goroutine than of its replies.
func TestReplyAtTheMomentOfALossDoesNotBlock(t *testing.T) {
	one := call(false)
	for _, first := range []bus.ReplyKind{bus.ReplyLost, bus.ReplyFirst} {
		l := (&route{server: "s", limits: new(Options)}).anyLane("")
		a := &attempt{call: one, lane: l, sent: time.Now(), budget: time.Minute, final: make(chan bus.ReplyFrame, 1)}
		second := bus.ReplyFirst + bus.ReplyLost - first
		a.Reply(&bus.ReplyFrame{Kind: first})
		done := make(chan struct{})
		go func() {
			a.Reply(&bus.ReplyFrame{Kind: second})
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(soon):
			t.Fatalf("after %v, the subscription for all replies waits with %v", first, second)
		}
		if f := <-a.final; f.Kind != first {
			t.Errorf("the call ended with %v, want %v", f.Kind, first)
		}
	}
}

// A worker that was stopped, and not killed, would otherwise start the calls that wait for it when it
// continues, although their callers know that they may have to send them again.
func TestCallsOfALostWorkerAreCanceledUnlessTheyAreInALedger(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	arrived := make(chan uint64, 2)
	w, _ := startScripted(t, srv, r, "w", func(_ *scripted, f *bus.CallFrame, _ bus.ReplyTo) { arrived <- f.Seq })
	ended := make(chan error, 2)
	do := func(durable bool) (seq uint64) {
		c := call(false)
		c.Durable = durable
		go func() {
			_, err := r.Do(t.Context(), c)
			ended <- err
		}()
		return <-arrived
	}
	plain := do(false)
	do(true)
	r.RemoveWorker("w", false)
	for range 2 {
		if err := <-ended; schema.KindOf(err) != schema.KindOutcomeUnknown {
			t.Error(err)
		}
	}
	wantCanceled(t, w, plain)
	heard(t, r.conn)
	select {
	case seq := <-w.cancelled:
		t.Errorf("call %d is canceled too", seq)
	default:
	}
	idle(t, r)
}

func TestACallThatAnyWorkerTookCanBeCanceled(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	arrived := make(chan uint64, 1)
	w, conn := startScripted(t, srv, r, "w", func(_ *scripted, f *bus.CallFrame, _ bus.ReplyTo) { arrived <- f.Seq })
	r.RemoveWorker("w", false) // its announcement is late
	if err := w.l.Offer("s"); err != nil {
		t.Fatal(err)
	}
	heard(t, conn)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Do(ctx, call(false))
		ended <- err
	}()
	seq := <-arrived
	r.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	cancel()
	if err := <-ended; schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Error(err)
	}
	wantCanceled(t, w, seq)
}

func wantCanceled(t *testing.T, w *scripted, seq uint64) {
	t.Helper()
	select {
	case got := <-w.cancelled:
		if got != seq {
			t.Errorf("call %d is canceled, want %d", got, seq)
		}
	case <-time.After(soon):
		t.Error("the worker was not asked to stop the call")
	}
}

// Otherwise the record of the call says that its outcome is unknown.
func TestAnswerAtTheMomentTheCallerLeavesCounts(t *testing.T) {
	srv := bustest.Start(t)
	local := &bus.Local{}
	r, err := New(srv.ConnectLocal(t, "router", local), schema.NewID("router"), Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	leave := make(chan context.CancelFunc, 1)
	w := &scripted{id: "w", listening: make(chan struct{}), cancelled: make(chan uint64, 100), answer: func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		(<-leave)()
		echo(w, f, to)
	}}
	if w.l, err = srv.ConnectLocal(t, "w", local).Listen(w.id, w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.l.Close)
	close(w.listening)
	r.SetWorker(&schema.Worker{ID: "w", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	for range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		leave <- cancel
		if res, err := r.Do(ctx, call(false)); err != nil || res.Worker != "w" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	idle(t, r)
}
