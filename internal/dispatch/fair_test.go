package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// callQueue queues calls without a goroutine for each. A call with a slot works for some virtual time
// and releases the slot.
type callQueue struct {
	r    *route
	work func()
	wg   sync.WaitGroup

	mu    sync.Mutex
	waits map[string][]time.Duration // by principal
}

func newCallQueue(r *route, work time.Duration) *callQueue {
	return &callQueue{r: r, work: func() { time.Sleep(work) }, waits: make(map[string][]time.Duration)}
}

// queue queues n copies of call.
func (c *callQueue) queue(call *schema.Call, n int) {
	got := make(chan *lane, n)
	began := time.Now()
	waiters := make([]waiter, n)
	c.r.mu.Lock()
	for i := range waiters {
		waiters[i].got = got
		c.r.waiting.push(call, &waiters[i], c.r.limits.weights())
	}
	c.r.giveLocked()
	c.r.mu.Unlock()
	c.wg.Go(func() {
		for range n {
			l := <-got
			c.wg.Go(func() {
				sent := time.Now()
				c.work()
				c.mu.Lock()
				c.waits[call.Principal.Name] = append(c.waits[call.Principal.Name], time.Since(began))
				c.mu.Unlock()
				l.release(time.Since(sent), kindOf(call))
			})
		}
	})
}

func (c *callQueue) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[string]int)
	for p, w := range c.waits {
		n[p] = len(w)
	}
	return n
}

func bulkCall(principal string) *schema.Call {
	return &schema.Call{Principal: schema.Principal{Name: principal}, Bulk: true}
}

func p99(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)*99/100]
}

// smallBatches returns the 99th percentile of the waits of the calls of 20 small batches that
// arrive while a large one waits. name returns the principal of a small batch.
func smallBatches(t *testing.T, name func(i int) string) (worst time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("w", nil, 32, true)
		c := newCallQueue(r, 2*time.Millisecond)
		c.queue(bulkCall("large"), 50_000)
		time.Sleep(time.Second)
		small := newCallQueue(r, 2*time.Millisecond)
		for i := range 20 {
			small.queue(bulkCall(name(i)), 10)
		}
		c.wg.Wait()
		small.wg.Wait()
		var all []time.Duration
		for _, times := range small.waits {
			all = append(all, times...)
		}
		if len(all) != 200 || len(c.waits["large"]) != 50_000 {
			t.Fatalf("%d and %d calls ended", len(all), len(c.waits["large"]))
		}
		worst = p99(all)
	})
	return worst
}

func TestALargeBatchDoesNotDelayTheSmallOnesOfOthers(t *testing.T) {
	if worst := smallBatches(t, func(i int) string { return fmt.Sprintf("small-%d", i) }); worst >= 20*time.Millisecond {
		t.Errorf("p99 of the small batches is %s", worst)
	}
	// The limit is meaningful only if a common line exceeds it by far.
	if worst := smallBatches(t, func(int) string { return "large" }); worst < time.Second {
		t.Errorf("in the line of the large batch p99 is %s: the test proves nothing", worst)
	}
}

// sharesOf lets the calls compete until 4,000 have ended, and returns the number of ended calls of
// each principal.
func sharesOf(t *testing.T, o Options, calls ...*schema.Call) (counts map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(o)
		r.set("w", nil, 8, true)
		c := newCallQueue(r, time.Millisecond)
		for _, call := range calls {
			c.queue(call, 4000)
		}
		time.Sleep(500*time.Millisecond - time.Microsecond)
		counts = c.counts()
		c.wg.Wait()
	})
	return counts
}

func ratio(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < 0.85*want || got > 1.15*want {
		t.Errorf("%s is %.2f, not %.2f", what, got, want)
	}
}

func TestSharesFollowTheWeights(t *testing.T) {
	weights := map[string]int{"one": 1, "three": 3}
	for _, inBulk := range []bool{false, true} {
		one, three := bulkCall("one"), bulkCall("three")
		one.Bulk, three.Bulk = inBulk, inBulk
		n := sharesOf(t, Options{Weight: func(p string) int { return weights[p] }}, one, three)
		ratio(t, fmt.Sprintf("three to one, bulk %t", inBulk), float64(n["three"])/float64(n["one"]), 3)
	}
	n := sharesOf(t, Options{}, bulkCall("a"), bulkCall("b"))
	ratio(t, "a to b", float64(n["a"])/float64(n["b"]), 1)
}

