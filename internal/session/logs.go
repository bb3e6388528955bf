package session

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// logsLate is how long a server may keep logging for an abandoned call.
const logsLate = time.Minute

// logForwarder passes the log messages of a server to the callers of the calls. The session's
// lock guards it.
type logForwarder struct {
	s *session
	// The caller of the last abandoned call for which the server was asked for log messages,
	// and when it was abandoned.
	last   string
	lastAt time.Time
}

// wanted reports whether to ask the server for the log messages of a call. On a stream that calls
// share, a message does not name its call. Only one caller at a time gets log messages there, so
// that no caller reads the logs of another's calls. The caller holds s.mu.
func (l *logForwarder) wanted(r *Running) bool {
	s := l.s
	if r.pool == nil || r.req.Said == nil || r.req.LogLevel == "" || s.asks != nil {
		return false
	}
	if _, remote := s.link.(*remoteLink); remote {
		return true // each request has its own stream
	}
	if !s.modern() {
		return false // its messages may belong to any call, at any time
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

// forCall returns the envelope of a call, with the log level that its caller wants, if any.
func (e envelope) forCall(r *Running) envelope {
	if r.logs && e.fixed != "" {
		e.fixed += `,"` + mcpwire.MetaLogLevel + `":` + strconv.Quote(r.req.LogLevel)
	}
	return e
}

// pass passes a log message to its call: the one with this id or, if id is 0 because the stream
// is shared, the first call whose caller wants the message. It returns false if the message is
// not a log message, or no call wants it.
func (l *logForwarder) pass(f *frame, id int64) bool {
	s := l.s
	if string(f.method) != `"`+mcpwire.NotifyMessage+`"` || len(f.id) > 0 || !rawjson.IsObject(f.params) || s.asks != nil {
		return false
	}
	var level string
	rawjson.Members(f.params, func(key string, value []byte) {
		if key == "level" {
			_ = json.Unmarshal(value, &level) // a value that is not a string sets no level
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
