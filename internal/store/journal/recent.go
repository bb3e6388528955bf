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
	// recentOne and recentAll limit the cached bytes of one log and of all logs.
	recentOne = 4 << 20
	recentAll = 16 << 20
)

// recent caches messages that this process has stored in logs that are also read here, until they are
// read. Most readers of a log are in the same process as its writer, so they need not read new
// messages back from NATS. A message is cached once NATS has acknowledged it. Each cached message is
// known to follow the one before, because its writer stored it on that condition. Other messages are
// read from NATS. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	logs  map[logKey]*segment
	bytes int
}

type logKey struct {
	id  schema.BatchID
	log Log
}

// segment holds consecutive messages of a log.
type segment struct {
	subscriptions map[*subscription]struct{}
	before        uint64 // sequence of the message before the first one; 0 means none
	newest        uint64 // sequence of the last message that was stored here
	messages      []bus.Message
	bytes         int
}

// subscription is a reader of a log. Its methods are safe for concurrent use, except for page, which
// must be called from one goroutine.
type subscription struct {
	r   *recent
	key logKey
	// wake is signaled when messages were stored.
	wake chan struct{}
	next uint64 // next sequence to read; guarded by r.mu
	// elsewhere is set if another process has stored a message.
	elsewhere atomic.Bool
}

// join creates a subscription to a log.
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

// leave ends the subscription and releases its messages. It may be called more than once.
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

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// appended is the callback for [logs.listen]. It wakes the reader for messages of other processes.
func (s *subscription) appended(sequence uint64) {
	s.r.mu.Lock()
	l := s.r.logs[s.key]
	here := l != nil && sequence <= l.newest
	s.r.mu.Unlock()
	if !here {
		s.elsewhere.Store(true)
		s.signal()
	}
}

// put caches a message that was stored after the one with the sequence before, if the log has readers.
// It copies data.
func (r *recent) put(id schema.BatchID, log Log, before, sequence uint64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.logs[logKey{id, log}]
	if l == nil {
		return
	}
	if len(l.messages) > 0 && l.last() != before {
		r.drop(l, len(l.messages)) // another writer appended in between
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
		s.signal()
	}
}

// page returns the cached messages starting at the sequence from, or none if the first of them is not
// cached. Their data is shared and must not be changed. missed reports whether messages that were
// stored here are not cached.
func (s *subscription) page(from uint64) (found []bus.Message, missed bool) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	l := s.r.logs[s.key]
	if l == nil {
		return nil, true // the subscription has ended
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

// last returns the sequence of the last cached message, or 0.
func (l *segment) last() uint64 {
	if len(l.messages) == 0 {
		return 0
	}
	return l.messages[len(l.messages)-1].Sequence
}

// trim removes the messages that all readers have read.
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

// drop removes the first n messages.
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