func TestPriorityScalesBulkSharesAndNothingElse(t *testing.T) {
	high, low := bulkCall("high"), bulkCall("low")
	high.Priority, low.Priority = 10, -5
	n := sharesOf(t, Options{}, high, low)
	ratio(t, "priority 10 to -5", float64(n["high"])/float64(n["low"]), 8)

	high.Priority = 1000 // counts as 10
	n = sharesOf(t, Options{}, high, bulkCall("low"))
	ratio(t, "priority 10 to 0", float64(n["high"])/float64(n["low"]), 4)

	high.Bulk, low.Bulk = false, false
	n = sharesOf(t, Options{}, high, low)
	ratio(t, "interactive calls", float64(n["high"])/float64(n["low"]), 1)

	low.Bulk, low.Priority = true, -10
	all := []*schema.Call{low}
	for p := range 20 { // all get less than a slot per round
		c := bulkCall(fmt.Sprint(p))
		c.Priority = -10
		all = append(all, c)
	}
	n = sharesOf(t, Options{}, all...)
	ratio(t, "one of 21", float64(n["low"]), 4000*7/8/21)
}

func TestUsingManyPrioritiesDoesNotMultiplyTheShare(t *testing.T) {
	calls := []*schema.Call{bulkCall("plain")}
	for p := -10; p <= 10; p++ {
		c := bulkCall("clever")
		c.Priority = p
		calls = append(calls, c)
	}
	n := sharesOf(t, Options{}, calls...)
	if got := float64(n["clever"]) / float64(n["plain"]); got > 4 {
		t.Errorf("with 21 lines a principal has %.1f times the share of one with one; its highest priority alone is worth 4", got)
	}
}

// TestAFloodOfBulkCallsDoesNotDelayACaller uses a tool of 1 ms, with all slots under load, and one
// caller with one call at a time.
func TestAFloodOfBulkCallsDoesNotDelayACaller(t *testing.T) {
	const work = time.Millisecond
	for _, slots := range []int{1, 2, 16, 64} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoute(Options{})
			r.set("a", nil, slots, true)
			r.set("b", nil, slots, true)
			flood := newCallQueue(r, work)
			flood.queue(bulkCall("flood"), 200*slots*2)
			time.Sleep(10*time.Millisecond + 300*time.Microsecond) // not in step with the flood
			var times []time.Duration
			for i := range 100 {
				began := time.Now()
				l, err := r.acquire(t.Context(), &schema.Call{Principal: schema.Principal{Name: "flood"}}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(work)
				l.release(work, interactive)
				times = append(times, time.Since(began))
				time.Sleep(time.Duration(i%7) * 100 * time.Microsecond)
			}
			if worst := p99(times); worst > 2*work {
				t.Errorf("%d slots: p99 under the flood is %s, idle it is %s", slots, worst, work)
			}
			if load := r.load(); load.Waiting == 0 {
				t.Error("the flood was over too soon for the test to say anything")
			}
			flood.wg.Wait()
		})
	}
}

func TestBulkCallsLeaveSlotsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for slots, want := range map[int]int{1: 1, 2: 1, 16: 15, 32: 30, 100: 94} {
			r := newRoute(Options{})
			r.set("w", nil, slots, true)
			c := newCallQueue(r, time.Millisecond)
			c.queue(bulkCall("p"), 1000)
			if load := r.load(); load.InFlight != want || load.Bulk != 1000-want {
				t.Errorf("of %d slots bulk calls took %d, not %d", slots, load.InFlight, want)
			}
			c.wg.Wait()
		}
	})
}

func TestBulkCallsDoNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxQueue: 100_000, MaxWait: time.Hour})
		r.set("w", nil, 4, true)
		busy := newCallQueue(r, time.Millisecond)
		busy.queue(&schema.Call{Principal: schema.Principal{Name: "busy"}}, 8000)
		batch := newCallQueue(r, time.Millisecond)
		batch.queue(bulkCall("batch"), 1000)
		time.Sleep(time.Second - time.Microsecond)
		ratio(t, "the part of bulk calls", float64(batch.counts()["batch"])/4000, 1.0/bulkTurn)
		busy.wg.Wait()
		batch.wg.Wait()
	})
}

