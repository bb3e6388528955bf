package sessiontable

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/callyard/callyard/pkg/schema"
)

// owner is the principal of sessions.
type owner struct {
	tenant    schema.TenantID
	principal string
}

// shares limits the bytes that each principal adds to the table: [share] at once, and again within
// the time for which rows are kept. The zero value is ready to use. It is safe for concurrent use.
type shares struct {
	mu      sync.Mutex
	by      map[owner]*rate.Limiter
	pruneAt int // number of principals at which those with their whole share are removed
}

// minPrune is the least number of principals at which those with their whole share are removed.
const minPrune = 1024

// take adds n bytes for a principal. It reports whether they fit.
func (s *shares) take(o owner, n int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by, s.pruneAt = make(map[owner]*rate.Limiter), minPrune
	}
	if len(s.by) >= s.pruneAt {
		maps.DeleteFunc(s.by, func(_ owner, l *rate.Limiter) bool { return l.TokensAt(now) >= share })
		s.pruneAt = max(minPrune, 2*len(s.by))
	}
	l := s.by[o]
	if l == nil {
		l = rate.NewLimiter(share/rate.Limit(kept.Seconds()), share)
		s.by[o] = l
	}
	return l.AllowN(now, n)
}
