package quota

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
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

func TestATenantBorrowsWhatOthersLeaveUnusedAndNoMoreThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := alone(t, Options{Tenants: parts{"red": {Nominal: 5, Borrow: 3}, "blue": {Nominal: 2, Borrow: 100}, "guests": {Borrow: 4}, "free": {Weight: 7}}})
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
		wide := alone(t, Options{Tenants: parts{"red": {Nominal: 5, Borrow: 3}, "default": {Nominal: 20}}})
		has(t, "borrow", takes(t, wide, "red", 100), 8)
		has(t, "nominal of the default tenant", takes(t, wide, "", 100), 17)
		time.Sleep(claimFor)
	})
}

// recalls has n calls of the tenant enter at once, and counts them when they are in.
func recalls(t *testing.T, q *Quota, tenant schema.TenantID, n int) (in, refused *atomic.Int64, done *sync.WaitGroup) {
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

// TestATenantHasItsNominalWithinTheLengthOfOneCall has another one borrow all of it, and
// want more all the time.
func TestATenantHasItsNominalWithinTheLengthOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 300 * time.Millisecond
		q := alone(t, Options{Tenants: parts{"red": {Nominal: 2, Borrow: 10}, "blue": {Nominal: 10}}})
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
		in, refused, done := recalls(t, q, "blue", 15)
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

func TestACallThatWaitsForWhatWasLentEndsWithItsCallerOrAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := alone(t, Options{Tenants: parts{"red": {Nominal: 1, Borrow: 2}, "blue": {Nominal: 2}}})
		red := takes(t, q, "red", 3)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Enter(ctx, of("blue")); schema.KindOf(err) != schema.KindCanceled || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		began = time.Now()
		_, err := q.Enter(t.Context(), of("blue"))
		if refusedWith(t, err, schema.KindQuota); time.Since(began) != patience || !strings.Contains(err.Error(), `limits.nominal of tenant "blue"`) || !strings.Contains(err.Error(), "still use") {
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
		q := alone(t, Options{Tenants: parts{"red": {Nominal: 8, Borrow: 8}, "blue": {Nominal: 8}}})
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
		q := alone(t, Options{Tenants: parts{"one": {Nominal: 10, Borrow: 100}, "three": {Nominal: 10, Borrow: 100, Weight: 3}, "idle": {Nominal: 80}}})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var in [2]atomic.Int64
		flood := func(i int, tenant schema.TenantID, callers int) {
			for range callers {
				all.Go(func() {
					for ctx.Err() == nil {
						if pass, err := q.Enter(ctx, of(tenant)); err == nil {
							in[i].Add(1)
							time.Sleep(10 * time.Millisecond)
							pass.Leave()
						}
						time.Sleep(3 * time.Millisecond)
					}
				})
			}
		}
		flood(0, "one", 130)
		time.Sleep(time.Second)
		if n := q.cohort.members["one"].used.Load(); n < 90 {
			t.Errorf("alone it has %d of 100", n)
		}
		flood(1, "three", 130)
		time.Sleep(time.Second)
		in[0].Store(0)
		in[1].Store(0)
		time.Sleep(2 * time.Second)
		got := float64(in[1].Load()) / float64(in[0].Load())
		if want := 70.0 / 30; got < 0.9*want || got > 1.1*want {
			t.Errorf("three to one is %.2f, not %.2f", got, want)
		}
		cancel()
		all.Wait()
	})
}

// TestWhateverTenantsDoTheirLimitsHold has them come and go at random.
func TestWhateverTenantsDoTheirLimitsHold(t *testing.T) {
	limits := parts{"a": {Nominal: 7, Borrow: 5}, "b": {Nominal: 3, Borrow: 20, Weight: 2}, "c": {Nominal: 10}, "d": {Borrow: 6}}
	synctest.Test(t, func(t *testing.T) {
		q := alone(t, Options{Tenants: limits})
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

func TestWithoutRedisEachFrontDoorHasItsShareOfTheTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := alone(t, Options{Tenants: parts{"red": {Nominal: 9, Borrow: 4}, "blue": {Nominal: 20}}, Routers: func() int { return 2 }})
		has(t, "red", takes(t, q, "red", 100), 6)
		has(t, "blue", takes(t, q, "blue", 100), 8)
		time.Sleep(claimFor)
	})
}

