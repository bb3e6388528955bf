package cache

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	prefix = "callyard:cache:"
	kind   = "cached result" // for sealing
	// redisTimeout, the default, limits the delay of a call by a Redis that does not answer.
	redisTimeout = 250 * time.Millisecond
	// redisRetryAfter is the pause before the next request to a Redis that did not answer.
	redisRetryAfter = time.Second
)

// shared stores results in Redis. A value is the time of storage in milliseconds (eight bytes),
// followed by the sealed result.
type shared struct {
	client redis.UniversalClient
	ring   *datakey.Ring
	log    *slog.Logger
	// timeout limits each request.
	timeout time.Duration
	// again is the time of the next request to Redis, in nanoseconds; 0 means that Redis answers.
	again atomic.Int64
	// refused is set if Redis answers with an error: it is full, or access is denied.
	refused atomic.Bool
}

const stampSize = 8

func name(k key) string { return prefix + hex.EncodeToString(k[:]) }

func (s *shared) get(ctx context.Context, k key) ([]byte, time.Time, bool) {
	if !s.up() {
		return nil, time.Time{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	b, err := s.client.Get(ctx, name(k)).Bytes()
	if errors.Is(err, redis.Nil) {
		s.answered(nil)
		return nil, time.Time{}, false
	}
	if s.answered(err); err != nil || len(b) < stampSize {
		return nil, time.Time{}, false
	}
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(b)))
	// A result that cannot be decrypted belongs to a deleted tenant or is corrupt; it is a miss.
	body, err := s.ring.Open(ctx, b[stampSize:], kind, name(k))
	return body, at, err == nil
}

func (s *shared) put(ctx context.Context, tenant schema.TenantID, k key, body []byte, ttl time.Duration) bool {
	if !s.up() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	body, err := s.ring.Seal(ctx, tenant, body, kind, name(k))
	if err != nil {
		return false
	}
	b := make([]byte, 0, stampSize+len(body))
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMilli()))
	err = s.client.Set(ctx, name(k), append(b, body...), ttl).Err()
	if s.answered(err); err == nil {
		s.refused.Store(false)
	}
	return err == nil
}

// up reports whether to use Redis. After a pause, it returns true to one caller, as a probe.
func (s *shared) up() bool {
	again := s.again.Load()
	if again == 0 {
		return true
	}
	now := time.Now().UnixNano()
	return now >= again && s.again.CompareAndSwap(again, now+int64(redisRetryAfter))
}

// answered records whether Redis answered. Cancellation by the caller is not evidence of either.
func (s *shared) answered(err error) {
	if _, ok := errors.AsType[redis.Error](err); ok {
		if !s.refused.Swap(true) {
			s.log.Warn("Redis refuses to store results; every call runs", "error", err)
		}
		err = nil
	}
	switch {
	case err == nil:
		if s.again.Load() != 0 && s.again.Swap(0) != 0 {
			s.log.Info("Redis answers again; results are stored in it")
		}
	case errors.Is(err, context.Canceled):
	default:
		if s.again.Swap(time.Now().Add(redisRetryAfter).UnixNano()) == 0 {
			s.log.Warn("Redis does not answer; until it does, no results are stored and every call runs", "error", err)
		}
	}
}
