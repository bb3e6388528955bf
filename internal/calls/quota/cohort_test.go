package quota

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

type parts = map[schema.TenantID]settings.TenantLimits

func of(tenant schema.TenantID) *schema.Principal {
	return &schema.Principal{Name: "p of " + string(tenant), Tenant: tenant}
}

// takes takes slots of the tenant until it is refused, or has to wait.
func takes(t testing.TB, q *Quota, tenant schema.TenantID, most int) (passes []Pass) {
	t.Helper()
	for range most {
		pass, refused, _ := q.admit(t.Context(), of(tenant), "", interactive, false)
		if refused != nil {
			break
		}
		passes = append(passes, pass)
	}
	return passes
}

func has(t testing.TB, what string, passes []Pass, want int) {
	t.Helper()
	if len(passes) != want {
		t.Errorf("%s: %d slots, want %d", what, len(passes), want)
	}
}

func TestTenantBorrowsUnusedCapacityUpToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 5, Borrow: 3}, "blue": {Nominal: 2, Borrow: 100}, "guests": {Borrow: 4}, "free": {Weight: 7}}})
		red := takes(t, q, "red", 100)
		has(t, "nominal and borrow", red, 7) // 3 more, and blue has 2
		has(t, "guests of what is not left", takes(t, q, "guests", 100), 0)
		leaveAll(red[:3])
		has(t, "guests, while red claims its own", takes(t, q, "guests", 100), 2)
		time.Sleep(claimFor)
		has(t, "guests later", takes(t, q, "guests", 100), 1)
		time.Sleep(claimFor)
		has(t, "blue of what it has lent", takes(t, q, "blue", 100), 0)
		for _, tenant := range []schema.TenantID{"free", "", "other"} {
			if by := q.limiting(of(tenant), ""); by != (Pass{}) {
				t.Errorf("%q is limited by %+v", tenant, by)
			}
		}
		wide := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 5, Borrow: 3}, "default": {Nominal: 20}}})
		has(t, "borrow", takes(t, wide, "red", 100), 8)
		has(t, "nominal of the default tenant", takes(t, wide, "", 100), 17)
		time.Sleep(claimFor)
	})
}

// enterConcurrently has n calls of the tenant enter at once, and counts them when they are in.
func enterConcurrently(t *testing.T, q *Quota, tenant schema.TenantID, n int) (in, refused *atomic.Int64, done *sync.WaitGroup) {
	in, refused, done = new(atomic.Int64), new(atomic.Int64), new(sync.WaitGroup)
	for range n {
		done.Go(func() {
			if _, err := q.Enter(t.Context(), of(tenant)); err == nil {
				in.Add(1)
			} else if refusedWith(t, err, schema.KindQuota) > 0 {
				refused.Add(1)
			}
		})
	}
	return in, refused, done
}

// inFlight is the calls of all tenants with limits. Nobody takes a slot while it counts.
func inFlight(q *Quota) (sum int64) {
	q.cohort.mu.Lock()
	defer q.cohort.mu.Unlock()
	for _, m := range q.cohort.members {
		sum += m.used.Load()
	}
	return sum
}

func raise(most *atomic.Int64, n int64) {
	for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
	}
}

// TestTenantReclaimsItsNominalWithinOneCall has another one borrow all of it, and
// want more all the time.
func TestTenantReclaimsItsNominalWithinOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 300 * time.Millisecond
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 2, Borrow: 10}, "blue": {Nominal: 10}}})
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		var most atomic.Int64
		for i := range 100 {
			flood.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for ctx.Err() == nil {
					pass, err := q.Enter(ctx, of("red"))
					if i%2 == 0 && err != nil {
						pass, err = q.Wait(ctx, of("red"), schema.ServerID(strings.Repeat("s", i)), true)
					}
					if err == nil {
						raise(&most, inFlight(q))
						time.Sleep(length)
						pass.Leave()
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		time.Sleep(2 * time.Second)
		if n := inFlight(q); n < 11 {
			t.Errorf("red has %d", n)
		}
		began := time.Now()
		in, refused, done := enterConcurrently(t, q, "blue", 15)
		done.Wait()
		if took := time.Since(began); in.Load() != 10 || refused.Load() != 5 || took > length+time.Millisecond {
			t.Errorf("%d calls of blue after %s, %d refused", in.Load(), took, refused.Load())
		}
		if most.Load() != 12 {
			t.Errorf("%d calls at once, of 12", most.Load())
		}
		cancel()
		flood.Wait()
	})
}