func TestACallOfALimitedTenantAllocatesNothing(t *testing.T) {
	q := alone(t, Options{Tenants: parts{"red": {Nominal: 10}, "blue": {Nominal: 10, Borrow: 1}}})
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

// quietly returns the 99th percentile of the time from the request to the end of the calls
// of one tenant, and the part of the calls that is its own, while another one asks that many
// times as much.
func quietly(t *testing.T, times int, limits parts) (worst time.Duration, part float64) {
	synctest.Test(t, func(t *testing.T) {
		const length, asked = 50 * time.Millisecond, 100 // calls a second, a quarter of the slots
		q := alone(t, Options{Tenants: limits})
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

// TestATenantAtTenTimesTheLoadDelaysNoOtherWithItsOwnSlots has one tenant ask ten times of
// what another asks, and borrow of it.
func TestATenantAtTenTimesTheLoadDelaysNoOtherWithItsOwnSlots(t *testing.T) {
	limits := parts{"quiet": {Nominal: 10}, "flood": {Nominal: 10, Borrow: 10}}
	like, _ := quietly(t, 1, limits)
	worst, part := quietly(t, 10, limits)
	if worst > like*3/2 || part < 0.9 {
		t.Errorf("p99 is %s next to ten times the load, and %s next to the same; %.0f %% of its calls ran", worst, like, part*100)
	}
	// The figure says something only if without limits it would be missed by far.
	if worst, _ := quietly(t, 10, nil); worst < 3*like {
		t.Errorf("without limits p99 is %s: the test proves nothing", worst)
	}
}

// tenantDoor opens the limits of one of several front doors at a Redis.
func tenantDoor(t testing.TB, s *confirmtest.Redis, name string, limits parts) *Quota {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Address, DisableIdentity: true, ContextTimeoutEnabled: true})
	q := Open(Options{Tenants: limits, Redis: client, Door: name, Routers: func() int { return 2 }, Renew: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = client.Close() })
	t.Cleanup(q.Close)
	return q
}

func TestTwoFrontDoorsShareThePartsOfTenants(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"red": {Nominal: 10, Borrow: 10}, "blue": {Nominal: 10}, "other": {Nominal: 1}}
	a, b := tenantDoor(t, s, "a", limits), tenantDoor(t, s, "b", limits)
	red := takes(t, a, "red", 100)
	has(t, "red at one", red, 20)
	has(t, "red at the other", takes(t, b, "red", 1), 0)
	has(t, "another tenant", takes(t, b, "other", 2), 1)

	in, refused, done := recalls(t, b, "blue", 12)
	confirmtest.Wait(t, func() bool { return refused.Load() == 2 })
	for i, pass := range red[10:] {
		pass.Leave()
		confirmtest.Wait(t, func() bool { return in.Load() == int64(i+1) })
		has(t, "red, which has its nominal", takes(t, a, "red", 1), 0)
	}
	done.Wait()
	if in.Load() != 10 || refused.Load() != 2 {
		t.Errorf("%d calls of blue, %d refused", in.Load(), refused.Load())
	}
	leaveAll(red[:10])
	confirmtest.Wait(t, func() bool {
		passes := takes(t, b, "red", 100)
		defer leaveAll(passes)
		return len(passes) == 10 // blue uses its own
	})
}

// TestATenantHasItsNominalNextToAFloodAtAnotherFrontDoor has a tenant take again at once what
// ends, at one front door, of the calls that another one wants back at the other.
func TestATenantHasItsNominalNextToAFloodAtAnotherFrontDoor(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"red": {Nominal: 5, Borrow: 15}, "blue": {Nominal: 15}}
	a, b := tenantDoor(t, s, "a", limits), tenantDoor(t, s, "b", limits)
	ctx, cancel := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range 40 {
		flood.Go(func() {
			for ctx.Err() == nil {
				if pass, err := a.Wait(ctx, of("red"), "s", true); err == nil {
					hold(ctx, 20*time.Millisecond)
					pass.Leave()
				}
			}
		})
	}
	confirmtest.Wait(t, func() bool { return a.cohort.members["red"].used.Load() >= 17 })
	began := time.Now()
	in, refused, done := recalls(t, b, "blue", 15)
	confirmtest.Wait(t, func() bool { return in.Load()+refused.Load() == 15 })
	// A call of 20 ms and a renewal of 100 ms, and a machine that is busy.
	if took := time.Since(began); refused.Load() > 0 || took > 4*time.Second {
		t.Errorf("%d calls of blue are in after %s, %d were refused", in.Load(), took, refused.Load())
	}
	confirmtest.Wait(t, func() bool { return a.cohort.members["red"].used.Load() <= 5 })
	cancel()
	flood.Wait()
	done.Wait()
}

