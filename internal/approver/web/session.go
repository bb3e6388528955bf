package web

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// session is one person's stay after a sign-in.
type session struct {
	who     schema.Principal
	key     string    // the hash of the API key that they signed in with; "" for a provider
	began   time.Time // its groups are of then
	since   time.Time // when they last proved who they are; zero where nobody knows
	expires time.Time
	seen    time.Time // when they last asked for something themselves
}

// maxSessions bounds the memory; beyond it the session that ends first is evicted.
const maxSessions = 10_000

// sessions keeps who is signed in, under the hash of the cookie: a copy of the
// memory signs nobody in.
type sessions struct {
	now  func() time.Time
	idle time.Duration // how long a session lasts in which nobody asks for anything; 0: no limit
	mu   sync.Mutex
	by   map[[sha256.Size]byte]session
}

func newSessions(now func() time.Time, idle time.Duration) *sessions {
	return &sessions{now: now, idle: idle, by: make(map[[sha256.Size]byte]session)}
}

func (s *sessions) put(cookie string, in session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= maxSessions {
		s.evictLocked()
	}
	in.seen = s.now()
	s.by[sha256.Sum256([]byte(cookie))] = in
}

// over says that a session has ended by time.
func (s *sessions) over(in session, now time.Time) bool {
	return !now.Before(in.expires) || s.idle > 0 && now.Sub(in.seen) >= s.idle
}

func (s *sessions) evictLocked() {
	now := s.now()
	var first [sha256.Size]byte
	var ends time.Time
	for sum, in := range s.by {
		if s.over(in, now) {
			delete(s.by, sum)
		} else if ends.IsZero() || in.expires.Before(ends) {
			first, ends = sum, in.expires
		}
	}
	if len(s.by) >= maxSessions {
		delete(s.by, first)
	}
}

// get finds the session of a cookie. byHand says that the person asked for
// something, and not a page that keeps itself up to date.
func (s *sessions) get(cookie string, byHand bool) (session, bool) {
	sum := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	defer s.mu.Unlock()
	in, ok := s.by[sum]
	if !ok {
		return session{}, false
	}
	now := s.now()
	if s.over(in, now) {
		delete(s.by, sum)
		return session{}, false
	}
	if byHand {
		in.seen = now
		s.by[sum] = in
	}
	return in, true
}

func (s *sessions) drop(sum [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, sum)
}
