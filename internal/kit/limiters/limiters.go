// Package limiters keeps a rate limiter per key, such as an address or a principal, in a bounded
// table.
//
// Keys that are within their limit again are soon removed. The cost of an event does not grow
// with the number of keys.
package limiters

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Table holds a limiter per key. It is safe for concurrent use.
type Table[K comparable] struct {
	every time.Duration
	burst int
	most  int

	mu sync.Mutex
	by map[K]*rate.Limiter
}

// New returns a table that holds up to most keys. Each key allows a burst of events, then one event per
// interval every.
func New[K comparable](every time.Duration, burst, most int) *Table[K] {
	return &Table[K]{every: every, burst: burst, most: most, by: make(map[K]*rate.Limiter)}
}

// Count records an event of the key, and returns the delay before the next one; zero means that
// this event is within the limit.
func (t *Table[K]) Count(key K) time.Duration {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.by[key]
	if l == nil {
		if len(t.by) >= t.most {
			t.dropLocked(now)
		}
		l = rate.NewLimiter(rate.Every(t.every), t.burst)
		t.by[key] = l
	}
	if l.AllowN(now, 1) {
		return 0
	}
	missing := 1 - l.TokensAt(now)
	return max(time.Duration(missing*float64(t.every)), time.Millisecond)
}

// Len returns the number of keys in the table.
func (t *Table[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.by)
}

// dropLocked removes keys whose limiter has refilled, because they are equivalent to new ones. If
// that frees too few entries, it clears the table, so that a full table is not searched for each
// event.
func (t *Table[K]) dropLocked(now time.Time) {
	for key, l := range t.by {
		if l.TokensAt(now) >= float64(t.burst) {
			delete(t.by, key)
		}
	}
	if len(t.by) > t.most/2 {
		clear(t.by)
	}
}
