package batch

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/callyard/callyard/internal/store/journal"
)

func sized(bytes int) *journal.CallRecord {
	return &journal.CallRecord{Arguments: make([]byte, bytes)}
}

func TestWindowBoundsCallsAndBytes(t *testing.T) {
	for name, c := range map[string]struct{ places, size int }{"calls": {2, 1}, "bytes": {10, 50}} {
		synctest.Test(t, func(t *testing.T) {
			w, entered := newWindow(c.places, 100), make(chan bool, 1)
			for range 2 {
				w.enter(t.Context(), sized(c.size))
			}
			go func() { entered <- w.enter(t.Context(), sized(c.size)) }()
			synctest.Wait()
			if len(entered) != 0 || w.count.Load() != 2 {
				t.Fatalf("%s: a third call is under way", name)
			}
			w.leave(w.weight(sized(c.size)))
			if !<-entered || w.count.Load() != 2 {
				t.Errorf("%s: %d calls are under way", name, w.count.Load())
			}
		})
	}
}

func TestACallWithoutMemoryReleasesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, entered := newWindow(2, 100), make(chan bool, 1)
		w.enter(t.Context(), sized(100))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { entered <- w.enter(ctx, sized(1)) }()
		synctest.Wait() // it has a place and waits for bytes
		cancel()
		if <-entered {
			t.Fatal("there is no room for its bytes")
		}
		if !w.places.TryAcquire(1) {
			t.Error("its place was not given back")
		}
	})
}

func TestCallLargerThanTheWindowRunsAlone(t *testing.T) {
	w := newWindow(2, 100)
	large := &journal.CallRecord{ArgumentsObject: journal.Object{Size: 1000}}
	if got := w.weight(large); got != 100 {
		t.Errorf("it weighs %d bytes", got)
	}
	if got := w.weight(sized(0)); got != 1 {
		t.Errorf("a call without arguments weighs %d bytes", got)
	}
}
