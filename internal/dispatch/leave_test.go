package dispatch

import (
	"context"
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
