package cache

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) *Cache {
	t.Helper()
	c := Open(Options{Config: settings.CacheDefaults(), Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(c.Close)
	return c
}

var minute = risk.Cache{TTL: time.Minute}

func newCall() *schema.Call {
	return &schema.Call{
		ID: schema.NewCallID(), Server: "s", Tool: "t", ToolDigest: "d", Arguments: []byte(`{"a":1}`), Principal: schema.Principal{Name: "ann"}, Safe: true, Timeout: time.Second,
	}
}

// tool counts its runs.
type tool struct {
	runs   atomic.Int64
	body   string
	failed bool
	err    error
}

func (t *tool) run(context.Context) (*schema.Result, error) {
	t.runs.Add(1)
	if t.err != nil {
		return nil, t.err
	}
	return &schema.Result{Body: []byte(t.body), ToolError: t.failed, Worker: "w", Took: time.Second}, nil
}

// ask runs the call through the cache.
func ask(t testing.TB, c *Cache, call *schema.Call, rule risk.Cache, tool *tool) *schema.Result {
	t.Helper()
	res, err := c.Do(t.Context(), call, rule, tool.run)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestResultIsCachedUntilItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tool := open(t), &tool{body: "one"}
		first := ask(t, c, newCall(), minute, tool)
		want := &schema.Result{Body: []byte("one"), Worker: "w", Took: time.Second, Cache: schema.Caching{Miss: true, Stored: true, TTL: time.Minute}}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Error(diff)
		}
		time.Sleep(20 * time.Second)
		again := ask(t, c, newCall(), minute, tool)
		want = &schema.Result{Body: []byte("one"), Cache: schema.Caching{Hit: true, Age: 20 * time.Second, TTL: 40 * time.Second}}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Error(diff)
		}
		if got := ask(t, c, newCall(), risk.Cache{TTL: 20 * time.Second}, tool); got.Cache.Hit {
			t.Error("the policy of now has a shorter time")
		}
		time.Sleep(20 * time.Second) // the result that was just cached is valid for that long
		if got := ask(t, c, newCall(), minute, tool); got.Cache.Hit || tool.runs.Load() != 3 || c.memory.order.Len() != 1 {
			t.Errorf("%+v after %d runs", got.Cache, tool.runs.Load())
		}
	})
}

func TestOnlyTheSameCallHasTheSameResult(t *testing.T) {
	c, tool := open(t), &tool{body: "one"}
	ask(t, c, newCall(), minute, tool)
	for name, change := range map[string]func(*schema.Call){
		"server":     func(c *schema.Call) { c.Server = "s2" },
		"tool":       func(c *schema.Call) { c.Tool = "t2" },
		"definition": func(c *schema.Call) { c.ToolDigest = "d2" },
		"arguments":  func(c *schema.Call) { c.Arguments = []byte(`{"a": 1}`) },
		"long ones":  func(c *schema.Call) { c.Arguments = bytes.Repeat([]byte("x"), 1000) },
		"principal":  func(c *schema.Call) { c.Principal.Name = "bob" },
		"run-on":     func(c *schema.Call) { c.Server, c.Tool = "st", "" },
	} {
		call := newCall()
		change(call)
		if got := ask(t, c, call, minute, tool); got.Cache.Hit {
			t.Errorf("another %s: a result of something else", name)
		}
		if got := ask(t, c, call, minute, tool); !got.Cache.Hit {
			t.Errorf("another %s: not kept", name)
		}
	}
	shared := risk.Cache{TTL: time.Minute, Shared: true}
	if got := ask(t, c, newCall(), shared, tool); got.Cache.Hit {
		t.Error("what was kept for one is given to all")
	}
	bob := newCall()
	bob.Principal.Name = "bob"
	if got := ask(t, c, bob, shared, tool); !got.Cache.Hit {
		t.Error("what is shared is not given to another")
	}
	nobody := newCall()
	nobody.Principal.Name = ""
	if keyOf(nobody, false) == keyOf(nobody, true) {
		t.Error("a principal without a name is everybody")
	}
}

