package journal

import (
	"context"
	"fmt"
	"sync"

	"github.com/callyard/callyard/pkg/bus"
)

// spaceGuard refuses calls shortly before their stream is full, to leave space for the messages that end a
// journal: seals, and those by which writers take over. It also refuses calls if the stream of results, or
// that of large results, is almost full, because each call will need a result.
type spaceGuard struct {
	mu   sync.Mutex
	left int64 // bytes that may be appended before the next check
}

const reserve = 16 // 1/reserve of the space is kept free

// take reserves space for an append of n bytes in each of the streams.
func (s *spaceGuard) take(ctx context.Context, n int, streams ...*bus.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left -= int64(n); s.left >= 0 {
		return nil
	}
	left := int64(1) << 40
	for _, stream := range streams {
		state, err := stream.State(ctx)
		if err != nil {
			return err
		}
		used, most := state.Bytes, state.MaxBytes
		if most <= 0 {
			continue
		}
		free := most - most/reserve - used
		if free < int64(n) {
			return fmt.Errorf("%w: %d of %d bytes are used", bus.ErrRefused, used, most)
		}
		// Other processes append too, so use half of the free space, a few times.
		left = min(left, free/2)
	}
	s.left = left - int64(n)
	return nil
}
