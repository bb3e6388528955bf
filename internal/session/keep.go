package session

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/pkg/schema"
)

// keeper maintains one session of a pool while the pool is open: it opens the session, monitors
// it, and replaces it when it is lost.
type keeper struct {
	pool *Pool
	// learns means that it starts once to read the definitions, even if sessions are only
	// opened on demand.
	learns bool
	fails  int // consecutive failed starts; guarded by pool.mu
	losses int // consecutive sessions lost in use; guarded by pool.mu
}

// demand records whether sessions are wanted before a call arrives. The pool's lock guards it.
type demand struct {
	parked bool          // no sessions are wanted
	flip   chan struct{} // closed and replaced when parked changes
}

func (d *demand) set(parked bool) {
	if d.parked != parked {
		d.parked = parked
		close(d.flip)
		d.flip = make(chan struct{})
	}
}

func (k *keeper) run() {
	p := k.pool
	for learn := k.learns; k.awaitDemand(learn); {
		s, err := k.open()
		if err != nil {
			if p.ctx.Err() != nil || !sleep.For(k.startFailed(err), p.ctx.Done()) {
				return
			}
			continue
		}
		k.join(s)
		if learn {
			k.learned()
			learn = false
		}
		lost := k.watch(s)
		k.leave(s)
		p.work.Go(func() { k.part(s) })
		if p.ctx.Err() != nil || lost && !sleep.For(k.sessionLost(s), p.ctx.Done()) {
			return
		}
	}
}

// awaitDemand waits until a session is wanted. It returns false if the pool is closed.
func (k *keeper) awaitDemand(learn bool) bool {
	p := k.pool
	for {
		p.mu.Lock()
		parked, flip := p.demand.parked, p.demand.flip
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

// park takes all sessions out of use until a call arrives. It returns false if a call is already
// here.
func (k *keeper) park() bool {
	p := k.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active.Load() > 0 || p.waiting > 0 {
		return false
	}
	p.demand.set(true)
	p.live = nil
	return true
}

// learned parks an on-demand pool again once its definitions are known.
func (k *keeper) learned() {
	p := k.pool
	p.mu.Lock()
	parked := p.demand.parked
	p.mu.Unlock()
	if parked && k.park() {
		p.log.Debug("server stopped until it is called")
	}
}

// join puts a session into use.
func (k *keeper) join(s *session) {
	p := k.pool
	p.mu.Lock()
	p.live = append(p.live, s)
	p.greeted(s)
	p.subscriptions.wakeLocked()
	p.mu.Unlock()
	if s.reread {
		s.listChanged() // the program may be newer than the last one
	}
	p.log.Info("session ready", "protocol", s.about.ProtocolVersion, "took", time.Since(s.born))
	p.pump()
	p.changed()
}

// greeted records that the server is ready, and the metadata from its handshake. The caller
// holds p.mu.
func (p *Pool) greeted(s *session) {
	p.state, p.fault, p.tail = schema.StateInitialized, "", ""
	p.protocol = bounded(s.about.ProtocolVersion)
	if info := s.about.ServerInfo; info != nil {
		p.title, p.server = bounded(info.Title), bounded(info.Version)
		if p.title == "" {
			p.title = bounded(info.Name)
		}
	}
}

// leave takes a session out of use.
func (k *keeper) leave(s *session) {
	p := k.pool
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
			// Copy the slice, because readers may hold the old one.
			p.live = append(append([]*session(nil), p.live[:i]...), p.live[i+1:]...)
			break
		}
	}
}

// part waits until the last calls of a session have ended and closes it.
func (k *keeper) part(s *session) {
	p := k.pool
	<-s.empty // each call has a timer, and Close ends the remaining ones
	s.close()
	p.mu.Lock()
	delete(p.all, s)
	p.mu.Unlock()
}

// watch monitors a session in use. It returns true if the session was lost, false if it is no
// longer wanted.
func (k *keeper) watch(s *session) (lost bool) {
	p := k.pool
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
		parked, flip := p.demand.parked, p.demand.flip
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
			k.examine(s)
		case <-health.C:
			if s.silence() >= p.cfg.HealthEvery {
				k.examine(s)
			}
		case <-idle:
			if p.active.Load() == 0 && time.Since(p.opened)-time.Duration(p.lastUse.Load()) >= p.cfg.IdleStop && k.park() {
				p.log.Info("server stopped after being idle")
			}
		}
	}
}

// examine replaces a session that shows no sign of life.
func (k *keeper) examine(s *session) {
	p := k.pool
	heard := s.heard.Load()
	err := s.check(p.ctx)
	if err == nil {
		s.late.Store(0)
		return
	}
	if p.ctx.Err() != nil || errors.Is(s.cause(), errForgotten) {
		return // the server answers running calls like the check, and they run in a new session
	}
	if errors.Is(err, context.DeadlineExceeded) {
		switch {
		case s.heard.Load() != heard:
			return // it is slow but alive
		case s.busy() && s.late.Load() < maxLate:
			// Many servers run one call at a time and answer nothing else meanwhile. If such a
			// server hangs, its calls reach their timeouts.
			return
		}
		err = errors.New("it did not answer a health check")
	}
	s.fail(err)
}
