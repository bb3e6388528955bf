package cache

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options says where results are kept. Log is required.
type Options struct {
	Config settings.Cache
	// Redis keeps results for all front doors; nil: this one keeps its own in
	// memory. It must last until Close has returned.
	Redis redis.UniversalClient
	// Retention says for how long results of some tenants are kept at most.
	Retention retention.Periods
	// DataKeys encrypt results in Redis; nil: they are not encrypted. Those in memory are
	// dropped when a data key is destroyed.
	DataKeys *datakey.Ring
	Log      *slog.Logger
}

// Cache keeps results. It is safe for concurrent use.
type Cache struct {
	kept      store
	memory    *memory // the same, where it is in memory
	most      int
	retention retention.Periods
	log       *slog.Logger

	mu      sync.Mutex
	flights map[flightKey]*flight
	work    sync.WaitGroup
}

// store is where results are kept.
type store interface {
	// get returns a result and when it was kept.
	get(ctx context.Context, k key) (body []byte, at time.Time, ok bool)
	// put keeps a result of the tenant and says whether it could.
	put(ctx context.Context, tenant schema.TenantID, k key, body []byte, ttl time.Duration) bool
}

// Open returns a cache. Nothing is asked of Redis yet.
func Open(o Options) *Cache {
	if o.Config == (settings.Cache{}) {
		o.Config = settings.CacheDefaults()
	}
	c := &Cache{most: int(o.Config.EntryBytes), retention: o.Retention, log: o.Log, flights: make(map[flightKey]*flight)}
	if o.Redis != nil {
		c.kept = &shared{client: o.Redis, ring: o.DataKeys, log: o.Log}
	} else {
		c.memory = newMemory(int(o.Config.MemoryBytes))
		c.kept = c.memory
		o.DataKeys.OnDestroyed(func(schema.TenantID) { c.memory.clear() })
	}
	return c
}

// Close waits for what is under way; its callers must have left.
func (c *Cache) Close() {
	if c != nil {
		c.work.Wait()
	}
}

// Do answers the call with a result that is kept, with that of the same call which
// is under way, or by run, which it may call on another goroutine with a context
// that outlives the caller's while others wait for the same. The result is the
// caller's own; its body is not. The call must be safe to repeat, must have no
// Progress, and must not change any more.
func (c *Cache) Do(ctx context.Context, call *schema.Call, rule risk.Cache, run func(context.Context) (*schema.Result, error)) (*schema.Result, error) {
	if d := c.retention.Within(call.Principal.Tenant, rule.TTL); d > 0 {
		rule.TTL = d
	}
	k := keyOf(call, rule.Shared)
	if call.Fresh {
		return c.fresh(ctx, call, k, rule, run)
	}
	if c.memory != nil {
		if body, at, ok := c.memory.get(ctx, k); ok {
			if res := hit(body, at, rule.TTL); res != nil {
				return res, nil
			}
		}
	}
	for {
		f, first := c.join(flightKey{k, call.Timeout, call.NoStore})
		if first {
			c.work.Go(func() { c.fly(f, call, rule, run) })
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			c.leave(f)
			e := schema.Errorf(schema.KindOutcomeUnknown, "The call was asked to stop while it ran. It may have run; its tool is safe to repeat.").WithCall(call.ID)
			e.Retryable, e.CancelRequested = true, true
			return nil, e
		}
		if f.err != nil {
			if e := schema.AsError(f.err); !first && (e.Kind == schema.KindCanceled || e.CancelRequested) && ctx.Err() == nil {
				continue // somebody cancelled that call, not this one
			}
			return nil, schema.AsError(f.err).WithCall(call.ID)
		}
		res := *f.res
		res.Cache.Collapsed = !first && !res.Cache.Hit
		return &res, nil
	}
}

// fresh runs a call for a caller that wants no result but the tool's own.
func (c *Cache) fresh(ctx context.Context, call *schema.Call, k key, rule risk.Cache, run func(context.Context) (*schema.Result, error)) (*schema.Result, error) {
	got, err := run(ctx)
	if err != nil {
		return nil, err
	}
	res := *got
	res.Cache = schema.Caching{Fresh: true, TTL: rule.TTL}
	res.Cache.Stored = c.keep(ctx, call, k, &res, rule.TTL)
	return &res, nil
}

// keep keeps a result that may be kept.
func (c *Cache) keep(ctx context.Context, call *schema.Call, k key, res *schema.Result, ttl time.Duration) bool {
	return !call.NoStore && !res.ToolError && !res.InputRequired && len(res.Body) <= c.most && c.kept.put(ctx, call.Principal.Tenant, k, res.Body, ttl)
}

// hit is the answer from a result that was kept at a time, nil when that is too
// long ago by the policy of now.
func hit(body []byte, at time.Time, ttl time.Duration) *schema.Result {
	age := max(time.Since(at), 0)
	if age >= ttl {
		return nil
	}
	return &schema.Result{Body: body, Cache: schema.Caching{Hit: true, Age: age, TTL: ttl - age}}
}

// flight is one run, for all that ask the same.
type flight struct {
	key    flightKey
	ctx    context.Context // ends when nobody waits any more
	cancel context.CancelFunc
	n      int // who waits; guarded by the cache

	done chan struct{} // closed when one of the following is set
	res  *schema.Result
	err  error
}

// join joins the flight that is under way, or begins one.
func (c *Cache) join(k flightKey) (f *flight, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f = c.flights[k]; f != nil {
		f.n++
		return f, false
	}
	f = &flight{key: k, n: 1, done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	c.flights[k] = f
	return f, true
}

// leave leaves a flight that has not ended; without anybody it is given up.
func (c *Cache) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.n--; f.n == 0 {
		c.dropLocked(f)
		f.cancel()
	}
}

func (c *Cache) dropLocked(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// fly finds the result, or has the tool make it.
func (c *Cache) fly(f *flight, call *schema.Call, rule risk.Cache, run func(context.Context) (*schema.Result, error)) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("a call panicked", "call", call.ID, "panic", v, "stack", string(debug.Stack()))
			f.res, f.err = nil, schema.Errorf(schema.KindInternal, "The front door failed on this call; its log has the cause.")
		}
		c.mu.Lock()
		c.dropLocked(f)
		c.mu.Unlock()
		f.cancel()
		close(f.done)
	}()
	k := f.key.key
	if body, at, ok := c.kept.get(f.ctx, k); ok {
		if f.res = hit(body, at, rule.TTL); f.res != nil {
			return
		}
	}
	got, err := run(f.ctx)
	if err != nil {
		f.err = err
		return
	}
	res := *got
	res.Cache = schema.Caching{Miss: true, TTL: rule.TTL}
	res.Cache.Stored = c.keep(f.ctx, call, k, &res, rule.TTL)
	f.res = &res
}
