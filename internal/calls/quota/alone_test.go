package quota

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func TestWithoutLimitsQuotaIsNil(t *testing.T) {
	q := Open(Options{Rules: settings.Limits{Principals: []settings.PrincipalRule{{Names: []string{"a"}}}}})
	if q != nil {
		t.Fatal("a Quota without a limit")
	}
	ctx := t.Context()
	allocs := testing.AllocsPerRun(100, func() {
		a, errA := q.Enter(ctx, ci)
		b, errB := q.Serve(ctx, "s")
		c, errC := q.Wait(ctx, ci, "s", true)
		if errA != nil || errB != nil || errC != nil || q.Accept(ci, 1000, 1000) != nil || q.Batches(ci) != 0 || q.Space(ci, 1) != math.MaxInt || q.Queues(ci) {
			t.Error("refused")
		}
		a.Leave()
		b.Leave()
		c.Leave()
		q.Queued(ci, 1)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
	q.Close()
}

func TestACallWithinItsLimitsAllocatesNothing(t *testing.T) {
	q := openWithoutRedis(t, Options{Rules: settings.Limits{Principals: []settings.PrincipalRule{{Names: []string{"x*"}}, {Names: []string{"c*"}, Rate: 1e6, Burst: 1e6, InFlight: 10}}, Servers: []settings.ServerRule{{InFlight: 10}}}})
	ctx := t.Context()
	if allocs := testing.AllocsPerRun(1000, func() {
		a, errA := q.Enter(ctx, ci)
		b, errB := q.Serve(ctx, "s")
		if errA != nil || errB != nil {
			t.Error(errA, errB)
		}
		b.Leave()
		a.Leave()
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestOverloadIsAdmittedAtExactlyTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Rate: 100, Burst: 20})})
		admitted, refused := 0, 0
		for range 60 * 300 {
			if pass, err := q.Enter(t.Context(), ci); err == nil {
				pass.Leave()
				admitted++
			} else if wait := refusedWith(t, err, schema.KindQuota); wait > 10*time.Millisecond {
				t.Fatalf("come back after %s", wait)
			} else {
				refused++
			}
			time.Sleep(time.Second / 300)
		}
		if want := 60*100 + 20; admitted < want-2 || admitted > want+1 || refused == 0 {
			t.Errorf("%d admitted, want %d; %d refused", admitted, want, refused)
		}
	})
}

func TestRetryAfterTheReportedWaitIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Rate: 0.1, Burst: 1})})
		enter(t, q).Leave()
		for range 5 {
			_, err := q.Enter(t.Context(), ci)
			wait := refusedWith(t, err, schema.KindQuota)
			time.Sleep(wait - time.Millisecond)
			if _, err := q.Enter(t.Context(), ci); err == nil {
				t.Fatal("admitted too early")
			}
			time.Sleep(time.Millisecond)
			enter(t, q).Leave()
		}
	})
}

func TestABatchWaitsForItsRateAndYieldsToSingleCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Rate: 50, Burst: 50, InFlight: 1000})})
		ctx, cancel := context.WithCancel(t.Context())
		var lines sync.WaitGroup
		var sent atomic.Int64
		for range 512 {
			lines.Go(func() {
				for {
					pass, err := q.Wait(ctx, ci, "s", true)
					if err != nil {
						if schema.KindOf(err) != schema.KindCanceled {
							t.Error(err)
						}
						return
					}
					sent.Add(1)
					pass.Leave()
				}
			})
		}
		began := time.Now()
		singles := 0
		for time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
			enter(t, q).Leave() // never refused
			singles++
		}
		cancel()
		lines.Wait()
		if all := int(sent.Load()) + singles; all < 60*50 || all > 60*50+55 {
			t.Errorf("%d lines and %d single calls in a minute", sent.Load(), singles)
		}
	})
}

