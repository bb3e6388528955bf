package session

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// keep holds one session of the pool for as long as the pool is open, and
// replaces it when it is lost.
func (p *Pool) keep(place int) {
	// Where sessions are wanted on demand only, the first place starts once to
	// learn what the server offers.
	learn := place == 0
	for p.awaitDemand(learn) {
		s, err := p.open()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			if !p.rest(p.startFailed(place, err)) {
				return
			}
			continue
		}
		p.join(s)
		if learn {
			p.learned()
			learn = false
		}
		lost := p.watch(s)
		p.leave(s)
		p.work.Go(func() { p.part(s) })
		if p.ctx.Err() != nil {
			return
		}
		if lost && !p.rest(p.sessionLost(place, s)) {
			return
		}
	}
}

// awaitDemand waits until a session is wanted; false when the pool is closed.
func (p *Pool) awaitDemand(learn bool) bool {
	for {
		p.mu.Lock()
		parked, flip := p.parked, p.flip
		p.mu.Unlock()
		if p.ctx.Err() != nil {
			return false
		}
		if !parked || learn {
			return true
		}
		select {
		case <-flip:
		case <-p.ctx.Done():
			return false
		}
	}
}

// rest waits out the pause before the next attempt.
func (p *Pool) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// unpark lets sessions start again. The caller holds p.mu.
func (p *Pool) unpark() {
	if p.parked {
		p.parked = false
		p.flipLocked()
	}
}

func (p *Pool) flipLocked() {
	close(p.flip)
	p.flip = make(chan struct{})
}

// park takes all sessions out of use until a call comes, unless one is here.
func (p *Pool) park() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active.Load() > 0 || p.waiting > 0 {
		return false
	}
	p.parked = true
	p.live = nil
	p.flipLocked()
	return true
}

// learned parks a pool on demand again once its definitions are known.
func (p *Pool) learned() {
	p.mu.Lock()
	parked := p.parked
	p.mu.Unlock()
	if parked && p.park() {
		p.log.Debug("server stopped until it is called")
	}
}

// join puts a session into use.
func (p *Pool) join(s *session) {
	p.mu.Lock()
	p.live = append(p.live, s)
	p.greeted(s)
	p.stirWatches()
	p.mu.Unlock()
	if s.reread {
		s.listChanged() // it may be a newer program than the last one
	}
	p.log.Info("session ready", "protocol", s.about.ProtocolVersion, "took", time.Since(s.born))
	p.pump()
	p.changed()
}

// greeted notes that the server is there, and what it said of itself. The
// caller holds p.mu.
func (p *Pool) greeted(s *session) {
	p.state, p.fault, p.tail = schema.StateInitialized, "", ""
	p.protocol = s.about.ProtocolVersion
	if info := s.about.ServerInfo; info != nil {
		p.title, p.server = info.Title, info.Version
		if p.title == "" {
			p.title = info.Name
		}
	}
}

// leave takes a session out of use.
func (p *Pool) leave(s *session) {
	s.retire(errClosed)
	p.mu.Lock()
	p.drop(s)
	p.mu.Unlock()
	p.changed()
}

// drop removes a session from those in use. The caller holds p.mu.
func (p *Pool) drop(s *session) {
	for i, other := range p.live {
		if other == s {
			// The slice is replaced, never changed under a reader.
			p.live = append(append([]*session(nil), p.live[:i]...), p.live[i+1:]...)
			break
		}
	}
}

// part lets the last calls of a session end and closes it.
func (p *Pool) part(s *session) {
	<-s.empty // each call has a timer, and Close ends those that are left
	s.close()
	p.mu.Lock()
	delete(p.all, s)
	p.mu.Unlock()
}

// watch looks after a session in use. It returns true when the session was lost,
// false when it is not wanted any more.
func (p *Pool) watch(s *session) (lost bool) {
	health := time.NewTicker(p.cfg.HealthEvery)
	defer health.Stop()
	var idle <-chan time.Time
	if p.cfg.IdleStop > 0 {
		ticker := time.NewTicker(max(p.cfg.IdleStop/4, time.Millisecond))
		defer ticker.Stop()
		idle = ticker.C
	}
	for {
		p.mu.Lock()
		parked, flip := p.parked, p.flip
		p.mu.Unlock()
		if parked {
			return false
		}
		select {
		case <-s.dead:
			return true
		case <-p.ctx.Done():
			return false
		case <-flip:
		case <-s.suspect:
			p.examine(s)
		case <-health.C:
			if time.Since(time.Unix(0, s.heard.Load())) >= p.cfg.HealthEvery {
				p.examine(s)
			}
		case <-idle:
			if p.active.Load() == 0 && time.Since(time.Unix(0, p.lastUse.Load())) >= p.cfg.IdleStop && p.park() {
				p.log.Info("server stopped after being idle")
			}
		}
	}
}

// examine replaces a session that gives no sign of life.
func (p *Pool) examine(s *session) {
	heard := s.heard.Load()
	err := s.check(p.ctx)
	if err == nil {
		s.late.Store(0)
		return
	}
	if p.ctx.Err() != nil {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		if s.heard.Load() != heard {
			return // it is slow, but it talks
		}
		err = errors.New("it did not answer a health check")
	}
	s.fail(err)
}
