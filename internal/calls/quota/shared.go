package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

const (
	// redisTimeout, the default, limits the delay of a call by a Redis that does not answer. After that, Redis
	// counts as down until a probe succeeds.
	redisTimeout = 250 * time.Millisecond
	// leaseRenewals is the lifetime of a lease in renewal intervals.
	leaseRenewals = 6
	prefix        = "callyard:limit:"
)

// leaseScript sets the number of slots of a limit that one front door holds, in one step, and removes
// expired leases. It is idempotent, because it sets the number rather than adding to it.
//
// The hash has a field for each front door: the slots held, the slots wanted, and the expiry by the
// clock of Redis. A front door that wanted more than it has is short. While one is short, no front
// door gets more than an even share, except for slots in use.
//
//	KEYS[1] limit   ARGV[1] front door   ARGV[2] used   ARGV[3] wanted   ARGV[4] the limit   ARGV[5] lifetime (ms)
const leaseScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local used, want, most, life = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local all = redis.call('HGETALL', KEYS[1])
local others, doors, short = 0, 1, false
for i = 1, #all, 2 do
  local held, wanted, till = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
  if not till or tonumber(till) <= now then
    redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= ARGV[1] then
    others = others + tonumber(held)
    doors = doors + 1
    if tonumber(wanted) > tonumber(held) then short = true end
  end
end
local granted = math.max(0, math.min(want, most - others))
local fair = granted
if short then
  fair = math.max(1, math.floor(most / doors))
  granted = math.min(granted, math.max(fair, used))
end
local holds = math.max(granted, used)
if holds == 0 and want == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %d %.0f', holds, want, now + life))
  redis.call('PEXPIRE', KEYS[1], life * 2)
end
return {granted, fair, others}`

// shared is the state that the front doors share in Redis.
type shared struct {
	client  redis.UniversalClient
	limiter *redis_rate.Limiter
	script  *redis.Script
	parts   *redis.Script // for tenants
	door    string
	ttl     time.Duration
	timeout time.Duration // of a request
	log     *slog.Logger
	down    atomic.Bool
}

func newShared(client redis.UniversalClient, door string, ttl, timeout time.Duration, log *slog.Logger) *shared {
	return &shared{client: client, limiter: redis_rate.NewLimiter(client), script: redis.NewScript(leaseScript), parts: redis.NewScript(partScript), door: door, ttl: ttl, timeout: timeout, log: log}
}

// up reports whether Redis is configured and answers.
func (s *shared) up() bool { return s != nil && !s.down.Load() }

// failed records that Redis did not answer, or answered unexpectedly. From then on, each front door
// enforces its share, until [shared.look] finds Redis available again.
func (s *shared) failed(err error) {
	if !s.down.Swap(true) {
		s.log.Warn("Redis does not answer; until it does, each front door uses its share of the limits", "error", err)
	}
}

// look probes a Redis that is down. It checks that Redis accepts the writes that limits need, because
// one that is full, or denies them, still answers a ping.
func (s *shared) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if _, err := readLease(s.script.Run(ctx, s.client, []string{prefix + "probe"}, s.arguments(0, 1, 1)...)); err != nil {
		return
	}
	if _, err := s.limiter.Allow(ctx, prefix+"probe", redis_rate.PerSecond(1)); err != nil {
		return
	}
	if s.down.Swap(false) {
		s.log.Info("Redis answers again; all front doors share the limits")
	}
}

func (s *shared) arguments(used, want, most int) []any {
	return []any{s.door, used, want, most, s.ttl.Milliseconds()}
}

// lease leases slots of a limit.
func (s *shared) lease(of *subject, used, want, most int, c class) (lease, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	script, arguments := s.request(of, used, want, most, c)
	l, err := readLease(script.Run(ctx, s.client, []string{prefix + of.key}, arguments...))
	if err != nil {
		s.failed(err)
	}
	return l, err
}

func readLease(cmd *redis.Cmd) (lease, error) {
	n, err := cmd.Int64Slice()
	if err == nil && len(n) != 3 {
		err = errors.New("the answer has an unexpected form")
	}
	if err != nil {
		return lease{}, fmt.Errorf("leasing slots: %w", err)
	}
	return lease{int(n[0]), int(n[1]), int(n[2])}, nil
}

// renewal is one lease of a bulk renewal.
type renewal struct {
	subject          *subject
	key              string
	used, want, most int
	backlog          bool
	lease            lease
	err              error
}

// renew renews many leases in one pipeline.
func (s *shared) renew(ctx context.Context, all []*renewal) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	commands := make([]*redis.Cmd, len(all))
	for i, r := range all {
		script, arguments := s.request(r.subject, r.used, r.want, r.most, interactive)
		commands[i] = script.EvalSha(ctx, pipe, []string{prefix + r.key}, arguments...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, r := range all {
		if r.lease, r.err = readLease(commands[i]); r.err == nil {
			continue
		}
		if redis.HasErrorPrefix(commands[i].Err(), "NOSCRIPT") { // Redis was restarted
			script, arguments := s.request(r.subject, r.used, r.want, r.most, interactive)
			r.lease, r.err = readLease(script.Run(ctx, s.client, []string{prefix + r.key}, arguments...))
		}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// request returns the script that leases slots to a subject, and its arguments.
func (s *shared) request(of *subject, used, want, most int, c class) (*redis.Script, []any) {
	if of.member != nil {
		return s.parts, s.partArguments(of.member, used, want, c)
	}
	return s.script, s.arguments(used, want, most)
}

// tokens draws n tokens from the bucket under the key: all or none.
func (s *shared) tokens(key string, interval time.Duration, burst, n int) (got int, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	res, err := s.limiter.AllowN(ctx, prefix+key, redis_rate.Limit{Rate: 1, Period: interval, Burst: burst}, n)
	if err != nil {
		s.failed(err)
		return 0, 0, fmt.Errorf("drawing from a rate: %w", err)
	}
	return res.Allowed, max(res.RetryAfter, time.Millisecond), nil
}
