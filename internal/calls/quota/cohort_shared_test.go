package quota

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

// tenantDoor opens the limits of one of several front doors at a Redis.
func tenantDoor(t testing.TB, s *confirmtest.Redis, name string, limits parts) *Quota {
	t.Helper()
	return tenantDoorThatRenews(t, s, name, limits, 100*time.Millisecond)
}

func tenantDoorThatRenews(t testing.TB, s *confirmtest.Redis, name string, limits parts, renew time.Duration) *Quota {
	t.Helper()
	q, _, _ := openDoor(t, s, Options{Tenants: limits, Door: name, Renew: renew, lifetime: max(time.Minute, leaseRenewals*renew)})
	return q
}

func TestTwoFrontDoorsShareTenantCapacity(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"red": {Nominal: 10, Borrow: 10}, "blue": {Nominal: 10}, "other": {Nominal: 1}}
	a, b := tenantDoor(t, s, "a", limits), tenantDoor(t, s, "b", limits)
	red := takes(t, a, "red", 100)
	has(t, "red at one", red, 20)
	has(t, "red at the other", takes(t, b, "red", 1), 0)
	has(t, "another tenant", takes(t, b, "other", 2), 1)

	in, refused, done := enterConcurrently(t, b, "blue", 12)
	polltest.Until(t, "two calls are refused", func() bool { return refused.Load() == 2 })
	for i, pass := range red[10:] {
		pass.Leave()
		polltest.Until(t, "a call of blue runs", func() bool { return in.Load() == int64(i+1) })
		has(t, "red, which has its nominal", takes(t, a, "red", 1), 0)
	}
	done.Wait()
	if in.Load() != 10 || refused.Load() != 2 {
		t.Errorf("%d calls of blue, %d refused", in.Load(), refused.Load())
	}
	leaveAll(red[:10])
	polltest.Until(t, "red borrows the free slots at the other front door", func() bool {
		passes := takes(t, b, "red", 100)
		defer leaveAll(passes)
		return len(passes) == 10 // blue uses its own
	})
}

// A front door asks for the slots of all its waiting calls at once. Otherwise another front door could
// borrow in the moment after the first of them got its slot.
func TestTenantClaimsTheSlotsOfAllItsWaitingCalls(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"red": {Nominal: 2, Borrow: 2}, "blue": {Nominal: 3}}
	a, b := tenantDoorThatRenews(t, s, "a", limits, time.Hour), tenantDoorThatRenews(t, s, "b", limits, time.Hour)
	red := takes(t, a, "red", 100)
	has(t, "red", red, 4)
	blue := takes(t, b, "blue", 1)
	waiting, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, server := range []schema.ServerID{"s", "u"} { // each server has a separate line
		all.Go(func() {
			if pass, err := b.Wait(waiting, of("blue"), server, false); err == nil {
				pass.Leave()
			}
		})
	}
	member := b.cohort.members["blue"]
	polltest.Until(t, "both calls wait", func() bool { return member.waiting.Load() == 2 })
	cancel()
	all.Wait()
	if n := member.waiting.Load(); n != 0 {
		t.Errorf("%d calls wait after their end", n)
	}
	member.waiting.Store(2) // for ever, so that neither of them asks again
	for _, pass := range red[2:] {
		pass.Leave()
		a.renewAll(t.Context()) // the peak is remembered once
		a.renewAll(t.Context())
		has(t, "red while calls of blue wait", takes(t, a, "red", 1), 0)
		polltest.Until(t, "a call of blue gets its slot", func() bool {
			got := takes(t, b, "blue", 1)
			blue = append(blue, got...)
			return len(got) == 1
		})
	}
	has(t, "blue", blue, 3)
	member.waiting.Store(0)
	leaveAll(append(blue, red[:2]...))
}

// TestTenantReclaimsItsNominalFromAnotherFrontDoor has a tenant take again at once what
// ends, at one front door, of the calls that another one wants back at the other.
func TestTenantReclaimsItsNominalFromAnotherFrontDoor(t *testing.T) {
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
	polltest.Until(t, "red has borrowed the slots", func() bool { return a.cohort.members["red"].used.Load() >= 17 })
	in, refused, done := enterConcurrently(t, b, "blue", 15)
	polltest.Until(t, "all calls of blue have an answer", func() bool { return in.Load()+refused.Load() == 15 })
	if refused.Load() > 0 { // after interactiveWait
		t.Errorf("%d calls of blue are in, %d were refused", in.Load(), refused.Load())
	}
	polltest.Until(t, "red has only its nominal", func() bool { return a.cohort.members["red"].used.Load() <= 5 })
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

func TestFrontDoorsWithDifferentLimitsUseTheLargerAtMost(t *testing.T) {
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
	polltest.Until(t, "red has its new nominal", func() bool {
		more = append(more, takes(t, after, "red", 100)...)
		return len(more) == 4
	})
}

func TestTenantCapacitySurvivesRedisOutage(t *testing.T) {
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

// TestTenantScriptMatchesTheGoImplementation compares what one front door may take with
// and without Redis, after the same random history.
func TestTenantScriptMatchesTheGoImplementation(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	limits := parts{"a": {Nominal: 7, Borrow: 5}, "b": {Nominal: 3, Borrow: 20, Weight: 2}, "c": {Nominal: 10}, "d": {Borrow: 6}}
	names := []schema.TenantID{"a", "b", "c", "d"}
	for seed := range uint64(40) {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		client := redis.NewClient(&redis.Options{Addr: s.Address, DisableIdentity: true, ReadTimeout: time.Minute})
		remote := newShared(client, "door", time.Minute, time.Minute, slog.New(slog.DiscardHandler))
		p := newCohort(&Quota{}, limits)
		used, story := map[schema.TenantID]int{}, ""
		for range 60 {
			id, c := names[random.IntN(4)], class(random.IntN(2))
			m, want := p.members[id], used[id]+1
			if random.IntN(4) == 0 && used[id] > 0 { // one ends, and the renewal tells it
				used[id]--
				m.used.Add(-1)
				m.short, want = time.Time{}, used[id]
				if _, err := remote.lease(m.subject, used[id], want, 0, interactive); err != nil {
					t.Fatal(err)
				}
				continue
			}
			l, err := remote.lease(m.subject, used[id], want, 0, c)
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
