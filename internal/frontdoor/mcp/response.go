package mcp

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
)

// fixedHeaders are header values that every answer shares. They are never changed.
type fixedHeaders struct {
	json, noStore, nosniff []string
}

func newFixedHeaders() fixedHeaders {
	return fixedHeaders{
		json: []string{"application/json"}, noStore: []string{"no-store"}, nosniff: []string{"nosniff"},
	}
}

// response is the answer to one HTTP request: one JSON message, or a stream of events that
// begins with the first event before the answer. Its methods are safe for concurrent use.
type response struct {
	w         http.ResponseWriter
	streams   bool // the client reads events
	heartbeat time.Duration
	fixed     *fixedHeaders
	of        *batchAnswer // of the batch that the message came in; nil for none

	mu     sync.Mutex
	status int
	ended  bool
	beat   *time.Timer
	out    sse.Writer // of events, where the answer is a stream of them
}

// readsEvents says that a client takes a stream of events.
func readsEvents(accept []string) bool {
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			switch mediaType(part) {
			case "text/event-stream", "text/*":
				return true
			}
		}
	}
	return false
}

// mediaType is the type in a header's value without its parameters, "" where it is none.
// What nearly every request says costs nothing.
func mediaType(value string) string {
	switch value = strings.TrimSpace(value); value {
	case "application/json", "text/event-stream":
		return value
	}
	kind, _, err := mime.ParseMediaType(value)
	if err != nil {
		return ""
	}
	return kind
}

// patience is the time that a client has to take a message, with what it has for
// each byte in addition to that.
const (
	patience = 15 * time.Second
	slowest  = 64 << 10
)

func timeFor(n int) time.Duration { return patience + time.Duration(n/slowest)*time.Second }

// keepAlive begins to send comments while the answer is not there, so that nothing on
// the way closes the connection.
func (a *response) keepAlive() {
	if !a.streams || a.of != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beat = time.AfterFunc(a.heartbeat, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.ended {
			_ = a.streamLocked().Beat() // a client that left is noticed by the server
			a.beat.Reset(a.heartbeat)
		}
	})
}

// event sends a message before the answer. It is dropped where the client reads no
// events, or the answer is there.
func (a *response) event(body ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || !a.streams {
		return context.Canceled
	}
	if a.of != nil {
		return a.of.res.event(body...)
	}
	return a.streamLocked().Event("message", "", body...)
}

// streamLocked notes the status of a stream that begins, or continues.
func (a *response) streamLocked() *sse.Writer {
	a.status = http.StatusOK
	return &a.out
}

// message sends the message that is the answer.
func (a *response) message(status int, parts ...[]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.ended = true
	if a.of != nil {
		a.status = status
		a.of.add(parts...)
		return
	}
	if a.out.Begun() {
		_ = a.streamLocked().Event("message", "", parts...) // a client that left is noticed by the server
		return
	}
	a.bodyLocked(status, a.fixed.json, parts...)
}

// body answers with bytes that are no message.
func (a *response) body(status int, kind []string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.bodyLocked(status, kind, body)
}

func (a *response) bodyLocked(status int, kind []string, parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	h := a.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(n)}
	if n > slowest {
		rc := http.NewResponseController(a.w)
		_ = rc.SetWriteDeadline(time.Now().Add(timeFor(n))) // a writer without deadlines does without
		defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	}
	a.status = status
	a.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := a.w.Write(p); err != nil {
			return // a client that went away is noticed by the server
		}
	}
}

// noContent answers a message that has no answer.
func (a *response) noContent(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.status = true, status
	a.w.WriteHeader(status)
}

// close leaves the connection as it was found.
func (a *response) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.beat != nil {
		a.beat.Stop()
	}
	a.out.End()
}

func (a *response) statusSent() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

func (a *response) begun() bool { return a.statusSent() != 0 }

// comment sends a comment, which begins the stream.
func (a *response) comment() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streamLocked().Beat()
}
