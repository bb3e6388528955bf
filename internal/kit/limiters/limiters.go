// Package limiters keeps a rate limiter for each of many keys, such as addresses or
// principals, in a table that stays small.
//
// It promises that a key which is within its limit again costs no memory for long, and that
// many keys cost a caller no more than a few do. It refuses to know what is limited.
package limiters

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Table has a limiter for each key. It is safe for concurrent use.
type Table[K comparable] struct {
	every time.Duration
	burst int
	most  int

	mu sync.Mutex
	by map[K]*rate.Limiter
}

// New returns a table of at most that many keys. Of each key, burst events may come at once,
// then one each every.
func New[K comparable](every time.Duration, burst, most int) *Table[K] {
	return &Table[K]{every: every, burst: burst, most: most, by: make(map[K]*rate.Limiter)}
}

// Count notes an event of the key, and returns how long the next one has to wait: zero while
// this one is within the limit.
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

// Len is the number of keys that are kept.
func (t *Table[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.by)
}

// dropLocked makes room: keys whose limit has filled up again are as good as new. When
// that frees too little, all are forgotten at once, so that a table full of keys is not
// searched for each event.
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
