package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/store/sessiontable"
	"github.com/callyard/callyard/pkg/bus"
)

// sharedWithin is the timeout of one read or write of the session table. Tests raise it.
var sharedWithin = 3 * time.Second

const (
	// maxSharedBytes limits the size of the capabilities of a session in the table.
	maxSharedBytes = 8 << 10
	// endedKept must be longer than the time to revive a session.
	endedKept = 30 * time.Second
	// idLength is the length of a session ID, and idAlphabet its alphabet; see [rand.Text].
	idLength   = 26
	idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// share stores a session for other front doors. If that fails, it exists only at this one.
func (s *sessions) share(ctx context.Context, sess *session) {
	if s.table == nil {
		return
	}
	if len(sess.capabilities) > maxSharedBytes {
		s.keep(sess, fmt.Errorf("its capabilities are too large to share: %d bytes, at most %d", len(sess.capabilities), maxSharedBytes))
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWithin)
	defer cancel()
	sess.mu.Lock()
	record := sessiontable.Session{Principal: sess.principal, Mount: sess.mount, Version: sess.version, Capabilities: sess.capabilities, Name: sess.name, Level: sess.level}
	put := s.table.Put
	if sess.known == 0 {
		put = s.table.Add
	}
	sess.mu.Unlock()
	revision, err := put(ctx, sess.tenant, sess.key, record)
	if err != nil {
		s.keep(sess, err)
		return
	}
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.known = max(sess.known, revision)
}

// keep logs that only this front door knows a session.
func (s *sessions) keep(sess *session, err error) {
	s.unshared.Do(func() {
		s.log.Warn("sessions of MCP clients are not shared with other front doors", "principal", sess.principal, "error", err)
	})
}

// changed handles that a session was written or ended at any front door.
func (s *sessions) changed(key string, revision uint64, ended bool) {
	sess := s.byKey(key, ended)
	switch {
	case sess == nil:
	case ended:
		s.end(sess)
	default:
		sess.mu.Lock()
		sess.written = max(sess.written, revision)
		sess.mu.Unlock()
	}
}

// byKey returns the session with the key, or nil if it is not here. If ended is set, it records
// that the session has ended.
func (s *sessions) byKey(key string, ended bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended {
		now := time.Now()
		if now.Sub(s.pruned) > sharedWithin { // not for each of many ends
			s.pruned = now
			maps.DeleteFunc(s.ended, func(_ string, at time.Time) bool { return now.Sub(at) > endedKept })
		}
		s.ended[key] = now
	}
	return s.by[key]
}

// lookup returns the session of a request, from this front door or loaded from the table. It
// returns a fault if the caller has no such session or the table cannot be read.
func (s *sessions) lookup(ctx context.Context, x *exchange, id string) (*session, *fault) {
	sess := s.find(x, id)
	switch {
	case sess != nil && (s.table == nil || !sess.isStale()):
		return sess, nil
	case s.table == nil || len(id) != idLength || strings.Trim(id, idAlphabet) != "":
		return nil, noSession()
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWithin)
	defer cancel()
	record, revision, err := s.table.Get(ctx, x.principal.Tenant, sessiontable.Key(id))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		if sess != nil {
			s.end(sess)
		}
		return nil, noSession()
	case err != nil && sess != nil:
		return sess, nil // the next request reads the table again
	case err != nil:
		x.res.set("Retry-After", "1")
		return nil, unavailable("The session cannot be looked up at the moment; the request was not processed. Send it again in a moment.")
	case record.Principal != x.principal.Identity() || record.Mount != x.mount:
		return nil, noSession()
	case sess != nil:
		sess.mu.Lock()
		sess.level, sess.known = record.Level, max(sess.known, revision)
		sess.mu.Unlock()
		return sess, nil
	}
	return s.revive(id, record, revision)
}

// noSession is the answer that makes a client begin again with initialize.
func noSession() *fault {
	return &fault{Code: mcpwire.CodeNoSession, Message: "Session not found: begin again with initialize.", status: http.StatusNotFound}
}

func tooManySessions() *fault {
	return unavailable("Too many sessions are open; try again later, or use revision " + mcpwire.Modern + ", which has no sessions.")
}

// revive loads a session into this front door. It returns a fault if there are too many, or if the
// session has ended in the meantime.
func (s *sessions) revive(id string, record sessiontable.Session, revision uint64) (*session, *fault) {
	sess := newSession(id, record)
	sess.known = revision
	sess.lists.elsewhere = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.by[sess.key]; known != nil {
		return known, nil // a concurrent request was faster
	}
	if _, ended := s.ended[sess.key]; ended {
		return nil, noSession()
	}
	if !s.evictLocked() {
		return nil, tooManySessions()
	}
	s.by[sess.key] = sess
	return sess, nil
}

// isStale reports whether another front door has written the session since it was loaded.
func (s *session) isStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written > s.known
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// endEverywhere ends a session at every front door.
func (s *sessions) endEverywhere(ctx context.Context, sess *session) *fault {
	s.end(sess)
	if s.table == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWithin)
	defer cancel()
	if err := s.table.End(ctx, sess.tenant, sess.key); err != nil {
		s.unended.Do(func() {
			s.log.Warn("sessions of MCP clients could not be ended at the other front doors", "principal", sess.principal, "error", err)
		})
		return unavailable("The session ended at this front door, but the other front doors could not be notified. Send the request again in a moment.")
	}
	return nil
}
