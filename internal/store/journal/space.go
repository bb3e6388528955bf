package journal

import (
	"context"
	"fmt"
	"sync"

	"github.com/callyard/callyard/pkg/bus"
)

// space refuses calls a little before their stream is full, so that what ends a
// journal still fits: seals, and the messages by which writers take over. It refuses
// them too when results fill up, since each call will want one.
type space struct {
	mu   sync.Mutex
	left int64 // what may be appended before it is looked again
}

const reserve = 16 // one part in this number is kept free

// take counts bytes that are about to be appended.
func (s *space) take(ctx context.Context, logs *logs, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left -= int64(n); s.left >= 0 {
		return nil
	}
	left := int64(1) << 40
	for _, log := range []Log{LogCalls, LogResults} {
		state, err := logs.of(log).State(ctx)
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
		// Other processes append too: half of what is free, a few times.
		left = min(left, free/2)
	}
	s.left = left - int64(n)
	return nil
}
