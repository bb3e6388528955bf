package mcp

import (
	"sync"
	"time"
)

// seldomEvery is the interval at which a fault that occurs again and again is logged.
const seldomEvery = time.Minute

// seldom counts a fault that one cause can repeat for each request, so that the log has it once
// per interval. The zero value is ready to use. It is safe for concurrent use.
type seldom struct {
	mu     sync.Mutex
	n      int
	logged time.Time
}

// count counts one occurrence. It returns the number of occurrences to log now, or 0 if the fault
// was logged within the interval.
func (s *seldom) count(now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if !s.logged.IsZero() && now.Sub(s.logged) < seldomEvery {
		return 0
	}
	n, s.n, s.logged = s.n, 0, now
	return n
}
