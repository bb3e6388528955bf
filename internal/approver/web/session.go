package web

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// session is the session of a signed-in person.
type session struct {
	who     schema.Principal
	key     string    // the hash of the API key of the sign-in; "" for a provider
	began   time.Time // time of the sign-in; its groups are of that time
	since   time.Time // time of the last authentication; zero if not known
	expires time.Time
	seen    time.Time // time of the last request made by the person
}

// maxSessions limits the number of sessions, and maxSessionsEach those of one person. Beyond it, the
// session that ends first is evicted: of all, or of that person.
const (
	maxSessions     = 10_000
	maxSessionsEach = 100
)

// sessions holds the sessions by the hash of their cookie, so that a memory dump does not allow
// sign-ins.
type sessions struct {
	now  func() time.Time
	idle time.Duration // the time after which an idle session ends; 0 means no limit
	mu   sync.Mutex
	by   map[[sha256.Size]byte]session
}

func newSessions(now func() time.Time, idle time.Duration) *sessions {
	return &sessions{now: now, idle: idle, by: make(map[[sha256.Size]byte]session)}
}

func (s *sessions) put(cookie string, in session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evictLocked(in.who.ID())
	in.seen = s.now()
	s.by[sha256.Sum256([]byte(cookie))] = in
}

// over reports whether a session has expired.
func (s *sessions) over(in session, now time.Time) bool {
	return !now.Before(in.expires) || s.idle > 0 && now.Sub(in.seen) >= s.idle
}

// evictLocked removes expired sessions, and one more if there is no space for another session of the
// person.
func (s *sessions) evictLocked(person schema.PrincipalID) {
	now, own := s.now(), 0
	var first, firstOwn [sha256.Size]byte
	var ends, endsOwn time.Time
	for sum, in := range s.by {
		if s.over(in, now) {
			delete(s.by, sum)
			continue
		}
		if ends.IsZero() || in.expires.Before(ends) {
			first, ends = sum, in.expires
		}
		if in.who.ID() != person {
			continue
		}
		if own++; endsOwn.IsZero() || in.expires.Before(endsOwn) {
			firstOwn, endsOwn = sum, in.expires
		}
	}
	switch {
	case own >= maxSessionsEach:
		delete(s.by, firstOwn)
	case len(s.by) >= maxSessions:
		delete(s.by, first)
	}
}

// get returns the session of a cookie. userInitiated reports whether the person made the request,
// and not a page with live updates.
func (s *sessions) get(cookie string, userInitiated bool) (session, bool) {
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
	if userInitiated {
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