func TestBulkCallsNeverTakeTheLastSlotsAndAllOfThemRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{InFlight: 16})})
		var now, most, done atomic.Int64
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				pass, err := q.Wait(t.Context(), ci, "s", true)
				if err != nil {
					t.Error(err)
					return
				}
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
				pass.Leave()
				done.Add(1)
			})
		}
		time.Sleep(5 * time.Millisecond)
		single := enter(t, q)
		if _, err := q.Enter(t.Context(), ci); refusedWith(t, err, schema.KindQuota) != time.Second {
			t.Error(err)
		}
		single.Leave()
		began := time.Now()
		all.Wait()
		if most.Load() != 15 || done.Load() != 200 {
			t.Errorf("at most %d of 15 at once, %d of 200 done", most.Load(), done.Load())
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("it took %s: slots were free and not used", took)
		}
	})
}

func TestServerOverItsLimitIsUnavailableAndNotQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: settings.Limits{Servers: []settings.ServerRule{{Servers: []string{"slow*"}, InFlight: 2}, {Servers: []string{"paced"}, Rate: 1}}}})
		for range 5 { // whoever asks, and for whatever else
			if _, err := q.Enter(t.Context(), ci); err != nil {
				t.Fatal(err)
			}
			if _, err := q.Serve(t.Context(), "fast"); err != nil {
				t.Fatal(err)
			}
		}
		one, err1 := q.Serve(t.Context(), "slow-1")
		_, err2 := q.Serve(t.Context(), "slow-1")
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		_, err := q.Serve(t.Context(), "slow-1")
		refusedWith(t, err, schema.KindUnavailable)
		one.Leave()
		if _, err := q.Serve(t.Context(), "slow-1"); err != nil {
			t.Error(err)
		}
		if _, err := q.Serve(t.Context(), "paced"); err != nil {
			t.Error(err)
		}
		_, err = q.Serve(t.Context(), "paced")
		if wait := refusedWith(t, err, schema.KindUnavailable); wait != time.Second {
			t.Error(wait)
		}
	})
}

func TestWaitForAServerHoldsNoPrincipalSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Rules: settings.Limits{Principals: []settings.PrincipalRule{{Rate: 10, Burst: 1, InFlight: 2}}, Servers: []settings.ServerRule{{Servers: []string{"slow"}, InFlight: 1}}}})
		busy, err := q.Wait(t.Context(), ci, "slow", false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.Wait(ctx, ci, "slow", false)
			ended <- err
		}()
		time.Sleep(150 * time.Millisecond) // it waits now, and there is a call's worth of rate
		synctest.Wait()
		enter(t, q).Leave()
		busy.Leave()
		time.Sleep(100 * time.Millisecond)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cancel()
	})
}

func TestWaitEndsWithContextOrAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{InFlight: 1})
		pass := enter(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := q.Wait(ctx, ci, "s", true); schema.KindOf(err) != schema.KindCanceled {
					t.Error(err)
				}
			})
			all.Go(func() {
				began := time.Now()
				_, err := q.Wait(t.Context(), ci, "s", false)
				if refusedWith(t, err, schema.KindQuota); time.Since(began) != interactiveWait {
					t.Errorf("it waited %s", time.Since(began))
				}
			})
		}
		all.Wait()
		pass.Leave()
		if len(q.lines) != 0 {
			t.Errorf("%d lines are left", len(q.lines))
		}
		enter(t, q).Leave()
	})
}

func TestWithoutRedisEachFrontDoorTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doors := atomic.Int64{}
		doors.Store(2)
		q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{InFlight: 9, Queued: 10}), Routers: func() int { return int(doors.Load()) }})
		if n := len(takeAll(q, 100)); n != 4 {
			t.Errorf("%d of 9 at one of two front doors", n)
		}
		q.Queued(ci, 3)
		if space := q.Space(ci, 2); space != 2 {
			t.Errorf("room for %d", space)
		}
		doors.Store(1)
		time.Sleep(time.Second)
		if n := len(takeAll(q, 100)); n != 5 {
			t.Errorf("%d more when it is alone", n)
		}
	})
}

func TestCombinedRateOfFrontDoorsIsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admitted := 0
		var doors []*Quota
		for range 3 {
			doors = append(doors, openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Rate: 90}), Routers: func() int { return 3 }}))
		}
		for range 10 * 1000 {
			for _, q := range doors {
				if pass, err := q.Enter(t.Context(), ci); err == nil {
					pass.Leave()
					admitted++
				}
			}
			time.Sleep(time.Millisecond)
		}
		if want := 10*90 + 90; admitted < want-5 || admitted > want {
			t.Errorf("%d admitted, want %d", admitted, want)
		}
	})
}

