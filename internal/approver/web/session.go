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

// maxSessions limits the number of sessions, and maxSessionsEach those of one person; see [evict].
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
	now := s.now()
	evict(s.by, in.who.ID(), func(in session) tenure { return tenure{in.who.ID(), in.expires, s.over(in, now)} })
	in.seen = now
	s.by[sha256.Sum256([]byte(cookie))] = in
}

// over reports whether a session has expired.
func (s *sessions) over(in session, now time.Time) bool {
	return !now.Before(in.expires) || s.idle > 0 && now.Sub(in.seen) >= s.idle
}

// tenure is what eviction must know of an entry of a table: its person, when it ends, and whether it has
// expired.
type tenure struct {
	person schema.PrincipalID
	ends   time.Time
	over   bool
}

// evict removes expired entries of a table with an entry for each session, and one more if there is no
// space for another entry of the person: the one that ends first, of that person or of all.
func evict[E any](by map[[sha256.Size]byte]E, person schema.PrincipalID, of func(E) tenure) {
	own := 0
	var first, firstOwn [sha256.Size]byte
	var ends, endsOwn time.Time
	for sum, e := range by {
		t := of(e)
		if t.over {
			delete(by, sum)
			continue
		}
		if ends.IsZero() || t.ends.Before(ends) {
			first, ends = sum, t.ends
		}
		if t.person != person {
			continue
		}
		if own++; endsOwn.IsZero() || t.ends.Before(endsOwn) {
			firstOwn, endsOwn = sum, t.ends
		}
	}
	switch {
	case own >= maxSessionsEach:
		delete(by, firstOwn)
	case len(by) >= maxSessions:
		delete(by, first)
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
