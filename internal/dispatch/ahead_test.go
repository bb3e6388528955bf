package dispatch

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// fullWorker is a worker of eight slots with a principal that uses all places it can get there. Each
// call waits at the worker until it is answered.
type fullWorker struct {
	*asyncCaller
	here chan fullWorkerCall
}

type fullWorkerCall struct {
	who    string
	answer func()
}

const hoardSlots = 7 // one of eight is reserved for interactive calls

func newFullWorker(t *testing.T) *fullWorker {
	t.Helper()
	srv := bustest.Start(t)
	h := &fullWorker{newAsyncCaller(startRouter(t, srv)), make(chan fullWorkerCall, 1000)}
	startScripted(t, srv, h.r, "w", func(w *scripted, f *bus.CallFrame, to bus.ReplyTo) {
		seq, payload := f.Seq, f.Payload
		h.here <- fullWorkerCall{f.Principal, func() { w.l.Result(to, seq, &schema.Result{Body: payload}) }}
	})
	for i := range 10 * aheadMost * hoardSlots {
		h.placeOf("big", schema.CallID(fmt.Sprint("call_big_", i)), false)
		if i == 0 {
			quick(h.r)
		}
	}
	if n := len(h.placed); n != aheadMost*hoardSlots {
		t.Fatalf("%d are placed", n)
	}
	return h
}

// upTo answers calls until one of the principal arrives, and returns the number of calls that
// arrived before it.
func (h *fullWorker) upTo(t *testing.T, who string) (before int) {
	t.Helper()
	for ; ; before++ {
		got := <-h.here
		got.answer()
		if got.who == who {
			return before
		}
		if before > aheadMost*hoardSlots {
			t.Fatalf("no call of %s among %d", who, before)
		}
	}
}

func TestPlacementLimitOfOnePrincipalDoesNotBlockAnother(t *testing.T) {
	h := newFullWorker(t)
	big := receiveAll(h.placed)
	for i := range 3 {
		h.placeOf("small", schema.CallID(fmt.Sprint("call_small_", i)), false)
	}
	small := receiveAll(h.placed)
	if len(small) != 3 || !strings.HasPrefix(string(small[0].Call.ID), "call_small") {
		t.Fatalf("%d are placed", len(small))
	}
	h.r.Leave(big)
	h.r.Leave(small)
	// The first calls got the slots. After that both principals take turns.
	for i, most := range []int{hoardSlots + 1, 2, 2} {
		if n := h.upTo(t, "small"); n > most {
			t.Errorf("small call %d waited for %d others", i, n)
		}
	}
}

func TestPlacementLimitIsPerTenantAndPrincipal(t *testing.T) {
	var a unsentAsync
	of := func(tenant schema.TenantID) *AsyncCall {
		return &AsyncCall{Call: &schema.Call{Principal: schema.Principal{Name: "agent", Tenant: tenant}}}
	}
	red, blue := of("red"), of("blue")
	for range 2 {
		a.add(red)
	}
	if a.takes(red.Call.Principal.ID(), 2) {
		t.Error("it has all places and takes one more")
	}
	if !a.takes(blue.Call.Principal.ID(), 2) {
		t.Error("one of the same name in another tenant has no place")
	}
	a.remove(red)
	a.remove(red)
	if len(a.by) != 0 {
		t.Errorf("%v is left", a.by)
	}
}

func TestUnplacedBulkCallDoesNotWaitForPlacedOnes(t *testing.T) {
	h := newFullWorker(t)
	h.r.Leave(receiveAll(h.placed))
	waiting := h.r.Load()["s"].Bulk
	one := call(false)
	one.ID, one.Bulk, one.Principal.Name = "call_small", true, "small"
	ended := make(chan error, 1)
	go func() {
		_, err := h.r.Do(t.Context(), one)
		ended <- err
	}()
	for h.r.Load()["s"].Bulk == waiting {
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
		runtime.Gosched()
	}
	if n := h.upTo(t, "small"); n > 2*hoardSlots {
		t.Errorf("it waited for %d others", n)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
