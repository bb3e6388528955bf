package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
)

func take(t testing.TB, p *Pool[*mcpClient]) *Use[*mcpClient] {
	t.Helper()
	u, err := p.Take(t.Context(), "somebody", time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWarmContainerIsHandedOverImmediatelyAndUsedOnce(t *testing.T) {
	e := engine(t)
	p := pool(t, e, spec(t, e, func(c *Config) { c.Pool = 2 }))
	seen := map[string]bool{}
	var took []time.Duration
	for range 15 {
		polltest.Within(t, 30*time.Second, "a container is ready", func() bool { return p.Ready() > 0 })
		began := time.Now()
		u := take(t, p)
		took = append(took, time.Since(began))
		if !u.Warm {
			t.Error("a container was ready, and another one was started")
		}
		if seen[u.Container.ID()] {
			t.Error("a container was handed out twice")
		}
		seen[u.Container.ID()] = true
		if got, err := u.Session.tool("leave", nil); err != nil || got != "clean" {
			t.Errorf("the container was used before: %q, %v", got, err)
		}
		u.Release()
		u.Release()
	}
	slices.Sort(took)
	t.Logf("warm hand-over p50 %v, longest %v", took[len(took)/2], took[len(took)-1])
}

func TestEmptyPoolStartsAContainerOnDemand(t *testing.T) {
	e := engine(t)
	p := pool(t, e, spec(t, e))
	var took []time.Duration
	for range 15 {
		began := time.Now()
		u := take(t, p)
		took = append(took, time.Since(began))
		if u.Warm {
			t.Error("a pool of none had a container ready")
		}
		gone := u.Container.Done()
		u.Release()
		<-gone // so that each start is alone
	}
	slices.Sort(took)
	t.Logf("cold start p50 %v, p95 %v", took[len(took)/2], took[len(took)*95/100])
}

func TestHundredConcurrentCallsLeaveNoContainers(t *testing.T) {
	e := engine(t)
	ask := asker(t)
	// The engine is slow where ten containers start at once on two cores.
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(t, e, func(c *Config) { c.Pool = 4 }), Handshake: handshake, Log: quiet(), StartTimeout: 2 * time.Minute})
	t.Cleanup(p.Close)
	began := time.Now()
	var next, warm atomic.Int64
	var used sync.Map
	var work sync.WaitGroup
	for range 10 {
		work.Go(func() {
			for i := next.Add(1); i <= 100; i = next.Add(1) {
				u, err := p.Take(t.Context(), fmt.Sprint("principal ", i%3), time.Now().Add(4*time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				if _, again := used.LoadOrStore(u.Container.ID(), true); again {
					t.Error("a container was used twice")
				}
				if u.Warm {
					warm.Add(1)
				}
				checkAlone(t, ask, u.Container.ID())
				if got, err := u.Session.tool("leave", nil); err != nil || got != "clean" {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
				u.Release()
			}
		})
	}
	work.Wait()
	t.Logf("100 calls in %v, %d of them warm", time.Since(began), warm.Load())
	p.Close()
	if n := e.Containers(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
	if left := owned(t, e.o.Owner); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if len(e.warm) != 0 || len(e.total) != 0 || len(e.starts) != 0 {
		t.Errorf("places still taken: warm %d, total %d, starts %d", len(e.warm), len(e.total), len(e.starts))
	}
}

func TestContainerIsHandedOutOnlyAfterItsHandshake(t *testing.T) {
	e := engine(t)
	refused := errors.New("its tools have changed")
	var tries atomic.Int64
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(t, e, func(c *Config) { c.Pool = 1 }), Log: quiet(),
		Handshake: func(ctx context.Context, c *Container) (*mcpClient, error) {
			tries.Add(1)
			if _, err := handshake(ctx, c); err != nil {
				return nil, err
			}
			return nil, refused
		}})
	defer p.Close()
	if _, err := p.Take(t.Context(), "somebody", time.Now().Add(time.Minute)); !errors.Is(err, refused) {
		t.Errorf("the container came with %v", err)
	}
	polltest.Within(t, 30*time.Second, "the pool tries again", func() bool { return tries.Load() >= 2 })
	if n := p.Ready(); n != 0 {
		t.Errorf("%d containers are ready", n)
	}
}

func TestHandshakeThatHangsTimesOut(t *testing.T) {
	e := engine(t)
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: spec(t, e, func(c *Config) { c.Args = []string{"deaf"} }), Handshake: handshake, StartTimeout: 1500 * time.Millisecond, Log: quiet()})
	defer p.Close()
	_, err := p.Take(t.Context(), "somebody", time.Now().Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "which was killed because it was not ready in time") { // and not at the minute that the handshake waits for an answer
		t.Errorf("it came with %v", err)
	}
}

