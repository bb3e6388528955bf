package cache

import (
	"cmp"
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

// Options configures a cache. Log is required.
type Options struct {
	Config settings.Cache
	// Redis stores results for all front doors. If nil, this one caches its own results in
	// memory. It must stay open until Close has returned.
	Redis redis.UniversalClient
	// Retention limits how long results of some tenants are cached.
	Retention retention.Periods
	// DataKeys encrypts results in Redis. If nil, they are not encrypted. Results in memory are
	// dropped when a data key is destroyed.
	DataKeys *datakey.Ring
	Log      *slog.Logger

	// timeout of a request to Redis, if other than the default. Tests set it, because the default
	// expires on a machine that stands still for a moment.
	timeout time.Duration
}

// Cache caches results. It is safe for concurrent use.
type Cache struct {
	kept      store
	memory    *memory // equal to kept if results are in memory, else nil
	most      int
	retention retention.Periods
	log       *slog.Logger

	mu      sync.Mutex
	flights map[flightKey]*flight
	work    sync.WaitGroup
}

// store stores cached results.
type store interface {
	// get returns a result and the time at which it was stored.
	get(ctx context.Context, k key) (body []byte, at time.Time, ok bool)
	// put stores a result of the tenant and reports whether it succeeded.
	put(ctx context.Context, tenant schema.TenantID, k key, body []byte, ttl time.Duration) bool
}

// Open returns a cache. It does not connect to Redis.
func Open(o Options) *Cache {
	if o.Config == (settings.Cache{}) {
		o.Config = settings.CacheDefaults()
	}
	c := &Cache{most: int(o.Config.EntryBytes), retention: o.Retention, log: o.Log, flights: make(map[flightKey]*flight)}
	if o.Redis != nil {
		c.kept = &shared{client: o.Redis, ring: o.DataKeys, log: o.Log, timeout: cmp.Or(o.timeout, redisTimeout)}
	} else {
		c.memory = newMemory(int(o.Config.MemoryBytes))
		c.kept = c.memory
		o.DataKeys.OnDestroyed(func(schema.TenantID) { c.memory.clear() })
	}
	return c
}

// Close waits for runs in progress. All callers of Do must have returned.
func (c *Cache) Close() {
	if c != nil {
		c.work.Wait()
	}
}

// Do returns a cached result, the result of an identical call in progress, or the result of run. It
// may call run on another goroutine, with a context that outlives the caller's while other callers
// wait for the same call. The caller owns the result but not its body. The call must be safe to
// repeat, must have no Progress, and must not change any more.
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
			if res := freshResult(body, at, rule.TTL); res != nil {
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
				continue // the other caller canceled the run, not this one
			}
			return nil, schema.AsError(f.err).WithCall(call.ID)
		}
		res := *f.res
		res.Cache.Collapsed = !first && !res.Cache.Hit
		return &res, nil
	}
}

// fresh always runs the call, for a caller that wants no cached or shared result.
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

// keep stores a result if it is cacheable, and reports whether it did.
func (c *Cache) keep(ctx context.Context, call *schema.Call, k key, res *schema.Result, ttl time.Duration) bool {
	return !call.NoStore && !res.ToolError && !res.InputRequired && len(res.Body) <= c.most && c.kept.put(ctx, call.Principal.Tenant, k, res.Body, ttl)
}

// freshResult returns the response for a result cached at a time, or nil if it is older than ttl, the current
// limit of the policy.
func freshResult(body []byte, at time.Time, ttl time.Duration) *schema.Result {
	age := max(time.Since(at), 0)
	if age >= ttl {
		return nil
	}
	return &schema.Result{Body: body, Cache: schema.Caching{Hit: true, Age: age, TTL: ttl - age}}
}

// flight is one run that all callers of identical calls share.
type flight struct {
	key    flightKey
	ctx    context.Context // canceled when the last waiter leaves
	cancel context.CancelFunc
	n      int // number of waiters; guarded by Cache.mu

	done chan struct{} // closed when res or err is set
	res  *schema.Result
	err  error
}

// join joins the flight in progress, or starts one.
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

// leave removes a waiter from an unfinished flight, and cancels the flight if it was the last.
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

// fly looks up the result, or runs the tool.
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
		if f.res = freshResult(body, at, rule.TTL); f.res != nil {
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
