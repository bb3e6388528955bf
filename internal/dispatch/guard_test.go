package dispatch

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// installGuard installs a guard that refuses all calls once off is set.
func installGuard(r *Router) (off *atomic.Bool) {
	off = &atomic.Bool{}
	r.SetGuard(func(*schema.Call) error {
		if off.Load() {
			return schema.Errorf(schema.KindDisabled, "off")
		}
		return nil
	})
	return off
}

func TestQueuedCallIsNotSentOnceTheGuardRefuses(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, here := blocked(t, srv, r, "w")
	off := installGuard(r)
	var all sync.WaitGroup
	var refused atomic.Int64
	for i := range 20 { // eight of them have a slot
		all.Go(func() {
			c := call(i%2 == 0)
			c.ID = schema.NewCallID()
			if _, err := r.Do(context.Background(), c); err != nil {
				if e := schema.AsError(err); e.Kind != schema.KindDisabled || e.CallID != c.ID {
					t.Errorf("%+v", e)
				}
				refused.Add(1)
			}
		})
	}
	answers := make([]func(), 8)
	for i := range answers {
		answers[i] = arrived(t, here)
	}
	for r.Load()["s"].Waiting != 12 {
		runtime.Gosched()
	}
	off.Store(true)
	for _, answer := range answers {
		answer()
	}
	all.Wait()
	if w.calls.Load() != 8 || refused.Load() != 12 {
		t.Errorf("%d left, %d were refused", w.calls.Load(), refused.Load())
	}
	idle(t, r)
}

func TestGuardIsCheckedBeforeAndAfterTheIntent(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, _ := startScripted(t, srv, r, "w", echo)
	off := installGuard(r)
	intents := 0
	c := call(false)
	c.Chosen = func(schema.WorkerID) {
		intents++
		off.Store(true) // while the intent is written
	}
	for range 2 {
		if _, err := r.Do(context.Background(), c); schema.KindOf(err) != schema.KindDisabled {
			t.Errorf("%v", err)
		}
	}
	if intents != 1 || w.calls.Load() != 0 {
		t.Errorf("%d intents, %d calls left", intents, w.calls.Load())
	}
	idle(t, r)
}

func TestGuardIsCheckedForEachAttempt(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	off := installGuard(r)
	var started atomic.Bool
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		off.Store(true)
		kind := schema.KindUnavailable
		if started.Load() {
			kind = schema.KindOutcomeUnknown
		}
		w.l.Error(to, f.Seq, schema.Errorf(kind, "not here"), started.Load(), 0)
	})
	startScripted(t, srv, r, "v", w.answer)
	if _, err := r.Do(context.Background(), call(true)); schema.KindOf(err) != schema.KindDisabled {
		t.Errorf("a call that never started: %v", err)
	}
	off.Store(false)
	started.Store(true)
	// The first attempt may have run, so the call must not end as one that never ran.
	if _, err := r.Do(context.Background(), call(true)); schema.KindOf(err) != schema.KindOutcomeUnknown {
		t.Errorf("a call that may have run: %v", err)
	}
	idle(t, r)
}

func TestReadyAsyncCallsAreNotSentOnceTheGuardRefuses(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, _ := startScripted(t, srv, r, "w", echo)
	off := installGuard(r)
	c := newBusyAsyncCaller(r)
	placed := make([]*AsyncCall, 7)
	for i := range placed {
		placed[i] = c.nextPlaced(t)
	}
	off.Store(true)
	r.Leave(placed)
	for range placed {
		if e := c.nextEnd(t); schema.KindOf(e.Err) != schema.KindDisabled || e.Left || e.Again {
			t.Errorf("%+v", e.End)
		}
	}
	if w.calls.Load() != 0 {
		t.Errorf("%d asynchronous calls left", w.calls.Load())
	}
	idle(t, r)
}

func TestInternalRequestsSkipTheGuard(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	startScripted(t, srv, r, "w", echo)
	installGuard(r).Store(true)
	if _, err := r.Request(context.Background(), "w", "callyard/describe", "s", []byte(`{}`), soon); err != nil {
		t.Error(err)
	}
}
