package servers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/sleep"
)

// snapshot shares one encoded fleet among all streams that a change has woken. Encoding it for each
// stream would take time proportional to their number.
type snapshot struct {
	mu   sync.Mutex
	last *encodedFleet
}

// snapshots are the snapshots for callers who see different parts of the fleet, by the key of
// [catalog.Seen.State]. It is safe for concurrent use.
type snapshots struct {
	mu sync.Mutex
	by map[string]*snapshot
}

// maxSnapshots limits the snapshots that are kept. When it is exceeded, all are rebuilt.
const maxSnapshots = 256

func (s *snapshots) of(key string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.by[key]
	if one == nil {
		if s.by == nil || len(s.by) >= maxSnapshots {
			s.by = make(map[string]*snapshot)
		}
		one = new(snapshot)
		s.by[key] = one
	}
	return one
}

type encodedFleet struct {
	began time.Time
	done  chan struct{}
	data  []byte
}

// get returns the encoded fleet as of some time after since. Callers must not modify it.
func (s *snapshot) get(since time.Time, fleet func() Fleet) []byte {
	s.mu.Lock()
	p := s.last
	if p != nil && !p.began.Before(since) {
		s.mu.Unlock()
		<-p.done
		return p.data
	}
	p = &encodedFleet{began: time.Now(), done: make(chan struct{})}
	s.last = p
	s.mu.Unlock()
	defer close(p.done)
	p.data = httpapi.EncodeInline(fleet())
	return p.data
}

// A change is sent after a random delay between minSettle and maxSettle, together with those that
// follow it. The delay spreads the work of many streams, so that other requests are served in
// between.
const (
	minSettle = 50 * time.Millisecond
	maxSettle = 500 * time.Millisecond
)

// settle waits for more changes that may follow the first one. It returns false if the client
// disconnects.
func settle(ctx context.Context) bool {
	return sleep.For(minSettle+rand.N(maxSettle-minSettle), ctx.Done())
}
