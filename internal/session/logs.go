package session

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// logsLate is how long a server may keep logging for a call that was given up.
const logsLate = time.Minute

// logForwarder hands the log messages of a server to the callers whose calls they are of. The
// session's lock guards it.
type logForwarder struct {
	s *session
	// The caller of the last call that was given up while the server was asked for its log
	// messages, and when.
	last   string
	lastAt time.Time
}

// wanted says that the server is asked for the log messages of a call. On a stream that
// calls share a message does not say of which call it is: there one caller at a time is
// served, so that nobody reads what another's calls log. The caller holds s.mu.
func (l *logForwarder) wanted(r *Running) bool {
	s := l.s
	if r.pool == nil || r.req.Said == nil || r.req.LogLevel == "" || s.asks != nil {
		return false
	}
	if _, remote := s.link.(*remoteLink); remote {
		return true // each request has a stream of its own
	}
	if !s.modern() {
		return false // its messages may be of any call, at any time
	}
	if l.last != r.req.Caller && time.Since(l.lastAt) < logsLate {
		return false
	}
	for _, other := range s.calls {
		if other.logs && other.req.Caller != r.req.Caller {
			return false
		}
	}
	return true
}

// forCall returns the envelope of a call: with the level of the log messages that its
// caller wants, where there is one.
func (e envelope) forCall(r *Running) envelope {
	if r.logs && e.fixed != "" {
		e.fixed += `,"` + mcpwire.MetaLogLevel + `":` + strconv.Quote(r.req.LogLevel)
	}
	return e
}

// pass hands a log message to the call that it belongs to: the one with this id, or,
// where id is 0 because the stream is not that of one call, the first of those whose
// caller wants it. It returns false for what is no log message, or nobody's.
func (l *logForwarder) pass(f *frame, id int64) bool {
	s := l.s
	if string(f.method) != `"`+mcpwire.NotifyMessage+`"` || len(f.id) > 0 || !rawjson.IsObject(f.params) || s.asks != nil {
		return false
	}
	var level string
	rawjson.Members(f.params, func(key string, value []byte) {
		if key == "level" {
			_ = json.Unmarshal(value, &level) // what is no string is no level
		}
	})
	wants := func(r *Running) bool {
		return r != nil && r.logs && !r.ended.Load() && schema.LogLevelCovers(r.req.LogLevel, level)
	}
	s.mu.Lock()
	to := s.calls[id]
	if id == 0 {
		to = nil
		for _, r := range s.calls {
			if wants(r) && (to == nil || r.id < to.id) {
				to = r
			}
		}
	}
	ok := wants(to)
	s.mu.Unlock()
	if !ok {
		return false
	}
	message := append(make([]byte, 0, len(f.params)+64), `{"method":"`+mcpwire.NotifyMessage+`","params":`...)
	message = append(append(message, f.params...), '}')
	s.hear()
	to.req.Said(0, message)
	return true
}
