package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRoute(o Options) *route {
	o.fill()
	return &route{server: "s", limits: &o}
}

// one is a call without principal.
var one = &schema.Call{}

// load runs callers in a closed loop against workers with the given durations, in virtual time. It
// returns the calls per second, the 90th percentile of a call's total time, and the number of calls
// of each worker.
func load(t *testing.T, workers map[schema.WorkerID]time.Duration, slots, callers int, total time.Duration) (rate float64, p90 time.Duration, share map[schema.WorkerID]int) {
	t.Helper()
	r := newRoute(Options{})
	for w := range workers {
		r.set(w, nil, slots, true)
	}
	share = make(map[schema.WorkerID]int)
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	end := time.Now().Add(total)
	for i := range callers {
		wg.Go(func() {
			// In lockstep a waiting call would always wait for a whole turn.
			time.Sleep(time.Duration(i) * 700 * time.Microsecond)
			for time.Now().Before(end) {
				began := time.Now()
				l, err := r.acquire(t.Context(), one, nil, nil)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(workers[l.worker]) // virtual time of the worker
				l.release(workers[l.worker], interactive)
				mu.Lock()
				times = append(times, time.Since(began))
				share[l.worker]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(times)
	return float64(len(times)) / total.Seconds(), times[len(times)*9/10], share
}

func TestOneSlowWorkerDoesNotSlowTheOthers(t *testing.T) {
	const fast, slow = 20 * time.Millisecond, 200 * time.Millisecond
	workers := map[schema.WorkerID]time.Duration{"a": fast, "b": fast, "c": fast, "d": slow}
	// Three fast workers with 8 slots do 1,200 calls a second, the slow one 40.
	for callers, most := range map[int]float64{24: 1200, 40: 1240} {
		synctest.Test(t, func(t *testing.T) {
			rate, p90, share := load(t, workers, 8, callers, 20*time.Second)
			if rate < 0.8*most {
				t.Errorf("%d callers: %.0f calls/s of %.0f", callers, rate, most)
			}
			if p90 >= 2*fast {
				t.Errorf("%d callers: p90 is %s", callers, p90)
			}
			if share["d"] > share["a"]/4 {
				t.Errorf("%d callers: the slow worker got %d calls, a fast one %d", callers, share["d"], share["a"])
			}
		})
	}
}

func TestWorkerThatBecameFastIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("slow", nil, 4, true)
		r.set("fast", nil, 4, true)
		for range 20 {
			l, err := r.acquire(t.Context(), one, map[schema.WorkerID]bool{"fast": true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.release(time.Second, interactive)
			l, err = r.acquire(t.Context(), one, map[schema.WorkerID]bool{"slow": true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.release(10*time.Millisecond, interactive)
		}
		tried := false
		for range 300 {
			time.Sleep(time.Second)
			l, err := r.acquire(t.Context(), one, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			tried = tried || l.worker == "slow"
			l.release(10*time.Millisecond, interactive)
		}
		if !tried {
			t.Error("the worker that was slow once is never tried again")
		}
	})
}

func TestCallsWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("w", nil, 1, true)
		first, err := r.acquire(t.Context(), one, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				l, err := r.acquire(t.Context(), one, nil, nil)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i) // one slot, so there is no concurrent access
				l.release(time.Millisecond, interactive)
			})
			synctest.Wait()
		}
		first.release(time.Millisecond, interactive)
		wg.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("the order was %v", order)
		}
	})
}

func TestAWaitThatWouldBeTooLongIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxWait: 5 * time.Second, MaxQueue: 100})
		r.set("w", nil, 1, true)
		l, err := r.acquire(t.Context(), one, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.pace.add(3 * time.Second) // a call takes three seconds here
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := r.acquire(t.Context(), one, nil, nil); schema.KindOf(err) != schema.KindUnavailable {
					t.Errorf("a waiter ended with %v", err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		_, err = r.acquire(t.Context(), one, nil, nil) // two calls already wait: six seconds
		e := schema.AsError(err)
		if e.Kind != schema.KindUnavailable || !e.Retryable || e.RetryAfter < 6*time.Second {
			t.Errorf("got %+v", e)
		}
		if time.Since(began) != 0 {
			t.Error("the refusal must come at once")
		}
		wg.Wait()
		l.release(0, interactive)
		if got := r.load(); got.Waiting != 0 || got.InFlight != 0 {
			t.Errorf("left behind: %+v", got)
		}
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxQueue: 1})
		r.set("w", nil, 1, true)
		l, _ := r.acquire(t.Context(), one, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.acquire(ctx, one, nil, nil); schema.KindOf(err) != schema.KindCanceled {
				t.Errorf("the waiter ended with %v", err)
			}
		})
		synctest.Wait()
		if _, err := r.acquire(t.Context(), one, nil, nil); schema.AsError(err).RetryAfter < time.Second {
			t.Errorf("got %v", err)
		}
		cancel()
		wg.Wait()
		l.release(0, interactive)
	})
}

func TestARestartOfTheOnlyWorkerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{WorkerWait: 3 * time.Second})
		r.set("old", nil, 4, true)
		r.drop("old")
		time.AfterFunc(2*time.Second, func() { r.set("new", nil, 4, true) })
		l, err := r.acquire(t.Context(), one, nil, nil)
		if err != nil || l.worker != "new" {
			t.Fatalf("got %+v, %v", l, err)
		}
		l.release(0, interactive)
		r.drop("new")
		began := time.Now()
		_, err = r.acquire(t.Context(), one, nil, nil)
		if !errors.Is(err, errNoWorker) || time.Since(began) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAClosedLaneTakesNothingNewAndOpensAgain(t *testing.T) {
	r := newRoute(Options{})
	r.set("a", nil, 1, true)
	r.closeLane("a")
	if l := r.pickLocked(time.Now(), nil, interactive); l != nil {
		t.Error("a closed lane was picked")
	}
	r.set("a", nil, 1, true)
	if l := r.pickLocked(time.Now(), nil, interactive); l == nil {
		t.Error("an announced worker must be open again")
	}
	if _, err := r.acquire(t.Context(), one, map[schema.WorkerID]bool{"a": true}, nil); !errors.Is(err, errNoOther) {
		t.Errorf("with nobody else to try: %v", err)
	}
}