func TestWaitForLentCapacityEndsWithCallerOrTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 1, Borrow: 2}, "blue": {Nominal: 2}}})
		red := takes(t, q, "red", 3)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Enter(ctx, of("blue")); schema.KindOf(err) != schema.KindCanceled || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		began = time.Now()
		_, err := q.Enter(t.Context(), of("blue"))
		if refusedWith(t, err, schema.KindQuota); time.Since(began) != interactiveWait || !strings.Contains(err.Error(), `limits.nominal of tenant "blue"`) || !strings.Contains(err.Error(), "still use") {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		leaveAll(red)
		blue := takes(t, q, "blue", 3)
		has(t, "blue", blue, 2)
		_, err = q.Enter(t.Context(), of("blue"))
		if refusedWith(t, err, schema.KindQuota); !strings.Contains(err.Error(), "limits.borrow") {
			t.Error(err)
		}
		if len(q.lines) != 0 {
			t.Errorf("%d lines are left", len(q.lines))
		}
		time.Sleep(claimFor)
	})
}

func TestBulkCallsOfATenantWaitAndLeaveASlotToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 8, Borrow: 8}, "blue": {Nominal: 8}}})
		blue := takes(t, q, "blue", 4)
		var done, now, most atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				pass, err := q.Wait(t.Context(), of("red"), "s", true)
				if err != nil {
					t.Error(err)
					return
				}
				raise(&most, now.Add(1))
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
				pass.Leave()
				done.Add(1)
			})
		}
		time.Sleep(5 * time.Millisecond)
		single, err := q.Enter(t.Context(), of("red"))
		if err != nil {
			t.Fatal(err)
		}
		single.Leave()
		all.Wait()
		if done.Load() != 100 || most.Load() != 11 {
			t.Errorf("%d of 100 done, at most %d of 12 at once", done.Load(), most.Load())
		}
		leaveAll(blue)
		if !q.Limits(of("red"), "s") || q.Limits(of("free"), "s") {
			t.Error("which calls can have to wait")
		}
	})
}

// TestTenantsThatBorrowShareByWeight has two of them want all that a third leaves unused.
func TestTenantsThatBorrowShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"one": {Nominal: 5, Borrow: 100}, "three": {Nominal: 5, Borrow: 100, Weight: 3}, "idle": {Nominal: 40}}})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var in [2]atomic.Int64
		var most atomic.Int64
		flood := func(i int, tenant schema.TenantID, callers int) {
			for range callers {
				all.Go(func() {
					for ctx.Err() == nil {
						if pass, err := q.Enter(ctx, of(tenant)); err == nil {
							in[i].Add(1)
							raise(&most, q.cohort.members[tenant].used.Load())
							time.Sleep(10 * time.Millisecond)
							pass.Leave()
						}
						time.Sleep(3 * time.Millisecond)
					}
				})
			}
		}
		flood(0, "one", 65)
		time.Sleep(time.Second)
		if most.Load() != 50 {
			t.Errorf("alone it has %d of 50", most.Load())
		}
		flood(1, "three", 65)
		time.Sleep(time.Second)
		in[0].Store(0)
		in[1].Store(0)
		time.Sleep(2 * time.Second)
		got := float64(in[1].Load()) / float64(in[0].Load())
		if want := 35.0 / 15; got < 0.9*want || got > 1.1*want {
			t.Errorf("three to one is %.2f, not %.2f", got, want)
		}
		cancel()
		all.Wait()
	})
}

