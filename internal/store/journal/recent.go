package journal

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// recentOne and recentAll bound the bytes that are kept of one log and of all.
	recentOne = 4 << 20
	recentAll = 16 << 20
)

// recent keeps the messages that this process has just stored in logs that somebody
// here reads, until they are read: most readers of a log sit next to its writer, and need
// not ask NATS for what it has only now been given. A message gets here once NATS has
// acknowledged it, and each is known to follow the one before: its writer stored it on
// that condition. What is not here is asked for. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	logs  map[logKey]*segment
	bytes int
}

type logKey struct {
	id  schema.BatchID
	log Log
}

// segment is messages of a log that follow each other.
type segment struct {
	subscriptions map[*subscription]struct{}
	before        uint64 // sequence of the message before the first one; 0: there is none
	newest        uint64 // that of the last one that was stored here
	messages      []bus.Message
	bytes         int
}

// subscription is a reader of a log. Its methods may be called at any time but for page, which
// is for one goroutine.
type subscription struct {
	r   *recent
	key logKey
	// wake has a word when messages were stored here.
	wake chan struct{}
	next uint64 // under r.mu: the sequence it reads on from
	// elsewhere says that somebody else has stored something.
	elsewhere atomic.Bool
}

// join opens a seat at a log.
func (r *recent) join(id schema.BatchID, log Log) *subscription {
	s := &subscription{r: r, key: logKey{id, log}, wake: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logs == nil {
		r.logs = make(map[logKey]*segment)
	}
	l := r.logs[s.key]
	if l == nil {
		l = &segment{subscriptions: make(map[*subscription]struct{})}
		r.logs[s.key] = l
	}
	l.subscriptions[s] = struct{}{}
	return s
}

// leave gives the seat back, once or more often; nothing is kept for it any more.
func (s *subscription) leave() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	l := s.r.logs[s.key]
	if l == nil {
		return
	}
	if delete(l.subscriptions, s); len(l.subscriptions) > 0 {
		s.r.trim(l)
		return
	}
	s.r.drop(l, len(l.messages))
	delete(s.r.logs, s.key)
}

func (s *subscription) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// hear is for [Streams.OnAppend]: it rings for what was not stored here.
func (s *subscription) hear(sequence uint64) {
	s.r.mu.Lock()
	l := s.r.logs[s.key]
	here := l != nil && sequence <= l.newest
	s.r.mu.Unlock()
	if !here {
		s.elsewhere.Store(true)
		s.ring()
	}
}

// put keeps a message that was stored after the one with the sequence before, where
// somebody reads the log. data stays the caller's.
func (r *recent) put(id schema.BatchID, log Log, before, sequence uint64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.logs[logKey{id, log}]
	if l == nil {
		return
	}
	if len(l.messages) > 0 && l.last() != before {
		r.drop(l, len(l.messages)) // another writer was there meanwhile
	}
	if len(l.messages) == 0 {
		l.before = before
	}
	l.newest = sequence
	for len(l.messages) > 0 && l.bytes+len(data) > recentOne {
		r.drop(l, 1)
	}
	if r.bytes+len(data) <= recentAll {
		l.messages = append(l.messages, bus.Message{Sequence: sequence, Data: bytes.Clone(data)})
		l.bytes += len(data)
		r.bytes += len(data)
	}
	for s := range l.subscriptions {
		s.ring()
	}
}

// page returns the messages from the sequence on that are here, none when the first of
// them is not. Their data must not be changed: others read it too. missed says that
// some were stored here all the same.
func (s *subscription) page(from uint64) (found []bus.Message, missed bool) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	l := s.r.logs[s.key]
	if l == nil {
		return nil, true // it was given back
	}
	s.next = max(from, 1)
	s.r.trim(l)
	if s.next <= l.before || s.next > l.last() {
		return nil, s.next <= l.newest
	}
	at, _ := slices.BinarySearchFunc(l.messages, s.next, func(m bus.Message, from uint64) int {
		if m.Sequence < from {
			return -1
		}
		return 1
	})
	return slices.Clone(l.messages[at:]), false
}

// last is the sequence of the last message that is here, or 0.
func (l *segment) last() uint64 {
	if len(l.messages) == 0 {
		return 0
	}
	return l.messages[len(l.messages)-1].Sequence
}

// trim forgets what all have read.
func (r *recent) trim(l *segment) {
	n := 0
	for ; n < len(l.messages); n++ {
		for s := range l.subscriptions {
			if s.next <= l.messages[n].Sequence {
				r.drop(l, n)
				return
			}
		}
	}
	r.drop(l, n)
}

// drop forgets the first n messages.
func (r *recent) drop(l *segment, n int) {
	if n == 0 {
		return
	}
	for i := range l.messages[:n] {
		l.before = l.messages[i].Sequence
		l.bytes -= len(l.messages[i].Data)
		r.bytes -= len(l.messages[i].Data)
	}
	l.messages = slices.Delete(l.messages, 0, n)
}
