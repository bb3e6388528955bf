package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// mostQuestions bounds the requests of a server that are open at once.
const mostQuestions = 16

// questions are what a server has asked its caller on a session of the caller's
// own, and who has not answered yet.
type questions struct {
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
func (s *session) giveUp() {
	for _, id := range s.asks.takeAll() {
		if s.cause() != nil {
			return
		}
		s.link.post(append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":{"code":-32603,"message":"the call is over and nobody answers"}}`...))
	}
}

// said hands what the server says to the caller of the one call that runs. It
// returns false for what is not the caller's, or cannot be passed on.
func (s *session) said(f *frame) bool {
	asked := len(f.id) > 0 && string(f.id) != "null"
	switch string(f.method) {
	case `"elicitation/create"`, `"sampling/createMessage"`, `"roots/list"`:
		if !asked {
			return false
		}
	case `"notifications/message"`:
		if asked {
			return false
		}
	default:
		return false
	}
	r := s.listening()
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
		s.hear()
		return r.req.Said(0, message)
	}
	number := s.asks.add(f.id)
	if number == 0 || !r.req.Said(number, message) {
		s.asks.take(number)
		return false
	}
	s.hear()
	return true
}

// listening returns the call whose caller hears the server, nil for none.
func (s *session) listening() *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.calls {
		if r.pool != nil && r.req.Said != nil && !r.ended.Load() {
			return r
		}
	}
	return nil
}

// reply answers a question of the server: object has result or error. It does not
// block.
func (s *session) reply(number int64, object []byte) {
	id := s.asks.take(number)
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
		body = append(body, `"error":{"code":-32603,"message":"the answer of the client cannot be read"}`...)
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
			case key == metaCapabilities && rawjson.IsObject(value):
				c.Capabilities = value
			case key == metaLogLevel:
				_ = json.Unmarshal(value, &c.Level) // what is no string asks for nothing
			}
		})
	})
	return c
}

func (c *Caller) key() string {
	return strconv.Quote(c.ID) + string(c.Capabilities)
}
