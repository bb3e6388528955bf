package mcpface

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
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

// exchange is one HTTP request and its answer: one JSON message, or a stream of
// events that begins with the first word before the answer. Its methods are safe
// for concurrent use.
type exchange struct {
	f         *Face
	w         http.ResponseWriter
	r         *http.Request
	principal schema.Principal
	mount     string // "" for all servers
	known     bool
	msg       message
	meta      meta
	modern    bool
	session   *session        // of the legacy era, nil for none
	streams   bool            // the client reads events
	ctx       context.Context // of the work for it
	span      *telemetry.Span // nil where there are no traces
	lot       bodies.Lot      // of the body

	mu     sync.Mutex
	status int
	ended  bool
	beat   *time.Timer
	out    sse.Writer // of events, where the answer is a stream of them
}

func newExchange(f *Face, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{f: f, w: w, r: r, streams: readsEvents(r.Header["Accept"]), out: sse.Writer{W: w, Within: timeFor}}
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
// each byte beside that.
const (
	patience = 15 * time.Second
	slowest  = 64 << 10
)

func timeFor(n int) time.Duration { return patience + time.Duration(n/slowest)*time.Second }

// live begins to send comments while the answer is not there, so that nothing on
// the way closes the connection.
func (x *exchange) live() {
	if !x.streams {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.beat = time.AfterFunc(x.f.o.Heartbeat, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.ended {
			_ = x.streamLocked().Beat() // a client that left is noticed by the server
			x.beat.Reset(x.f.o.Heartbeat)
		}
	})
}

// send sends a message before the answer. It is dropped where the client reads no
// events, or the answer is there.
func (x *exchange) send(body ...[]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || !x.streams {
		return context.Canceled
	}
	return x.streamLocked().Event("message", "", body...)
}

// streamLocked notes the status of a stream that begins, or goes on.
func (x *exchange) streamLocked() *sse.Writer {
	x.status = http.StatusOK
	return &x.out
}

// notify sends a notification.
func (x *exchange) notify(method string, params []byte) error {
	b := append(appendQuoted([]byte(`{"jsonrpc":"2.0","method":`), method), `,"params":`...)
	return x.send(b, params, []byte{'}'})
}

// progress passes a progress notification on, under the caller's own token.
func (x *exchange) progress(params []byte) error {
	out := appendMember([]byte{'{'}, "progressToken", x.meta.token)
	each(params, func(key string, value []byte) {
		if key != "progressToken" {
			out = appendMember(out, key, value)
		}
	})
	return x.notify("notifications/progress", append(out, '}'))
}

// reply answers the request with a result: the parts, joined, are an object.
func (x *exchange) reply(parts ...[]byte) {
	x.answer(http.StatusOK, append(append([][]byte{x.head(`,"result":`)}, parts...), []byte{'}'})...)
}

// fail answers the request with an error.
func (x *exchange) fail(e *fault) {
	if x.span != nil {
		x.failed(e)
	}
	if e.silent {
		return
	}
	raw, err := json.Marshal(e)
	if err != nil { // data of a server that is no JSON
		e.Data = nil
		raw, _ = json.Marshal(e)
	}
	x.answer(e.httpStatus(x.modern), x.head(`,"error":`), raw, []byte{'}'})
}

func (x *exchange) head(member string) []byte {
	b := append(make([]byte, 0, 64), `{"jsonrpc":"2.0","id":`...)
	if x.msg.id == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, x.msg.id...)
	}
	return append(b, member...)
}

func (x *exchange) answer(status int, parts ...[]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.ended = true
	if x.out.Begun() {
		_ = x.streamLocked().Event("message", "", parts...) // a client that left is noticed by the server
		return
	}
	x.plainLocked(status, x.f.fixed.json, parts...)
}

// plain answers with bytes that are no message.
func (x *exchange) plain(status int, kind []string, body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	x.plainLocked(status, kind, body)
}

func (x *exchange) plainLocked(status int, kind []string, parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	h := x.w.Header()
	h["Content-Type"] = kind
	h["Content-Length"] = []string{strconv.Itoa(n)}
	if n > slowest {
		rc := http.NewResponseController(x.w)
		_ = rc.SetWriteDeadline(time.Now().Add(timeFor(n))) // a writer without deadlines does without
		defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	}
	x.status = status
	x.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := x.w.Write(p); err != nil {
			return // a client that went away is noticed by the server
		}
	}
}

// refuse answers what never was a message, or may not be one.
func (x *exchange) refuse(status int, e *schema.Error) {
	x.fail(&fault{Code: kindCode(e.Kind), Message: e.Detail, Data: dataOf(e), status: status})
}

// taken answers a message that has no answer.
func (x *exchange) taken(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended, x.status = true, status
	x.w.WriteHeader(status)
}

// close leaves the connection as it was found.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	if x.beat != nil {
		x.beat.Stop()
	}
	x.out.End()
}

func (x *exchange) statusSent() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status
}

func (x *exchange) begun() bool { return x.statusSent() != 0 }

// gone says that nobody waits for the answer: the client hung up (modern), or
// cancelled (legacy).
func (x *exchange) gone() bool { return x.ctx != nil && x.ctx.Err() != nil }
