package rest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"
)

// snapshot makes one picture of the fleet for all streams that ask for one at the same
// time: a change wakes each of them, and a picture for each would take as long as
// there are streams.
type snapshot struct {
	mu  sync.Mutex
	now *picture // that is being made
	// next is for those who came after now was begun: it may miss what they heard of.
	next *picture
}

type picture struct {
	done chan struct{}
	data []byte
}

// get returns the fleet as it is now, or a moment later, encoded. Nobody may change it.
func (s *snapshot) get(fleet func() Fleet) []byte {
	s.mu.Lock()
	if s.now != nil {
		if s.next == nil {
			s.next = &picture{done: make(chan struct{})}
			p := s.next
			before := s.now
			s.mu.Unlock()
			<-before.done
			s.make(p, fleet)
			return p.data
		}
		p := s.next
		s.mu.Unlock()
		<-p.done
		return p.data
	}
	p := &picture{done: make(chan struct{})}
	s.now = p
	s.mu.Unlock()
	s.make(p, fleet)
	return p.data
}

// make makes a picture; from here on others are for the next one.
func (s *snapshot) make(p *picture, fleet func() Fleet) {
	s.mu.Lock()
	if s.next == p {
		s.now, s.next = p, nil
	}

	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.now == p {
			s.now = nil
		}
		close(p.done)
	}()
	p.data = bytes.TrimSuffix(encode(fleet()), []byte("\n"))
}

// settleFor lets changes that follow each other become one event.
const settleFor = 100 * time.Millisecond

var errLeft = errors.New("the client left")

// settle waits for more changes that may follow the first one.
func (e *events) settle(ctx context.Context, changes <-chan struct{}) error {
	t := time.NewTimer(settleFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return errLeft
	}
	select {
	case <-changes: // it is in the event
	default:
	}
	return nil
}
