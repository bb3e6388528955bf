package session

import (
	"log/slog"
	"sync"
	"testing"
	"time"
)

// unsentLink is a link that has sent nothing yet.
type unsentLink struct {
	noLink
	s *session
}

func (l *unsentLink) send(r *Running) bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	_, ok := l.s.register(r)
	return ok
}

func (l *unsentLink) handedOver() int64 { return 0 }

// The race detector finds a fault.
func TestACallMayBeCanceledWhileItsSessionIsLost(t *testing.T) {
	for range 20_000 {
		p := newPool(Config{}, slog.New(slog.DiscardHandler), func() {})
		s := newSession(p)
		s.link = &unsentLink{s: s}
		p.live = []*session{s}
		ended := make(chan Outcome, 1)
		r := p.Do(&Request{Name: "t", Timeout: time.Minute}, func(_ *Request, o Outcome) { ended <- o })
		var both sync.WaitGroup
		both.Go(func() {
			s.retire(errClosed)
			p.mu.Lock()
			p.drop(s)
			p.mu.Unlock()
			s.sendElsewhere()
		})
		both.Go(r.Cancel)
		both.Wait()
		if o := <-ended; o.Err == nil {
			t.Fatal("the canceled call has a result")
		}
	}
}
