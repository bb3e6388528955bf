package quota

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

// callConcurrently calls at both doors from many goroutines until ctx ends, each holding its
// space for hold, and says how many were admitted and the most at once.
func callConcurrently(ctx context.Context, doors []*Quota, hold time.Duration) (admitted []int64, most int64) {
	var now, peak atomic.Int64
	counts := make([]atomic.Int64, len(doors))
	var all sync.WaitGroup
	for i, q := range doors {
		for range 64 {
			all.Go(func() {
				for ctx.Err() == nil {
					pass, err := q.Enter(ctx, ci)
					wait := hold
					if err == nil {
						counts[i].Add(1)
						n := now.Add(1)
						for was := peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
						}
					} else {
						wait = min(schema.AsError(err).RetryAfter, 5*time.Millisecond)
					}
					t := time.NewTimer(wait)
					select {
					case <-t.C:
					case <-ctx.Done():
						t.Stop()
					}
					if err == nil {
						now.Add(-1)
						pass.Leave()
					}
				}
			})
		}
	}
	all.Wait()
	for i := range counts {
		admitted = append(admitted, counts[i].Load())
	}
	return admitted, peak.Load()
}

func TestTwoFrontDoorsShareARateThroughRedis(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{Rate: 400, Burst: 40})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	// A machine that stands still for a while loses what the burst does not cover.
	polltest.Until(t, "both get their part of most of the rate", func() bool {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got, _ := callConcurrently(ctx, []*Quota{a, b}, time.Millisecond)
		want, all := 400*time.Since(began).Seconds()+40, float64(got[0]+got[1])
		if all > want*1.02 {
			t.Errorf("%v admitted, want %.0f", got, want)
		}
		return all >= want*0.5 && got[0] >= 50 && got[1] >= 50
	})
}

func TestTwoFrontDoorsShareTheInFlightLimitThroughRedis(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 60})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	// A front door that stands still for a while leaves the slots to the other.
	polltest.Until(t, "they share the limit evenly", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got, most := callConcurrently(ctx, []*Quota{a, b}, 10*time.Millisecond)
		if most > 60 {
			t.Errorf("%d at once, the limit is 60", most)
		}
		return most >= 40 && got[0]*5 >= got[1] && got[1]*5 >= got[0]
	})
}

// gets waits until the door has room for that many calls at once.
func gets(t *testing.T, q *Quota, n int) {
	t.Helper()
	var passes []Pass
	polltest.Until(t, "the calls run", func() bool {
		passes = append(passes, takeAll(q, n-len(passes))...)
		return len(passes) == n
	})
	leaveAll(passes)
}

func TestUnusedSlotsGoToTheOtherFrontDoor(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 100})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	passes := takeAll(a, 1000)
	if len(passes) != 100 {
		t.Errorf("one alone gets %d", len(passes))
	}
	if n := len(takeAll(b, 10)); n != 0 {
		t.Errorf("the other gets %d of none", n)
	}
	leaveAll(passes)
	gets(t, b, 100)
}

func TestLateFrontDoorGetsItsShareOfUsedSlots(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 40})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		callConcurrently(ctx, []*Quota{a}, 5*time.Millisecond) // all of it, all the time
	}()
	polltest.Until(t, "the slots are in use", func() bool { return a.principal(ci).inUse() >= 38 })
	gets(t, b, 15)
	cancel()
	<-done
}

func (s *subject) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots.used
}

func TestLeasesOfAKilledFrontDoorExpireInSeconds(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 30})
	a, _, kill := openDoor(t, s, Options{Rules: c, Door: "a"})
	b, _, _ := door(t, s, "b", c)
	if n := len(takeAll(a, 100)); n != 30 {
		t.Fatalf("%d of 30", n)
	}
	polltest.Until(t, "the other gets none", func() bool { // a lease that expired early is renewed
		passes := takeAll(b, 1)
		leaveAll(passes)
		return len(passes) == 0
	})
	kill()
	gets(t, b, 30) // leases of 600 ms here
}

func TestAFrontDoorThatStopsGivesItsLeasesBackAtOnce(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 30, Queued: 10})
	a, _, _ := door(t, s, "a", c)
	leaveAll(takeAll(a, 30))
	a.Queued(ci, 5)
	s.Has(t, 2)
	a.Close()
	s.Has(t, 0)
}

