package dispatch

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// measureWithFlood runs one caller, with one call at a time, and a flood of bulk calls. It returns the
// 99th percentile of the caller's calls, alone and during the flood, and the rate of the flood,
// alone and next to the caller.
func measureWithFlood(t *testing.T, work func(), each time.Duration) (idle, flooded time.Duration, alone, withFlood float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("w", nil, 64, true)
		calls := func() time.Duration {
			var times []time.Duration
			for end := time.Now().Add(each); time.Now().Before(end); {
				began := time.Now()
				l, err := r.acquire(t.Context(), &schema.Call{}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				work()
				l.release(time.Since(began), interactive)
				times = append(times, time.Since(began))
			}
			return p99(times)
		}
		idle = calls()
		time.Sleep(2 * limitFor)
		stop := make(chan struct{})
		var n int
		var mu sync.Mutex
		var flood sync.WaitGroup
		for range 100 {
			flood.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					l, err := r.acquire(t.Context(), bulkCall("flood"), nil, nil)
					if err != nil {
						t.Error(err)
						return
					}
					sent := time.Now()
					work()
					l.release(time.Since(sent), bulk)
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		}
		rate := func(while func()) float64 {
			mu.Lock()
			before := n
			mu.Unlock()
			began := time.Now()
			while()
			mu.Lock()
			defer mu.Unlock()
			return float64(n-before) / time.Since(began).Seconds()
		}
		alone = rate(func() { time.Sleep(each) })
		withFlood = rate(func() { flooded = calls() })
		time.Sleep(2 * limitFor)
		if again := rate(func() { time.Sleep(each) }); again < 0.95*alone {
			t.Errorf("when the caller is gone the flood does %.0f calls/s of %.0f", again, alone)
		}
		close(stop)
		flood.Wait()
	})
	return idle, flooded, alone, withFlood
}

func TestCallerIsNotDelayedByFloodQueuedInTheServer(t *testing.T) {
	// The round trip takes 200 us, and the server processes one call at a time, for 50 us.
	var one sync.Mutex
	var free time.Time
	work := func() {
		time.Sleep(200 * time.Microsecond)
		one.Lock()
		now := time.Now()
		if free.Before(now) {
			free = now
		}
		free = free.Add(50 * time.Microsecond)
		mine := free
		one.Unlock()
		time.Sleep(time.Until(mine))
	}
	idle, flooded, alone, withFlood := measureWithFlood(t, work, 4*time.Second)
	if flooded > 2*idle {
		t.Errorf("p99 of the caller is %s beside the flood, %s without", flooded, idle)
	}
	if withFlood < alone/4 {
		t.Errorf("the flood does %.0f calls/s beside the caller, %.0f without", withFlood, alone)
	}
}

func TestConcurrentServerIsNotThrottledForOneCaller(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 2))
		var one sync.Mutex
		work := func() {
			one.Lock()
			d := 20*time.Millisecond + time.Duration(random.IntN(280))*time.Millisecond
			one.Unlock()
			time.Sleep(d)
		}
		if seed == 0 {
			work = func() { time.Sleep(100 * time.Millisecond) }
		}
		_, _, alone, withFlood := measureWithFlood(t, work, 30*time.Second)
		if withFlood < 0.75*alone {
			t.Errorf("seed %d: the flood does %.0f calls/s beside a caller, %.0f without", seed, withFlood, alone)
		}
	}
}
