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
	kind   = "cached result" // of what is sealed
	// askFor bounds what a call may lose to a Redis that does not answer.
	askFor = 250 * time.Millisecond
	// askAgain is how long after that nobody asks it.
	askAgain = time.Second
)

// shared keeps results in Redis. A value is the time at which it was kept, in
// milliseconds, eight bytes, and the result, which the ring sealed.
type shared struct {
	client redis.UniversalClient
	ring   *datakey.Ring
	log    *slog.Logger
	// again is when to ask Redis again, in nanoseconds; 0: it answers.
	again atomic.Int64
	// refused says that it answers, and refuses: it is full, or forbids it.
	refused atomic.Bool
}

const stampSize = 8

func name(k key) string { return prefix + hex.EncodeToString(k[:]) }

func (s *shared) get(ctx context.Context, k key) ([]byte, time.Time, bool) {
	if !s.up() {
		return nil, time.Time{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
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
	// What cannot be opened is of a tenant that was deleted, or nobody's: the tool answers.
	body, err := s.ring.Open(ctx, b[stampSize:], kind, name(k))
	return body, at, err == nil
}

func (s *shared) put(ctx context.Context, tenant schema.TenantID, k key, body []byte, ttl time.Duration) bool {
	if !s.up() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
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

// up says whether to ask Redis. Of those that come once it may be back, one tries.
func (s *shared) up() bool {
	again := s.again.Load()
	if again == 0 {
		return true
	}
	now := time.Now().UnixNano()
	return now >= again && s.again.CompareAndSwap(again, now+int64(askAgain))
}

// answered notes whether Redis did. A caller that left says nothing about it.
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
		if s.again.Swap(time.Now().Add(askAgain).UnixNano()) == 0 {
			s.log.Warn("Redis does not answer; until it does, no results are stored and every call runs", "error", err)
		}
	}
}
