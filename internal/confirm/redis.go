package confirm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Redis is the gate before the ledger. It can be standalone, behind Sentinel or a Cluster.
//
// Each token is one key: a hash with the approval, the expiry and the attempt that took it. A
// token is never split over two keys, so an eviction or an expiry removes it as a whole and
// never makes a taken one valid again.
type Redis struct {
	client          redis.UniversalClient
	now             func() time.Time
	mint, grab, ask *redis.Script
	health          health
	lost            lost
}

// takeScript takes a token in one step and returns the outcome. A client that lost the answer may
// send it again.
//
//	KEYS[1] token   ARGV[1] attempt   ARGV[2] now (ms)   ARGV[3] retention of a taken token (ms)   ARGV[4] approval
const takeScript = `
local t = redis.call('HMGET', KEYS[1], 'approval', 'expires', 'attempt')
if t[1] ~= ARGV[4] then return 'unknown' end
if t[3] then
  if t[3] == ARGV[1] then return 'ok' end
  return 'spent'
end
if tonumber(ARGV[2]) >= tonumber(t[2]) then return 'expired' end
redis.call('HSET', KEYS[1], 'attempt', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 'ok'`

// mintScript stores a token if the key does not exist.
const mintScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'approval', ARGV[1], 'expires', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

// keep is the retention of a token that was taken or has expired.
const keep = 24 * time.Hour

// key returns the key of a token. It has a hash tag, so that related keys added later share
// its slot.
func key(hash string) string { return "callyard:token:{" + hash + "}" }

// OpenRedis connects to Redis and waits until it answers or ctx ends.
func OpenRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	client, err := o.Client()
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close() // the ping failed
		return nil, fmt.Errorf("reaching Redis at %s: %w; %s", strings.Join(o.Addresses, ", "), err, fixOf(err))
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	r := &Redis{client: client, now: now, mint: redis.NewScript(mintScript), grab: redis.NewScript(takeScript), ask: redis.NewScript(probeScript)}
	r.watch(o.Log)
	return r, nil
}

// fixOf returns advice for a failed connection to Redis.
func fixOf(err error) string {
	if refused := redis.Error(nil); errors.As(err, &refused) {
		return "Redis answers, but refuses: correct redis.username and redis.password_file, or the state of Redis"
	}
	return "start one there, or set another address with --redis"
}

// put stores a minted token.
func (r *Redis) put(ctx context.Context, hash string, approvalID schema.ApprovalID, ttl time.Duration) error {
	expires := strconv.FormatInt(r.now().Add(ttl).UnixMilli(), 10)
	// A retry of the script by the client finds its own key. 0 is no error, because no other
	// caller can have minted the same 256 random bits.
	if err := r.mint.Run(ctx, r.client, []string{key(hash)}, string(approvalID), expires, (ttl + keep).Milliseconds()).Err(); err != nil {
		return r.failed(ctx, "minting a token", err)
	}
	r.health.works()
	return nil
}

// take takes a token for an attempt. The same attempt can take it again.
func (r *Redis) take(ctx context.Context, hash, attempt string, a *ledger.Approval) error {
	got, err := r.grab.Run(ctx, r.client, []string{key(hash)}, attempt, r.now().UnixMilli(), keep.Milliseconds(), string(a.ID)).Text()
	if err != nil {
		return r.failed(ctx, "taking a token", err)
	}
	r.health.works()
	switch got {
	case "ok":
		return nil
	case "spent":
		return &SpentError{a}
	case "expired":
		return &ExpiredError{a}
	}
	return &LostError{a}
}

// failed returns the error for a failed operation on a token.
func (r *Redis) failed(ctx context.Context, doing string, err error) error {
	if ctx.Err() == nil { // otherwise the caller gave up
		r.health.fails(err)
	}
	return fmt.Errorf("%w: %s: %w", ErrDown, doing, err)
}

// Close closes the connections to Redis.
func (r *Redis) Close() {
	r.health.close()
	_ = r.client.Close() // fails only if already closed
}