func TestMostCallsNeedNoRedisRequest(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	a, _, _ := door(t, s, "a", forAll(settings.PrincipalRule{Rate: 100_000, InFlight: 200}))
	warm := takeAll(a, 50)
	leaveAll(warm)
	scripts := func() int {
		info, err := s.Client.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(info) {
			if strings.HasPrefix(line, "cmdstat_eval") {
				_, rest, _ := strings.Cut(line, "calls=")
				count, _, _ := strings.Cut(rest, ",")
				c, err := strconv.Atoi(count)
				if err != nil {
					t.Fatal(err)
				}
				n += c
			}
		}
		return n
	}
	before := scripts()
	for range 5000 {
		enter(t, a).Leave()
	}
	if asked := scripts() - before; asked > 100 {
		t.Errorf("%d questions for 5000 calls", asked)
	}
}

func TestARefusedCallerDoesNotReachRedisEachTime(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	a, _, _ := door(t, s, "a", forAll(settings.PrincipalRule{InFlight: 1, Rate: 1}))
	pass := enter(t, a)
	began, refusals := time.Now(), 0
	before := s.Client.Info(t.Context(), "stats").Val()
	for refusals < 5000 {
		if _, err := a.Enter(t.Context(), ci); err == nil {
			t.Fatal("a call too many")
		}
		refusals++
	}
	most := 60 * (1 + int(time.Since(began)/(200*time.Millisecond)))
	if n := commands(t, s.Client.Info(t.Context(), "stats").Val()) - commands(t, before); n > most {
		t.Errorf("%d commands for %d refusals", n, refusals)
	}
	pass.Leave()
}

func commands(t *testing.T, stats string) int {
	t.Helper()
	_, rest, _ := strings.Cut(stats, "total_commands_processed:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUnreachableRedisIsLoggedOnceAndSharesApply(t *testing.T) {
	s := confirmtest.StartRedis(t, "", porttest.Address(t))
	c := settings.Limits{Principals: []settings.PrincipalRule{{InFlight: 20, Rate: 1000}}, Servers: []settings.ServerRule{{InFlight: 8}}}
	a, log, _ := door(t, s, "a", c)
	enter(t, a).Leave()
	if err := s.Dump(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	for range 50 {
		enter(t, a).Leave()
	}
	passes := takeAll(a, 100)
	if len(passes) != 10 {
		t.Errorf("%d of 20 at one of two front doors", len(passes))
	}
	waiting, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Wait(waiting, ci, "s", true); schema.KindOf(err) != schema.KindCanceled {
		t.Errorf("a slot too many for a batch: %v", err)
	}
	leaveAll(passes)
	if n := log.Count("Redis does not answer"); n != 1 {
		t.Errorf("said %d times", n)
	}
	s.Restart(t)
	polltest.Until(t, "Redis answers again", func() bool { return log.Count("Redis answers again") == 1 })
	gets(t, a, 20)
}

func TestFullRedisIsLoggedOnceAndSharesApply(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	a, log, _ := door(t, s, "a", forAll(settings.PrincipalRule{InFlight: 20, Rate: 1e5}))
	if err := s.Client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	passes := takeAll(a, 100)
	if len(passes) != 10 {
		t.Errorf("%d of 20 at one of two front doors", len(passes))
	}
	before := commands(t, s.Client.Info(t.Context(), "stats").Val())
	polltest.Until(t, "Redis is asked a few times", func() bool {
		return commands(t, s.Client.Info(t.Context(), "stats").Val()) > before+60
	})
	leaveAll(passes)
	if n := log.Count("level="); n != 1 {
		t.Errorf("said %d times", n)
	}
	if err := s.Client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	gets(t, a, 20)
}

func TestSlotsAreNotGrantedTwiceForLongAfterRedisDataLoss(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{InFlight: 10})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	passes := takeAll(a, 10)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Has(t, 1) // the next renewal says what is in use
	if n := len(takeAll(b, 10)); n != 0 {
		t.Errorf("%d slots twice", n)
	}
	leaveAll(passes)
}

func TestABatchWaitsForASlotThatAnotherFrontDoorGivesBack(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := settings.Limits{Servers: []settings.ServerRule{{InFlight: 1}}}
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	busy, err := a.Serve(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		pass, err := b.Wait(t.Context(), ci, "s", true)
		pass.Leave()
		got <- err
	}()
	_, err = b.Serve(t.Context(), "s")
	refusedWith(t, err, schema.KindUnavailable)
	busy.Leave()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestBacklogOfOtherFrontDoorsCounts(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c := forAll(settings.PrincipalRule{Queued: 10})
	a, _, _ := door(t, s, "a", c)
	b, _, _ := door(t, s, "b", c)
	a.Queued(ci, 6)
	b.Queued(ci, 1)
	polltest.Until(t, "the queue of the other front door is known", func() bool { return b.Space(ci, 0) == 3 })
	a.Queued(ci, -6)
	polltest.Until(t, "the shorter queue is known", func() bool { return b.Space(ci, 0) == 9 })
}
