package adapt

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Kept is the last good reading of something that changes elsewhere. It is safe for
// concurrent use.
type Kept[T any] struct {
	Fresh time.Duration // how long a reading counts as just made
	// Failed is told, once for each failure that reads differently, when it cannot be
	// read again.
	Failed func(err error)

	last    atomic.Pointer[T]
	mu      sync.Mutex // one reading at a time
	read    time.Time
	grumble string // the last failure that was told
}

// Last is the last good reading, nil where there is none.
func (k *Kept[T]) Last() *T { return k.last.Load() }

// Get returns a fresh reading. Where it cannot be read any more, what was there last
// stays. load gets that, and returns it where nothing has changed.
func (k *Kept[T]) Get(ctx context.Context, load func(ctx context.Context, last *T) (*T, error)) (*T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.last.Load()
	if last != nil && time.Since(k.read) < k.Fresh {
		return last, nil
	}
	next, err := load(ctx, last)
	switch {
	case err == nil:
		k.read, k.grumble = time.Now(), ""
		k.last.Store(next)
		return next, nil
	case last == nil || ctx.Err() != nil:
		return nil, err
	}
	if k.grumble != err.Error() {
		k.grumble = err.Error()
		k.Failed(err)
	}
	return last, nil
}