func hold(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func TestAFrontDoorWithOtherLimitsOfTenantsTakesNoMoreThanTheLargerPart(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	before := tenantDoor(t, s, "before", parts{"red": {Nominal: 10}, "blue": {Nominal: 10, Borrow: 20}})
	red := takes(t, before, "red", 100)
	has(t, "red before", red, 10)
	after := tenantDoor(t, s, "after", parts{"red": {Nominal: 4}, "blue": {Nominal: 12, Borrow: 4}})
	has(t, "red after", takes(t, after, "red", 100), 0)
	has(t, "blue after", takes(t, after, "blue", 100), 6) // 16, and red has 10 of them
	before.Close()
	leaveAll(red)
	var more []Pass
	confirmtest.Wait(t, func() bool {
		more = append(more, takes(t, after, "red", 100)...)
		return len(more) == 4
	})
}

func TestPartsOfTenantsOutliveRedis(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	a := tenantDoor(t, s, "a", parts{"red": {Nominal: 10, Borrow: 4}, "blue": {Nominal: 10}})
	red := takes(t, a, "red", 100)
	has(t, "red", red, 14)
	s.Kill()
	has(t, "blue, while red has more than is left of both", takes(t, a, "blue", 100), 0)
	leaveAll(red)
	has(t, "blue of one of two", takes(t, a, "blue", 100), 5)
	has(t, "red of one of two", takes(t, a, "red", 100), 5)
}

// TestTheScriptOfTenantsCountsAsThePackageDoes compares what one front door may take with
// and without Redis, after the same random history.
func TestTheScriptOfTenantsCountsAsThePackageDoes(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"a": {Nominal: 7, Borrow: 5}, "b": {Nominal: 3, Borrow: 20, Weight: 2}, "c": {Nominal: 10}, "d": {Borrow: 6}}
	names := []schema.TenantID{"a", "b", "c", "d"}
	for seed := range uint64(40) {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		client := redis.NewClient(&redis.Options{Addr: s.Address, DisableIdentity: true})
		remote := newShared(client, "door", time.Minute, slog.New(slog.DiscardHandler))
		p := newCohort(&Quota{}, limits)
		used, story := map[schema.TenantID]int{}, ""
		for range 60 {
			id, c := names[random.IntN(4)], class(random.IntN(2))
			m, want := p.members[id], used[id]+1
			if random.IntN(4) == 0 && used[id] > 0 { // one ends, and the renewal tells it
				used[id]--
				m.used.Add(-1)
				m.short, want = time.Time{}, used[id]
				if _, err := remote.leasePart(m, used[id], want, interactive); err != nil {
					t.Fatal(err)
				}
				continue
			}
			l, err := remote.leasePart(m, used[id], want, c)
			if err != nil {
				t.Fatal(err)
			}
			m.short = time.Time{}
			ok := p.take(m, time.Now(), c, 1)
			if ok {
				used[id]++
			}
			if story += fmt.Sprintf("%s/%d:%t ", id, c, ok); ok != (l.granted >= want) {
				t.Fatalf("seed %d: %s, with Redis %d of %d are granted", seed, story, l.granted, want)
			}
		}
		_ = client.Close()
	}
}
