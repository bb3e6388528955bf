package mcp

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/sse"
)

// fixedHeaders are header values shared by all answers. They are never modified.
type fixedHeaders struct {
	json, noStore, nosniff []string
}

func newFixedHeaders() fixedHeaders {
	return fixedHeaders{
		json: []string{"application/json"}, noStore: []string{"no-store"}, nosniff: []string{"nosniff"},
	}
}

// response is the answer to one HTTP request: one JSON message, or an event stream if an event
// is sent before the answer. Its methods are safe for concurrent use.
type response struct {
	w         http.ResponseWriter
	streams   bool // the client reads events
	heartbeat time.Duration
	fixed     *fixedHeaders
	of        *batchAnswer // batch of the message; nil if there is none

	mu     sync.Mutex
	status int
	ended  bool
	beat   *time.Timer
	out    sse.Writer // the event stream, if the answer is one
}

// readsEvents reports whether a client accepts an event stream.
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

// mediaType returns the media type of a header value without its parameters, or "" if it is
// invalid. The most common values are not parsed.
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

// keepAlive sends comments until the answer is available, so that no intermediary closes the
// connection.
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
			_ = a.streamLocked().Beat() // the server detects a disconnected client
			a.beat.Reset(a.heartbeat)
		}
	})
}

// set sets a header, in canonical form. It has no effect once the answer has begun, for example with
// a heartbeat.
func (a *response) set(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.out.Begun() {
		a.w.Header()[name] = []string{value}
	}
}

// event sends a message before the answer. It is dropped if the client does not read events or
// the answer was sent.
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

// streamLocked returns the event stream and records its status.
func (a *response) streamLocked() *sse.Writer {
	a.status = http.StatusOK
	return &a.out
}

// message sends the answer.
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
		_ = a.streamLocked().Event("message", "", parts...) // the server detects a disconnected client
		return
	}
	a.bodyLocked(status, a.fixed.json, parts...)
}

// body answers with content that is not an MCP message.
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
	defer bodies.LimitWrite(a.w, n)()
	a.status = status
	a.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := a.w.Write(p); err != nil {
			return // the server detects a disconnected client
		}
	}
}

// noContent answers a message that requires no answer.
func (a *response) noContent(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.status = true, status
	a.w.WriteHeader(status)
}

// close stops the heartbeat and the stream, and resets the connection for the next request.
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

// comment sends a comment and begins the stream.
func (a *response) comment() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streamLocked().Beat()
}