func TestABulkCallWaitsAsLongAsItsContextLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxWait: time.Second, MaxQueue: 1, WorkerWait: time.Second})
		r.set("w", nil, 1, true)
		l, err := r.acquire(t.Context(), bulkCall("p"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.pace.add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		for range 10 { // more than MaxQueue
			wg.Go(func() {
				began := time.Now()
				if _, err := r.acquire(ctx, bulkCall("p"), nil, nil); schema.KindOf(err) != schema.KindCanceled || time.Since(began) != time.Hour {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		}
		wg.Wait()
		l.release(0, bulk)
		r.drop("w") // no worker has the server, so the call waits for one
		time.AfterFunc(time.Minute, func() { r.set("later", nil, 1, true) })
		if l, err = r.acquire(t.Context(), bulkCall("p"), nil, nil); err != nil || l.worker != "later" {
			t.Errorf("got %v, %v", l, err)
		}
	})
}

func TestAFullQueueStillTakesCallsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{MaxQueue: 100, MaxWait: 10 * time.Second})
		r.set("w", nil, 1, true)
		r.pace.add(150 * time.Millisecond) // the waiting calls take 15 s
		c := newCallQueue(r, 150*time.Millisecond)
		c.queue(&schema.Call{Principal: schema.Principal{Name: "flood"}}, 101)
		if _, err := r.acquire(t.Context(), &schema.Call{Principal: schema.Principal{Name: "flood"}}, nil, nil); schema.KindOf(err) != schema.KindUnavailable {
			t.Errorf("one more of the flood: %v", err)
		}
		began := time.Now()
		l, err := r.acquire(t.Context(), &schema.Call{Principal: schema.Principal{Name: "other"}}, nil, nil)
		if err != nil || time.Since(began) > time.Second {
			t.Fatalf("another principal, after %s: %v", time.Since(began), err)
		}
		l.release(0, interactive)
		c.wg.Wait()
	})
}

func TestCallAvoidingAWorkerBlocksNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("a", nil, 1, true)
		r.set("b", nil, 1, true)
		c := newCallQueue(r, time.Millisecond)
		c.queue(&schema.Call{}, 2)
		blocker := r.lanes[0]
		var wg sync.WaitGroup
		order := make(chan schema.WorkerID, 2)
		wg.Go(func() {
			l, err := r.acquire(t.Context(), one, map[schema.WorkerID]bool{"b": true}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			order <- l.worker
			l.release(0, interactive)
		})
		synctest.Wait()
		// "a" has no free slot while the plain call waits.
		r.mu.Lock()
		blocker.inFlight++
		r.mu.Unlock()
		wg.Go(func() {
			l, err := r.acquire(t.Context(), one, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			order <- l.worker
			blocker.release(0, interactive)
			l.release(0, interactive)
		})
		wg.Wait()
		if first, second := <-order, <-order; first != "b" || second != "a" {
			t.Errorf("they ran on %s, then %s", first, second)
		}
		c.wg.Wait()
	})
}

func TestEmptyQueuesAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoute(Options{})
		r.set("w", nil, 1, true)
		l, _ := r.acquire(t.Context(), one, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 50 {
			call := bulkCall(fmt.Sprint(i % 7))
			call.Bulk, call.Priority = i%2 == 0, i%3
			wg.Go(func() {
				if l, err := r.acquire(ctx, call, nil, nil); err == nil {
					time.Sleep(time.Millisecond)
					l.release(0, kindOf(call))
				}
			})
		}
		synctest.Wait()
		l.release(0, interactive)
		time.Sleep(20 * time.Millisecond)
		cancel() // some had their turn, the others stop waiting
		wg.Wait()
		for k := range r.waiting.kinds {
			if c := &r.waiting.kinds[k]; c.n != 0 || len(c.lines) != 0 || len(c.shares) != 0 || c.at != nil || len(c.tenants) != 0 || c.picky.n != 0 {
				t.Errorf("kind %d keeps %+v", k, c)
			}
		}
		if r.waiting.owed != 0 {
			t.Errorf("bulk calls that do not exist are owed %d turns", r.waiting.owed)
		}
	})
}