func TestImmediateExitOfAServerIsReported(t *testing.T) {
	e := engine(t)
	p := pool(t, e, spec(t, e, func(c *Config) { c.Args = []string{"exit"} }))
	if _, err := p.Take(t.Context(), "somebody", time.Now().Add(time.Minute)); err == nil || !strings.Contains(err.Error(), "did not become ready") {
		t.Errorf("it came with %v", err)
	}
}

func TestWarmContainerThatDiesIsReplaced(t *testing.T) {
	e := engine(t)
	p := pool(t, e, spec(t, e, func(c *Config) { c.Pool = 1 }))
	polltest.Within(t, 30*time.Second, "one is ready", func() bool { return p.Ready() == 1 })
	p.mu.Lock()
	dead := p.idle[0].c
	p.mu.Unlock()
	dead.kill("was killed by the test")
	<-dead.Done()
	u := take(t, p)
	defer u.Release()
	if u.Container == dead {
		t.Error("a dead container was handed out")
	}
}

func TestCanceledTakeUsesNoContainer(t *testing.T) {
	e := engine(t, func(o *Options) { o.Limits.Containers = 1 })
	p := pool(t, e, spec(t, e))
	u := take(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Take(ctx, "somebody", time.Now().Add(time.Minute)); err == nil {
		t.Fatal("there is no place, and a container came")
	}
	u.Release()
	take(t, p).Release()
}

func TestWarmContainersLeaveSlotsForOtherPools(t *testing.T) {
	e := engine(t, func(o *Options) { o.Limits.Containers, o.Limits.Warm = 3, 2 })
	greedy := pool(t, e, spec(t, e, func(c *Config) { c.Pool = 10 }))
	polltest.Within(t, 30*time.Second, "two are ready", func() bool { return greedy.Ready() == 2 })
	u := take(t, pool(t, e, spec(t, e)))
	defer u.Release()
	if n := greedy.Ready(); n > 2 {
		t.Errorf("%d are ready, 2 may be", n)
	}
}

func TestContainerIsNeverReused(t *testing.T) {
	c := &Container{name: "c"}
	if err := c.claim("one"); err != nil {
		t.Fatal(err)
	}
	for _, principal := range []string{"one", "two"} {
		if err := c.claim(principal); err == nil {
			t.Errorf("%s got a used container", principal)
		}
	}
}

func TestClosedPoolRefusesTakeAndKeepsContainersInUse(t *testing.T) {
	e := engine(t)
	p := pool(t, e, spec(t, e, func(c *Config) { c.Pool = 2 }))
	u := take(t, p)
	p.Close()
	if _, err := p.Take(t.Context(), "somebody", time.Now().Add(time.Minute)); err == nil {
		t.Error("a closed pool handed out a container")
	}
	if got, err := u.Session.tool("echo", map[string]string{"text": "still here"}); err != nil || got != "still here" {
		t.Errorf("the use was cut off: %q, %v", got, err)
	}
	u.Release()
	if err := u.Container.Err(); err == nil {
		t.Error("the container outlived its release")
	}
}
