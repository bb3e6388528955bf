package sessiontable

import (
	"maps"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// owner is the principal of sessions.
type owner struct {
	tenant    schema.TenantID
	principal string
}

// shares limits the bytes that each principal adds to the table. Each has a bucket that drains
// evenly, by [share] within the time for which rows are kept. The zero value is ready to use. It is
// safe for concurrent use.
type shares struct {
	mu      sync.Mutex
	by      map[owner]level
	pruneAt int // number of principals at which the empty buckets are removed
}

// level is the content of a bucket at a time.
type level struct {
	bytes float64
	at    time.Time
}

// minPrune is the least number of principals at which empty buckets are removed.
const minPrune = 1024

func (l level) drained(now time.Time) float64 {
	return max(0, l.bytes-share*float64(now.Sub(l.at))/float64(kept))
}

// take adds n bytes to the bucket of a principal. It reports whether they fit.
func (s *shares) take(o owner, n int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by, s.pruneAt = make(map[owner]level), minPrune
	}
	bytes := s.by[o].drained(now) + float64(n)
	if bytes > share {
		return false
	}
	if len(s.by) >= s.pruneAt {
		maps.DeleteFunc(s.by, func(_ owner, l level) bool { return l.drained(now) == 0 })
		s.pruneAt = max(minPrune, 2*len(s.by))
	}
	s.by[o] = level{bytes, now}
	return true
}
