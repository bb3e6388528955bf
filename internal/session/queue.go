package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// Do starts a call. It does not block. It calls done exactly once, from any goroutine and
// possibly before Do returns. done must not block.
func (p *Pool) Do(req *Request, done func(*Request, Outcome)) *Running {
	r := &Running{req: req, done: done, pool: p, timeout: req.Timeout}
	if r.timeout <= 0 {
		r.timeout = p.cfg.CallTimeout
	}
	p.active.Add(1)
	// A request that is not a JSON object could differ from what was checked.
	if len(req.Params) > 0 && !rawjson.IsObject(req.Params) {
		return p.refuse(r, schema.KindInvalidRequest, false, "The arguments for the server %q are not a JSON object; nothing was sent.", p.cfg.Spec.ID)
	}
	p.mu.Lock()
	s, gone := pickFor(p, req)
	p.calls++
	r.came = p.calls
	behind := s != nil && mustQueue(p, s, req) // first come, first served
	if behind {
		s = nil
	}
	switch {
	case p.closing:
		p.mu.Unlock()
		return p.refuse(r, schema.KindUnavailable, true, "The sessions of the server %q are being closed; send the call again.", p.cfg.Spec.ID)
	case gone:
		p.mu.Unlock()
		r.end(req.bound.outcomeOfLeft())
		return r
	case s == nil && p.broken():
		err := p.faultLocked()
		p.mu.Unlock()
		r.end(Outcome{Err: err})
		return r
	case s == nil && p.waiting >= p.cfg.Queue:
		slots := p.slotsLocked()
		p.mu.Unlock()
		return p.refuse(r, schema.KindUnavailable, true, "The server %q is busy: all of its %d slots are in use and %d calls are waiting. Try again later.",
			p.cfg.Spec.ID, slots, p.cfg.Queue)
	}
	r.timer = time.AfterFunc(r.timeout, r.expire)
	if s == nil {
		enqueue(p, r, false)
		p.demand.set(false)
		p.mu.Unlock()
		if behind {
			p.pump()
		}
		return r
	}
	p.demand.set(false)
	p.place(r, s)
	p.mu.Unlock()
	p.send(s, r)
	return r
}

func (p *Pool) refuse(r *Running, kind schema.Kind, retry bool, format string, args ...any) *Running {
	err := schema.Errorf(kind, format, args...)
	err.Retryable = retry
	r.end(Outcome{Err: err})
	return r
}

func (p *Pool) send(s *session, r *Running) {
	if r.req.Digest == "" || s.pins.check(r.req) != pinStale || !readFirst(p, s, r) {
		sendNow(p, s, r)
	}
}

func sendNow(p *Pool, s *session, r *Running) {
	if r.req.Digest != "" {
		switch s.pins.check(r.req) {
		case pinStale:
			p.requeue(r)
			return
		case pinDiffers:
			r.end(Outcome{Err: p.differs(r.req)})
			return
		}
	}
	if s.link.send(r) {
		return
	}
	// The session has just ended. It must not be picked again until it is removed.
	p.mu.Lock()
	p.drop(s)
	p.mu.Unlock()
	p.requeue(r)
}

// leastLoaded returns the live session with the fewest calls, or nil if all are full. The caller holds
// p.mu.
func (p *Pool) leastLoaded() *session {
	var best *session
	for _, s := range p.live {
		if free(p, s) && (best == nil || s.load < best.load) {
			best = s
		}
	}
	return best
}

// place assigns the call a place on the session. The caller holds p.mu.
func (p *Pool) place(r *Running, s *session) {
	r.on = s
	s.load++
	s.used = true
}

// release frees the place of a call that has just ended and passes it on. It returns the session
// of the call, or nil if the call was waiting.
func (p *Pool) release(r *Running) *session {
	p.mu.Lock()
	s := r.on
	if s == nil {
		// A refused call was never in the queue and has no timer.
		if r.timer != nil {
			p.waiting--
		}
		p.mu.Unlock()
		return nil
	}
	s.load--
	more := p.waiting > 0
	p.mu.Unlock()
	if more {
		p.pump()
	}
	return s
}

// finished counts a call whose outcome was reported to its caller.
func (p *Pool) finished() {
	if p.active.Add(-1) == 0 {
		p.lastUse.Store(int64(time.Since(p.opened)))
		p.mu.Lock()
		p.checkDrained()
		p.mu.Unlock()
	}
}

func (p *Pool) checkDrained() {
	if p.closing && p.active.Load() == 0 {
		p.drainOne.Do(func() { close(p.drained) })
	}
}

// requeue puts a call that a lost session never sent at the front of the queue.
func (p *Pool) requeue(r *Running) {
	p.mu.Lock()
	if r.ended.Load() { // the goroutine that ended it frees its place
		p.mu.Unlock()
		return
	}
	if p.cutOff {
		p.mu.Unlock()
		r.end(p.closedBefore())
		return
	}
	if b := r.req.bound; b != nil && !slices.Contains(p.live, b.s) { // it frees its place when it ends
		p.mu.Unlock()
		r.end(b.outcomeOfLeft())
		return
	}
	r.on.load--
	r.on = nil
	enqueue(p, r, true)
	p.mu.Unlock()
	p.pump()
}

// pump assigns waiting calls to sessions that have a place.
func (p *Pool) pump() {
	for {
		p.mu.Lock()
		s, r := nextCall(p)
		if r == nil {
			p.mu.Unlock()
			return
		}
		p.waiting--
		p.place(r, s)
		p.mu.Unlock()
		p.send(s, r)
	}
}

// broken reports whether calls wait in vain. The caller holds p.mu.
func (p *Pool) broken() bool {
	if len(p.live) > 0 {
		return false
	}
	if p.programs != nil {
		return p.programs.givenUp
	}
	for _, k := range p.keepers {
		if k.fails < openBreaker {
			return false
		}
	}
	return true
}

// faultLocked returns the reason why there is no session. The caller holds p.mu.
func (p *Pool) faultLocked() *schema.Error {
	kind := schema.KindServerFailed
	if p.programs != nil {
		kind = schema.KindUnavailable // programs may be attached to another worker
	}
	return &schema.Error{Kind: kind, Retryable: true,
		Detail: p.fault + " The call did not start."}
}

// notReady returns the error of a call that got no session within its timeout.
func (p *Pool) notReady(waited time.Duration) *schema.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.live) > 0:
		return &schema.Error{Kind: schema.KindUnavailable, Retryable: true,
			Detail: fmt.Sprintf("The server %q was busy for %v; the call did not start. Try again later.", p.cfg.Spec.ID, waited)}
	case p.fault != "":
		return p.faultLocked()
	}
	return &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
		Detail: fmt.Sprintf("The server %q was not ready within %v; the call did not start.", p.cfg.Spec.ID, waited)}
}