func TestLimitsDependOnTheGroupsOfTheSignIn(t *testing.T) {
	q := openWithoutRedis(t, Options{Rules: settings.Limits{Principals: []settings.PrincipalRule{{Groups: []string{"dev"}, InFlight: 1}, {Groups: []string{"ops"}, InFlight: 3}}}})
	first := enter(t, q)
	ops := &schema.Principal{Name: ci.Name, Groups: []string{"ops"}}
	for i := range 3 {
		if _, err := q.Enter(t.Context(), ops); (err == nil) != (i < 2) {
			t.Errorf("call %d of ops: %v", i, err)
		}
	}
	if pass, err := q.Enter(t.Context(), &schema.Principal{Name: ci.Name}); err != nil || pass.principal != nil {
		t.Errorf("in no group: %v", err)
	}
	first.Leave()
}

func TestIdlePrincipalsAreEvictedAndAdmittedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{InFlight: 2})
		known := func() (n int) {
			q.byPrincipal.Range(func(any, any) bool { n++; return true })
			return n
		}
		pass := enter(t, q)
		old := q.principal(ci)
		time.Sleep(time.Hour)
		if known() != 1 {
			t.Error("forgotten with a call under way")
		}
		pass.Leave()
		time.Sleep(forgetAfter + 2*forgetEvery)
		if known() != 0 {
			t.Error("not forgotten")
		}
		if v := old.try(t.Context(), interactive, false); !v.gone {
			t.Error("who was forgotten still gives room")
		}
		if n := len(takeAll(q, 10)); n != 2 {
			t.Errorf("%d of 2", n)
		}
	})
}

func TestQueueLimitIsCheckedBeforeAccepting(t *testing.T) {
	q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Queued: 10, Batches: 2})})
	if !q.Queues(ci) || q.Queues(&schema.Principal{}) != true {
		t.Error("nothing is counted")
	}
	q.Queued(ci, 4)
	if err := q.Accept(ci, 3, 3); err != nil || q.Space(ci, 3) != 3 {
		t.Errorf("%v, room for %d", err, q.Space(ci, 3))
	}
	refusedWith(t, q.Accept(ci, 4, 3), schema.KindQuota)
	q.Queued(ci, -4)
	if err := q.Accept(ci, 4, 3); err != nil {
		t.Error(err)
	}
	if e := schema.AsError(q.Accept(ci, 11, 0)); e == nil || e.Kind != schema.KindQuota || e.Retryable {
		t.Errorf("more than may ever wait: %+v", e)
	}
	if n := q.Batches(ci); n != 2 {
		t.Errorf("%d batches", n)
	}
	if pass, err := q.Enter(t.Context(), ci); err != nil || pass.principal != nil {
		t.Errorf("single calls are not limited: %v", err)
	}
}

func BenchmarkEnterAndLeave(b *testing.B) {
	q := openWithoutRedis(b, Options{Rules: settings.Limits{Principals: []settings.PrincipalRule{{Rate: 1e6, Burst: 1e9, InFlight: 1000}}, Servers: []settings.ServerRule{{InFlight: 1000}}}})
	b.ReportAllocs()
	for b.Loop() {
		pass, err := q.Enter(b.Context(), ci)
		if err != nil {
			b.Fatal(err)
		}
		at, err := q.Serve(b.Context(), "s")
		if err != nil {
			b.Fatal(err)
		}
		at.Leave()
		pass.Leave()
	}
}

func TestHeldCallsCountAsQueued(t *testing.T) {
	q := openWithoutRedis(t, Options{Rules: forAll(settings.PrincipalRule{Queued: 10}), Held: func(p *schema.Principal) int {
		if p.Name != ci.Name {
			t.Errorf("the held calls of %q", p.Name)
		}
		return 7
	}})
	if err := q.Accept(ci, 3, 0); err != nil {
		t.Error(err)
	}
	refusedWith(t, q.Accept(ci, 4, 0), schema.KindQuota)
}
