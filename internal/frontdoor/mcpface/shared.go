package mcpface

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// sharedWithin bounds one look at the table of sessions, and one write to it.
	sharedWithin = 3 * time.Second
	// sharedMost bounds the capabilities of a session that other front doors can take over.
	sharedMost = 8 << 10
	// endedKept is longer than a session takes to be revived.
	endedKept = 10 * sharedWithin
	// idLength is that of the id of a session, and idAlphabet what it is written in; see
	// [rand.Text].
	idLength   = 26
	idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// ShareSessions has sessions outlive this front door: they are kept in a table, from which
// any front door takes them over. It is called before the first request, if at all; what
// the table tells is handed to [Face.SessionChanged].
func (f *Face) ShareSessions(table *bus.Sessions) { f.shared = table }

// share stores a session for other front doors. Where that fails it lives at this one alone.
func (f *Face) share(ctx context.Context, room *session) {
	if f.shared == nil {
		return
	}
	if len(room.capabilities) > sharedMost {
		f.log.Warn("a session of an MCP client is known to this front door alone: its capabilities are too large to share", "principal", room.principal, "bytes", len(room.capabilities), "most", sharedMost)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWithin)
	defer cancel()
	room.mu.Lock()
	record := bus.Session{Principal: room.principal, Mount: room.mount, Version: room.version, Capabilities: room.capabilities, Name: room.name, Level: room.level}
	room.mu.Unlock()
	revision, err := f.shared.Put(ctx, room.key, record)
	if err != nil {
		f.log.Warn("a session of an MCP client is known to this front door alone", "principal", room.principal, "error", err)
		return
	}
	room.mu.Lock()
	defer room.mu.Unlock()
	room.known = max(room.known, revision)
}

// SessionChanged takes in that a session was written or ended at a front door, this one
// included.
func (f *Face) SessionChanged(key string, revision uint64, ended bool) {
	room := f.rooms.changed(key, ended)
	switch {
	case room == nil:
	case ended:
		f.rooms.end(room)
	default:
		room.mu.Lock()
		room.written = max(room.written, revision)
		room.mu.Unlock()
	}
}

// changed notes that a session has ended somewhere, and returns it, nil where it is not
// here.
func (s *sessions) changed(key string, ended bool) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended {
		now := time.Now()
		for k, at := range s.ended {
			if now.Sub(at) > endedKept {
				delete(s.ended, k)
			}
		}
		s.ended[key] = now
	}
	for _, room := range s.by {
		if room.key == key {
			return room
		}
	}
	return nil
}

// session returns the one of a request: from here, or taken over from another front door
// or from before a restart. A fault says that there is none that is the caller's, or that
// it cannot be told now.
func (f *Face) session(ctx context.Context, x *exchange, id string) (*session, *fault) {
	room := f.rooms.find(x, id)
	if f.shared == nil || room != nil && !room.isStale() || len(id) != idLength || strings.Trim(id, idAlphabet) != "" {
		return room, sessionFault(room)
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWithin)
	defer cancel()
	record, revision, err := f.shared.Get(ctx, bus.SessionKey(id))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		if room != nil {
			f.rooms.end(room)
		}
		return nil, sessionFault(nil)
	case err != nil && room != nil:
		return room, nil // the next request looks again
	case err != nil:
		x.w.Header().Set("Retry-After", "1")
		return nil, &fault{Code: kindCode(schema.KindUnavailable), Message: "Whether the session is open cannot be told at the moment; nothing was done. Send it again in a moment.", status: http.StatusServiceUnavailable}
	case record.Principal != x.principal.Name || record.Mount != x.mount:
		return nil, sessionFault(nil)
	case room != nil:
		room.mu.Lock()
		room.level, room.known = record.Level, max(room.known, revision)
		room.mu.Unlock()
		return room, nil
	}
	room = f.rooms.revive(id, record, revision)
	if room == nil {
		return nil, tooManySessions()
	}
	return room, sessionFault(room)
}

// sessionFault is the answer to a request without a session; nil where there is one.
func sessionFault(room *session) *fault {
	if room != nil && !room.isOver() {
		return nil
	}
	return &fault{Code: -32001, Message: "Session not found: begin again with initialize.", status: http.StatusNotFound}
}

func tooManySessions() *fault {
	return &fault{Code: kindCode(schema.KindUnavailable), Message: "Too many sessions are open here; try again later, or speak revision " + modernVersion + ", which has none.", status: http.StatusServiceUnavailable}
}

// revive takes a session over; nil when there are too many. One that has ended in the
// meantime is over.
func (s *sessions) revive(id string, record bus.Session, revision uint64) *session {
	room := newSession(id, record)
	room.known = revision
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.by[id]; known != nil {
		return known // another request was faster
	}
	if _, ended := s.ended[room.key]; ended {
		room.end()
		return room
	}
	if len(s.by) >= mostSessions {
		return nil
	}
	s.by[id] = room
	return room
}

// isStale says that another front door has written the session.
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

// endShared ends a session at every front door.
func (f *Face) endShared(ctx context.Context, room *session) *fault {
	f.rooms.end(room)
	if f.shared == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedWithin)
	defer cancel()
	if err := f.shared.End(ctx, room.key); err != nil {
		f.log.Warn("a session of an MCP client could not be ended at other front doors", "principal", room.principal, "error", err)
		return &fault{Code: kindCode(schema.KindUnavailable), Message: "The session has ended at this front door, and other front doors could not be told. Send it again in a moment.", status: http.StatusServiceUnavailable}
	}
	return nil
}