// TestTenantLimitsHoldUnderRandomLoad has them come and go at random.
func TestTenantLimitsHoldUnderRandomLoad(t *testing.T) {
	limits := parts{"a": {Nominal: 7, Borrow: 5}, "b": {Nominal: 3, Borrow: 20, Weight: 2}, "c": {Nominal: 10}, "d": {Borrow: 6}}
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: limits})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i, tenant := range []schema.TenantID{"a", "b", "c", "d"} {
			for n := range 30 {
				random := rand.New(rand.NewPCG(uint64(i), uint64(n)))
				all.Go(func() {
					for ctx.Err() == nil {
						if pass, err := q.Enter(ctx, of(tenant)); err == nil {
							time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
							pass.Leave()
						}
						if random.IntN(100) == 0 {
							time.Sleep(2 * time.Second)
						}
						time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
					}
				})
			}
		}
		var most int64
		for range 30_000 {
			time.Sleep(time.Millisecond)
			for id, m := range q.cohort.members {
				if n := m.used.Load(); n > int64(limits[id].Nominal+limits[id].Borrow) {
					t.Errorf("%s has %d", id, n)
				}
			}
			most = max(most, inFlight(q))
		}
		if most != 20 {
			t.Errorf("%d at once, of 20", most)
		}
		cancel()
		all.Wait()
		for id, m := range q.cohort.members {
			if m.used.Load() != 0 || m.recalls.Load() != 0 || m.subject.slots.used != 0 {
				t.Errorf("%s keeps %d, %d wait", id, m.used.Load(), m.recalls.Load())
			}
		}
	})
}

func TestWithoutRedisTenantCapacityIsSplitByFrontDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 9, Borrow: 4}, "blue": {Nominal: 20}}, Routers: func() int { return 2 }})
		has(t, "red", takes(t, q, "red", 100), 6)
		has(t, "blue", takes(t, q, "blue", 100), 8)
		time.Sleep(claimFor)
	})
}

func TestACallOfALimitedTenantAllocatesNothing(t *testing.T) {
	q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 10}, "blue": {Nominal: 10, Borrow: 1}}})
	who, ctx := of("red"), t.Context()
	if allocs := testing.AllocsPerRun(1000, func() {
		pass, err := q.Enter(ctx, who)
		if err != nil {
			t.Error(err)
		}
		pass.Leave()
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// latencyWithFlood returns the 99th percentile of the time from the request to the end of the calls
// of one tenant, and the part of the calls that is its own, while another one asks that many
// times as much.
func latencyWithFlood(t *testing.T, times int, limits parts) (worst time.Duration, part float64) {
	synctest.Test(t, func(t *testing.T) {
		const length, asked = 50 * time.Millisecond, 100 // calls a second, a quarter of the slots
		q := openWithoutRedis(t, Options{Tenants: limits})
		slots := make(chan struct{}, 20) // of the servers
		var mu sync.Mutex
		var took []time.Duration
		var all sync.WaitGroup
		var ended [2]int
		call := func(i int, tenant schema.TenantID) {
			all.Go(func() {
				began := time.Now()
				pass, err := q.Enter(t.Context(), of(tenant))
				if err != nil {
					return
				}
				slots <- struct{}{}
				time.Sleep(length)
				<-slots
				pass.Leave()
				mu.Lock()
				defer mu.Unlock()
				ended[i]++
				if i == 0 {
					took = append(took, time.Since(began))
				}
			})
		}
		for n := range 10 * asked {
			call(0, "quiet")
			for range times {
				call(1, "flood")
				time.Sleep(time.Second / asked / time.Duration(times+1))
			}
			time.Sleep(time.Second/asked/time.Duration(times+1) + time.Duration(n%3)*time.Millisecond/10)
		}
		all.Wait()
		slices.Sort(took)
		worst, part = took[len(took)*99/100], float64(ended[0])/float64(10*asked)
	})
	return worst, part
}

// TestOverloadedTenantDoesNotDelayOthers has one tenant ask ten times of
// what another asks, and borrow of it.
func TestOverloadedTenantDoesNotDelayOthers(t *testing.T) {
	limits := parts{"quiet": {Nominal: 10}, "flood": {Nominal: 10, Borrow: 10}}
	like, _ := latencyWithFlood(t, 1, limits)
	worst, part := latencyWithFlood(t, 10, limits)
	if worst > like*3/2 || part < 0.9 {
		t.Errorf("p99 is %s next to ten times the load, and %s next to the same; %.0f %% of its calls ran", worst, like, part*100)
	}
	// The figure says something only if without limits it would be missed by far.
	if worst, _ := latencyWithFlood(t, 10, nil); worst < 3*like {
		t.Errorf("without limits p99 is %s: the test proves nothing", worst)
	}
}
