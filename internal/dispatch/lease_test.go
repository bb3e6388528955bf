package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func leasedCall(worker schema.WorkerID) *schema.Call {
	c := call(true)
	c.Lease = schema.Lease{Worker: worker}
	return c
}

func TestALeasedCallWaitsForItsBusyWorkerAndGoesToNoOther(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	busy, _ := startScripted(t, srv, r, "busy", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		if w.calls.Load() <= 5 {
			w.l.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "busy"), false, 0)
			return
		}
		echo(w, f, to)
	})
	other, _ := startScripted(t, srv, r, "other", echo)
	res, err := r.Do(t.Context(), leasedCall("busy"))
	if err != nil || res.Worker != "busy" {
		t.Errorf("got %+v, %v", res, err)
	}
	if busy.calls.Load() != 6 || other.calls.Load() != 0 {
		t.Errorf("the worker was asked %d times, the other %d times", busy.calls.Load(), other.calls.Load())
	}
	always, _ := startScripted(t, srv, r, "always", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindUnavailable, "busy"), false, 0)
	})
	polltest.Until(t, "the time of a call is over after several attempts", func() bool {
		c, before := leasedCall("always"), always.calls.Load()
		c.Timeout = 2 * time.Second
		_, err := r.Do(t.Context(), c)
		return schema.KindOf(err) == schema.KindUnavailable && always.calls.Load()-before >= 2
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := r.Do(ctx, leasedCall("always")); schema.KindOf(err) != schema.KindCanceled && schema.KindOf(err) != schema.KindOutcomeUnknown { // an attempt may be in flight
		t.Errorf("canceled, it ended with %v", err)
	}
	// A known worker that no longer listens is gone, not busy.
	r.SetWorker(&schema.Worker{ID: "deaf", Servers: []schema.Server{{ID: "s", State: schema.StateInitialized, Slots: 8}}})
	if _, err := r.Do(t.Context(), leasedCall("deaf")); schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("at a worker that does not listen it ended with %v", err)
	}
	idle(t, r)
}

func TestLeasedCallInDoubtIsSentOnce(t *testing.T) {
	srv := bustest.Start(t)
	r := startRouter(t, srv)
	w, _ := startScripted(t, srv, r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		w.l.Error(to, f.Seq, schema.Errorf(schema.KindOutcomeUnknown, "lost"), true, 0)
	})
	if _, err := r.Do(t.Context(), leasedCall("w")); schema.KindOf(err) != schema.KindOutcomeUnknown || w.calls.Load() != 1 {
		t.Errorf("after %d attempts it ended with %v", w.calls.Load(), err)
	}
	if _, err := r.Do(t.Context(), leasedCall("gone")); schema.KindOf(err) != schema.KindServerFailed {
		t.Errorf("at a worker that is not there it ended with %v", err)
	}
	idle(t, r)
}
