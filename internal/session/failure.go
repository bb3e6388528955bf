package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// refusedTries is how often more a server is looked for that answered and does not listen
// any more, before its calls are refused: with their pauses about four seconds, in which
// most servers have been restarted.
const refusedTries = 40

// mostSaid bounds, in bytes, each text of a server in the announcement of its worker. One
// that exceeds max_payload is not sent, and the worker with all its servers would be taken
// for disconnected.
const mostSaid = 1 << 10

// bounded bounds a text of a server.
func bounded(text string) string { return truncate.Text(text, mostSaid) }

// startFailed notes a failed start and returns how long to wait.
func (k *keeper) startFailed(err error) time.Duration {
	p := k.pool
	var how *startError
	state, tail := schema.StateError, ""
	fault := fmt.Sprintf("The server %q did not start: %v.", p.cfg.Spec.ID, err)
	if errors.As(err, &how) {
		tail = how.tail
		if how.timeout {
			state = schema.StateTimeout
		}
		var e *schema.Error
		if errors.As(how.err, &e) { // a sentence already
			fault = e.Detail
		}
	}
	p.mu.Lock()
	k.fails++
	n := k.fails
	if len(p.live) == 0 {
		p.state, p.fault, p.tail = state, bounded(fault), tail
	}
	var waiting []*Running
	if p.broken() {
		waiting, p.queue = p.queue, nil
	}
	p.mu.Unlock()
	k.warn("server did not start", "error", err.Error(), "failures", n)
	k.giveUp(waiting)
	p.changed()
	return pause(n)
}

// giveUp ends calls that have nothing to wait for.
func (k *keeper) giveUp(waiting []*Running) {
	p := k.pool
	for _, r := range waiting {
		p.mu.Lock()
		err := p.faultLocked()
		p.mu.Unlock()
		r.end(Outcome{Err: err})
	}
}

// sessionLost notes that a session has to be replaced and returns how long to
// wait. One that did some good is replaced at once.
func (k *keeper) sessionLost(s *session) time.Duration {
	p := k.pool
	why := s.cause()
	tail := ""
	if s.child != nil {
		tail = s.child.StderrTail()
	}
	p.mu.Lock()
	p.restarts++
	// A server that breaks under its calls is not one that cannot start: the
	// breaker is for those.
	var rest time.Duration
	switch {
	case s.served.Load() || time.Since(s.born) >= restTime:
		k.fails, k.losses = 0, 0
		if errors.Is(why, errRefused) {
			k.fails = -refusedTries
		}
		p.warnings = warnings{}
		rest = pause(0)
	case s.used:
		k.losses++
		rest = min(pause(k.losses), lossPause)
	default:
		k.fails++
		rest = pause(k.fails)
	}
	var waiting []*Running
	if len(p.live) == 0 {
		p.state, p.fault, p.tail = schema.StateStarting, bounded(fmt.Sprintf("The session with the server %q was lost: %v.", p.cfg.Spec.ID, why)), tail
		if p.broken() {
			p.state = schema.StateError
			waiting, p.queue = p.queue, nil
		}
	}
	p.mu.Unlock()
	k.warn("session lost", "why", why.Error())
	k.giveUp(waiting)
	p.changed()
	return rest
}
