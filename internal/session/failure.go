package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/pkg/schema"
)

// refusedTries is the number of extra attempts to reach a server that answered before and no
// longer listens, before its calls are refused. With their pauses they take about four seconds,
// in which most servers have restarted.
const refusedTries = 40

// maxServerText limits, in bytes, each text of a server in the announcement of its worker. An
// announcement that exceeds max_payload is not sent, and the worker with all its servers would
// be taken for disconnected.
const maxServerText = 1 << 10

// bounded truncates a text of a server to maxServerText bytes.
func bounded(text string) string { return truncate.Text(text, maxServerText) }

// startFailed records a failed start and returns the pause before the next one.
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
		if errors.As(how.err, &e) { // already a sentence
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

// giveUp ends waiting calls with the reason why the pool has no session.
func (k *keeper) giveUp(waiting []*Running) {
	p := k.pool
	for _, r := range waiting {
		p.mu.Lock()
		err := p.faultLocked()
		p.mu.Unlock()
		r.end(Outcome{Err: err})
	}
}

// sessionLost records that a session has to be replaced and returns the pause before that. A
// session that was useful is replaced at once.
func (k *keeper) sessionLost(s *session) time.Duration {
	p := k.pool
	why := s.cause()
	tail := ""
	if s.child != nil {
		tail = s.child.StderrTail()
	}
	p.mu.Lock()
	p.restarts++
	// The circuit breaker is for servers that cannot start, not for those that fail
	// during calls.
	var rest time.Duration
	switch {
	case s.served.Load() || time.Since(s.born) >= restTime:
		k.fails, k.losses = 0, 0
		if errors.Is(why, errRefused) {
			k.fails = -refusedTries
		}
		p.warnings = warnings.Spacing{}
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

// warn logs a failure of the server, unless one was logged a short while ago.
func (k *keeper) warn(msg string, args ...any) {
	p := k.pool
	p.mu.Lock()
	notLogged, ok := p.warnings.Due(time.Now())
	silence := p.warnings.Silence()
	p.mu.Unlock()
	if !ok {
		p.log.Debug(msg, args...) //nolint:sloglint // a constant at each caller
		return
	}
	if notLogged > 0 {
		args = append(args, "not_logged", notLogged)
	}
	p.log.Warn(msg, append(args, "quiet_for", silence)...) //nolint:sloglint // as above
}
