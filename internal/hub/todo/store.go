package todo

import (
	"container/list"
	"sync"
	"time"
)

// Limits of the store.
const (
	maxSessions = 10_000
	maxBytes    = 64 << 20 // total of all sessions
	maxIdle     = 24 * time.Hour
)

// item is one task.
type item struct{ ID, Content, Status string }

func (i item) size() int { return len(i.ID) + len(i.Content) + len(i.Status) }

// entry is the list of a session.
type entry struct {
	session string
	items   []item
	bytes   int
	used    time.Time
}

// store holds the lists of all sessions.
type store struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	order   *list.List               // most recently used first
	bytes   int
}

func newStore(now func() time.Time) *store {
	return &store{now: now, entries: map[string]*list.Element{}, order: list.New()}
}

// put replaces the list of a session. The caller must not change items afterwards.
func (s *store) put(session string, items []item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[session]; e != nil {
		s.drop(e)
	}
	if len(items) > 0 {
		n := &entry{session: session, items: items, bytes: len(session), used: s.now()}
		for _, i := range items {
			n.bytes += i.size()
		}
		s.entries[session] = s.order.PushFront(n)
		s.bytes += n.bytes
	}
	s.expire()
}

// get returns the list of a session, empty if it has none.
func (s *store) get(session string) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.entries[session]
	if e == nil {
		return nil
	}
	n := e.Value.(*entry)
	n.used = s.now()
	s.order.MoveToFront(e)
	return n.items
}

// expire drops the lists beyond the limits.
func (s *store) expire() {
	oldest := s.now().Add(-maxIdle)
	for e := s.order.Back(); e != nil; e = s.order.Back() {
		if s.order.Len() <= maxSessions && s.bytes <= maxBytes && e.Value.(*entry).used.After(oldest) {
			return
		}
		s.drop(e)
	}
}

func (s *store) drop(e *list.Element) {
	n := s.order.Remove(e).(*entry)
	delete(s.entries, n.session)
	s.bytes -= n.bytes
}