func TestErrorsAndLargeResultsAreNotKept(t *testing.T) {
	most := int(settings.CacheDefaults().EntryBytes)
	for name, tool := range map[string]*tool{
		"the tool's own error": {body: "no", failed: true},
		"a large result":       {body: strings.Repeat("x", most+1)},
	} {
		c := open(t)
		for range 2 {
			if got := ask(t, c, newCall(), minute, tool); got.Cache.Hit || got.Cache.Stored || !got.Cache.Miss || got.ToolError != tool.failed {
				t.Errorf("%s: %+v", name, got.Cache)
			}
		}
	}
	c, fails := open(t), &tool{err: schema.Errorf(schema.KindUnavailable, "No.")}
	for range 2 {
		call := newCall()
		if _, err := c.Do(t.Context(), call, minute, fails.run); schema.KindOf(err) != schema.KindUnavailable || schema.AsError(err).CallID != call.ID {
			t.Error(err)
		}
	}
	if fails.runs.Load() != 2 {
		t.Errorf("%d runs", fails.runs.Load())
	}
	if got := ask(t, c, newCall(), minute, &tool{body: strings.Repeat("x", most)}); !got.Cache.Stored {
		t.Error("a result at the limit is not kept")
	}
}

func TestCallerCanBypassTheCache(t *testing.T) {
	c, tool := open(t), &tool{body: "old"}
	ask(t, c, newCall(), minute, tool)
	tool.body = "secret"
	secret := newCall()
	secret.Fresh, secret.NoStore = true, true
	if got := ask(t, c, secret, minute, tool); string(got.Body) != "secret" || got.Cache != (schema.Caching{Fresh: true, TTL: time.Minute}) {
		t.Errorf("%+v", got)
	}
	if got := ask(t, c, newCall(), minute, tool); string(got.Body) != "old" || !got.Cache.Hit {
		t.Errorf("what was not to be kept was kept: %+v", got)
	}
	tool.body = "new"
	fresh := newCall()
	fresh.Fresh = true
	if got := ask(t, c, fresh, minute, tool); string(got.Body) != "new" || !got.Cache.Stored {
		t.Errorf("%+v", got)
	}
	if got := ask(t, c, newCall(), minute, tool); string(got.Body) != "new" || !got.Cache.Hit {
		t.Errorf("%+v", got)
	}
	other := newCall()
	other.NoStore, other.Tool = true, "t2"
	ask(t, c, other, minute, tool)
	if got := ask(t, c, other, minute, tool); got.Cache.Hit || got.Cache.Stored {
		t.Errorf("%+v", got)
	}
}

func TestIdenticalConcurrentCallsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { hundred(t, open(t), synctest.Wait) })
}

// hundred makes 100 identical calls, and blocks the run until wait returns.
func hundred(t *testing.T, c *Cache, wait func()) {
	t.Helper()
	var runs, collapsed atomic.Int64
	free := make(chan struct{})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			res, err := c.Do(t.Context(), newCall(), minute, func(context.Context) (*schema.Result, error) {
				runs.Add(1)
				<-free
				return &schema.Result{Body: []byte("one")}, nil
			})
			if err != nil || string(res.Body) != "one" || !res.Cache.Miss || !res.Cache.Stored {
				t.Errorf("%+v, %v", res, err)
				return
			}
			if res.Cache.Collapsed {
				collapsed.Add(1)
			}
		})
	}
	wait()
	if n := c.waiting(); n != 100 {
		t.Errorf("%d calls wait", n)
	}
	close(free)
	all.Wait()
	if runs.Load() != 1 || collapsed.Load() != 99 {
		t.Errorf("%d runs, %d shared one", runs.Load(), collapsed.Load())
	}
}

func (c *Cache) waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flights {
		n += f.n
	}
	return n
}

func TestCanceledCallerDoesNotEndTheSharedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		free := make(chan struct{})
		run := func(ctx context.Context) (*schema.Result, error) {
			select {
			case <-free:
				return &schema.Result{Body: []byte("one")}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		left, stayed := make(chan error, 1), make(chan error, 1)
		go func() {
			call := newCall()
			_, err := c.Do(first, call, minute, run)
			if e := schema.AsError(err); e == nil || e.Kind != schema.KindOutcomeUnknown || !e.CancelRequested || !e.Retryable || e.CallID != call.ID {
				t.Errorf("%+v", e)
			}
			left <- err
		}()
		synctest.Wait()
		go func() {
			_, err := c.Do(t.Context(), newCall(), minute, run)
			stayed <- err
		}()
		synctest.Wait()
		leave()
		<-left
		close(free)
		if err := <-stayed; err != nil {
			t.Error(err)
		}
	})
}

func TestRunEndsWithItsLastWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		for range 3 {
			go func() {
				_, _ = c.Do(ctx, newCall(), minute, func(ctx context.Context) (*schema.Result, error) {
					<-ctx.Done()
					close(ended) // panics if there is more than one run
					return nil, ctx.Err()
				})
			}()
		}
		synctest.Wait()
		leave()
		<-ended
		if got := ask(t, c, newCall(), minute, &tool{body: "new"}); string(got.Body) != "new" {
			t.Errorf("who comes after that gets %+v", got)
		}
	})
}

func TestCancellingOneCallerLeavesTheOthersOfACachedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t)
		cancelled := make(chan struct{})
		go func() {
			_, err := c.Do(t.Context(), newCall(), minute, func(context.Context) (*schema.Result, error) {
				<-cancelled
				return nil, schema.Errorf(schema.KindCanceled, "The call was canceled.")
			})
			if schema.KindOf(err) != schema.KindCanceled {
				t.Error(err)
			}
		}()
		synctest.Wait()
		other := make(chan *schema.Result)
		go func() { other <- ask(t, c, newCall(), minute, &tool{body: "mine"}) }()
		synctest.Wait()
		close(cancelled)
		if res := <-other; string(res.Body) != "mine" {
			t.Errorf("%+v", res)
		}
	})
}

func TestCallsWithDifferentTimeoutsDoNotShareARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, slow := open(t), make(chan struct{})
		go func() {
			_, _ = c.Do(t.Context(), newCall(), minute, func(context.Context) (*schema.Result, error) {
				<-slow
				return &schema.Result{}, nil
			})
		}()
		synctest.Wait()
		hasty := newCall()
		hasty.Timeout = time.Millisecond
		ask(t, c, hasty, minute, &tool{body: "quick"})
		close(slow)
	})
}

func TestAPanicInARunIsAnErrorForAll(t *testing.T) {
	c := open(t)
	_, err := c.Do(t.Context(), newCall(), minute, func(context.Context) (*schema.Result, error) { panic(errors.New("oh")) })
	if schema.KindOf(err) != schema.KindInternal {
		t.Error(err)
	}
	ask(t, c, newCall(), minute, &tool{body: "one"})
}

func TestLeastRecentlyUsedResultsAreEvicted(t *testing.T) {
	m := newMemory(10 * (entryCost + 100))
	body := bytes.Repeat([]byte("x"), 100)
	k := func(n int) key { return key{byte(n), byte(n >> 8)} }
	for n := range 1000 {
		if !m.put(t.Context(), "", k(n), body, time.Minute) {
			t.Fatal("not kept")
		}
		if _, _, ok := m.get(t.Context(), k(0)); !ok {
			t.Fatalf("what is asked for all the time is gone after %d", n)
		}
		if m.size > m.most || len(m.index) != m.order.Len() || m.order.Len() > 10 {
			t.Fatalf("%d bytes in %d results", m.size, m.order.Len())
		}
	}
	for range 20 {
		m.put(t.Context(), "", k(999), body, time.Minute) // again and again the same
	}
	if m.order.Len() != 10 || m.size != 10*(entryCost+100) {
		t.Errorf("%d bytes in %d results", m.size, m.order.Len())
	}
	if m.put(t.Context(), "", k(1), make([]byte, m.most), time.Minute) {
		t.Error("one that takes all of it is kept")
	}
}

func TestTheSettingsOfTheCacheAreChecked(t *testing.T) {
	for want, c := range map[int]settings.Cache{0: settings.CacheDefaults(), 1: {MemoryBytes: 10, EntryBytes: 20}, 2: {MemoryBytes: -1, EntryBytes: 0}} {
		if faults := c.Validate(); len(faults) != want {
			t.Errorf("%+v: %v", c, faults)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	c, tool := open(b), &tool{body: "one"}
	call := newCall()
	ask(b, c, call, minute, tool)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), call, minute, tool.run); err != nil {
			b.Fatal(err)
		}
	}
}
