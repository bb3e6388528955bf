package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// mostQuestions bounds the requests of a server that are open at once.
const mostQuestions = 16

// questions are what a server has asked its caller on a session of the caller's
// own, and who has not answered yet.
type questions struct {
	s    *session
	mu   sync.Mutex
	next int64
	open map[int64][]byte // the server's ids, by our numbers
}

func (q *questions) add(id []byte) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= mostQuestions {
		return 0
	}
	q.next++
	q.open[q.next] = bytes.Clone(id)
	return q.next
}

// take returns the server's id of a question, once; nil for one that is not open.
func (q *questions) take(number int64) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.open[number]
	delete(q.open, number)
	return id
}

func (q *questions) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

// takeAll returns the server's ids of all open questions.
func (q *questions) takeAll() (ids [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range q.open {
		ids = append(ids, id)
	}
	clear(q.open)
	return ids
}

// giveUp tells the server that nobody answers the questions that are open: some do
// not let a session end before.
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

// pass hands what the server says to the caller of the one call that runs. It
// returns false for what is not the caller's, or cannot be passed on.
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
	message := append(make([]byte, 0, len(params)+64), `{"method":`...)
	message = append(append(append(append(message, f.method...), `,"params":`...), params...), '}')
	if !asked {
		q.s.hear()
		return r.req.Said(0, message)
	}
	number := q.add(f.id)
	if number == 0 || !r.req.Said(number, message) {
		q.take(number)
		return false
	}
	q.s.hear()
	return true
}

// listening returns the call whose caller hears the server, nil for none.
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

// answer answers a question of the server: object has result or error. It does not
// block.
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

// Caller is for whom a session of its own is opened.
type Caller struct {
	ID           string // of the conversation
	Capabilities []byte // an object: what the caller can be asked; nil for nothing
	Level        string // of the log messages that the caller wants, "" for none
}

// CallerOf reads from what goes along with the arguments whose call it is.
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
				_ = json.Unmarshal(value, &c.Level) // what is no string asks for nothing
			}
		})
	})
	return c
}

func (c *Caller) key() string {
	return strconv.Quote(c.ID) + string(c.Capabilities)
}
