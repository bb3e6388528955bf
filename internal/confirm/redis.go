package confirm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis keeps tokens in Redis: standalone, behind Sentinel or in a Cluster.
//
// A token is one key, a hash with the approval, the binding, the expiry and the
// attempt that spent it. Nothing is ever split over two keys, so an eviction or
// an expiry forgets a token as a whole and never makes a spent one good again.
type Redis struct {
	client     redis.UniversalClient
	now        func() time.Time
	mint, take *redis.Script
}

var _ Store = (*Redis)(nil)

// takeScript spends a token in one step. It answers what became of it, the
// approval and the binding. A client that lost the answer may send it again.
//
//	KEYS[1] token   ARGV[1] attempt, "" to look only   ARGV[2] now (ms)   ARGV[3] how long a spent one is kept (ms)
const takeScript = `
local t = redis.call('HMGET', KEYS[1], 'approval', 'binding', 'expires', 'attempt')
if not t[1] then return {'unknown', '', ''} end
if t[4] then
  if t[4] == ARGV[1] then return {'ok', t[1], t[2]} end
  return {'spent', t[1], ''}
end
if tonumber(ARGV[2]) >= tonumber(t[3]) then return {'expired', t[1], ''} end
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[1], 'attempt', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return {'ok', t[1], t[2]}`

// mintScript stores a token where there is none.
const mintScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'approval', ARGV[1], 'binding', ARGV[2], 'expires', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1`

// key carries a hash tag, so that keys which may come beside it share its slot.
func key(hash string) string { return "callyard:token:{" + hash + "}" }

// OpenRedis opens the store and waits until Redis answers, or ctx ends.
func OpenRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		_ = client.Close() // what failed is the ping
		return nil, fmt.Errorf("reaching Redis at %v: %w; start one there, or name another with --redis", o.Addresses, err)
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Redis{client, now, redis.NewScript(mintScript), redis.NewScript(takeScript)}, nil
}

// Mint makes a token; see [Store].
func (r *Redis) Mint(ctx context.Context, approvalID, binding string, ttl time.Duration) (string, error) {
	if err := mintable(approvalID, ttl); err != nil {
		return "", err
	}
	token, hash := newToken()
	expires := strconv.FormatInt(r.now().Add(ttl).UnixMilli(), 10)
	// A repetition of the script by the client finds its own key: 0 is no fault,
	// because nobody else can have minted 256 random bits.
	if err := r.mint.Run(ctx, r.client, []string{key(hash)}, approvalID, binding, expires, (ttl + keep).Milliseconds()).Err(); err != nil {
		return "", down("minting a token", err)
	}
	return token, nil
}

// Find says what a token is for; see [Store].
func (r *Redis) Find(ctx context.Context, token string) (Grant, error) {
	if !WellFormed(token) {
		return Grant{}, ErrUnknown
	}
	return r.run(ctx, token, "")
}

// Take spends a token; see [Store].
func (r *Redis) Take(ctx context.Context, token, attempt string) (Grant, error) {
	if err := takeable(token, attempt); err != nil {
		return Grant{}, err
	}
	return r.run(ctx, token, attempt)
}

func (r *Redis) run(ctx context.Context, token, attempt string) (Grant, error) {
	got, err := r.take.Run(ctx, r.client, []string{key(Hash(token))}, attempt, r.now().UnixMilli(), keep.Milliseconds()).StringSlice()
	if err != nil {
		return Grant{}, down("taking a token", err)
	}
	if len(got) != 3 {
		return Grant{}, down("taking a token", fmt.Errorf("the script answered %d fields", len(got)))
	}
	switch got[0] {
	case "ok":
		return Grant{got[1], got[2]}, nil
	case "spent":
		return Grant{}, &SpentError{got[1]}
	case "expired":
		return Grant{}, &ExpiredError{got[1]}
	}
	return Grant{}, ErrUnknown
}

// Close closes the connections to Redis.
func (r *Redis) Close() { _ = r.client.Close() } // it fails only when it was closed before
