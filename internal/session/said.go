package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// maxQuestions limits the open requests of a server to its caller.
const maxQuestions = 16

// questions holds the open requests of a server to its caller, on a session that belongs to the
// caller.
type questions struct {
	s    *session
	mu   sync.Mutex
	next int64
	open map[int64][]byte // the server's ids, by our numbers
}

func (q *questions) add(id []byte) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= maxQuestions {
		return 0
	}
	q.next++
	q.open[q.next] = bytes.Clone(id)
	return q.next
}

// take removes a question and returns the server's id of it; nil if it is not open.
func (q *questions) take(number int64) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.open[number]
	delete(q.open, number)
	return id
}

// withdraw removes the question with the server's id, and returns its number; 0 if it is not open.
func (q *questions) withdraw(id []byte) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	for number, open := range q.open {
		if bytes.Equal(open, id) {
			delete(q.open, number)
			return number
		}
	}
	return 0
}

func (q *questions) remaining() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

// takeAll removes all open questions and returns the server's ids of them.
func (q *questions) takeAll() (ids [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range q.open {
		ids = append(ids, id)
	}
	clear(q.open)
	return ids
}

// giveUp answers the open questions with an error, because some servers do not let a session end
// while questions are open.
func (q *questions) giveUp() {
	s := q.s
	for _, id := range q.takeAll() {
		if s.cause() != nil {
			return
		}
		body := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), ',')
		s.link.post(append(mcpwire.AppendError(body, mcpwire.CodeInternal, "the call has ended, and nobody answers"), '}'))
	}
}

// pass passes a message of the server to the caller of the one running call. It returns false if
// the message is not for the caller or cannot be passed on.
func (q *questions) pass(f *frame) bool {
	asked := len(f.id) > 0 && string(f.id) != "null"
	switch string(f.method) {
	case `"` + mcpwire.MethodElicit + `"`, `"` + mcpwire.MethodSample + `"`, `"` + mcpwire.MethodListRoots + `"`:
		if !asked {
			return false
		}
	case `"` + mcpwire.NotifyMessage + `"`:
		if asked {
			return false
		}
	case `"` + mcpwire.NotifyCancelled + `"`:
		return !asked && q.canceled(rawjson.Get(f.params, "requestId"))
	default:
		return false
	}
	r := q.listening()
	if r == nil {
		return false
	}
	params := f.params
	if !rawjson.IsObject(params) {
		params = []byte(`{}`)
	}
	q.s.hear()
	number := int64(0)
	message := append(make([]byte, 0, len(params)+96), '{')
	if asked {
		if number = q.add(f.id); number == 0 {
			return false
		}
		message = append(strconv.AppendInt(append(message, `"id":`...), number, 10), ',')
	}
	message = append(append(append(message, `"method":`...), f.method...), `,"params":`...)
	if !r.req.Said(number, append(append(message, params...), '}')) {
		q.take(number)
		return false
	}
	return true
}

// canceled passes on that the server no longer needs the answer to its question with that id. It
// returns false if there is no such question.
func (q *questions) canceled(id []byte) bool {
	number := q.withdraw(id)
	if number == 0 {
		return false
	}
	if r := q.listening(); r != nil {
		message := strconv.AppendInt([]byte(`{"method":"`+mcpwire.NotifyCancelled+`","params":{"requestId":`), number, 10)
		r.req.Said(0, append(message, "}}"...))
	}
	return true
}

// listening returns the call whose caller receives messages of the server, or nil.
func (q *questions) listening() *Running {
	s := q.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.calls {
		if r.pool != nil && r.req.Said != nil && !r.ended.Load() {
			return r
		}
	}
	return nil
}

// answer answers a question of the server. object has result or error. It does not block.
func (q *questions) answer(number int64, object []byte) {
	s, id := q.s, q.take(number)
	if id == nil {
		return
	}
	var scan scanner
	var f frame
	body := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), ',')
	switch ok := scan.frame(object, &f); {
	case ok && rawjson.IsObject(f.result) && f.fault == nil:
		body = append(append(body, `"result":`...), f.result...)
	case ok && rawjson.IsObject(f.fault):
		body = append(append(body, `"error":`...), f.fault...)
	default:
		body = mcpwire.AppendError(body, mcpwire.CodeInternal, "the answer of the client cannot be read")
	}
	body = append(body, '}')
	l, remote := s.link.(*remoteLink)
	if !remote {
		s.link.post(body)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		l.work.Go(func() { l.post(body) })
	}
}

// Caller identifies the caller for whom a session of its own is opened.
type Caller struct {
	ID           string // id of the conversation
	Capabilities []byte // a JSON object: the client capabilities of the caller; nil means none
	Level        string // of the log messages that the caller wants; "" means none
}

// CallerOf returns the caller of a call. id is the id of its conversation. The capabilities and
// the log level come from extra.
func CallerOf(id string, extra []byte) Caller {
	c := Caller{ID: id}
	rawjson.Members(extra, func(key string, meta []byte) {
		if key != "_meta" || !rawjson.IsObject(meta) {
			return
		}
		rawjson.Members(meta, func(key string, value []byte) {
			switch {
			case key == mcpwire.MetaClientCapabilities && rawjson.IsObject(value):
				c.Capabilities = value
			case key == mcpwire.MetaLogLevel:
				_ = json.Unmarshal(value, &c.Level) // a value that is not a string asks for nothing
			}
		})
	})
	return c
}

func (c *Caller) key() string {
	return strconv.Quote(c.ID) + string(c.Capabilities)
}
