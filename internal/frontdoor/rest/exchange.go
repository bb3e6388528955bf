package rest

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// exchange is one request and its answer on their way through the handlers. It
// is the ResponseWriter that handlers get, so that what the middleware knows
// (who asks, the request id) travels without copying the request.
type exchange struct {
	http.ResponseWriter
	id        string
	principal schema.Principal
	status    int             // of the answer; 0 until it began
	span      *telemetry.Span // nil where there are no traces
	// tellOutcome asks for the member outcome in the result of a call.
	tellOutcome bool
	lot         bodies.Lot // of the body
	query       url.Values // the parameters, as the operation describes them

	// values backs the header values of this answer, so that setting one costs
	// no allocation of its own.
	values [6]string
	used   int
}

// WriteHeader notes the status and passes it on.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer began and passes the bytes on.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// set sets a header; key is in canonical form.
func (x *exchange) set(key, value string) {
	if x.used == len(x.values) {
		x.Header()[key] = []string{value}
		return
	}
	x.values[x.used] = value
	x.Header()[key] = x.values[x.used : x.used+1 : x.used+1]
	x.used++
}

const (
	// deadlineFrom is the size from which an answer may block on a reader that
	// is slow; smaller ones fit in the socket's buffer.
	deadlineFrom = 64 << 10
	// slowest is the least number of bytes a second that a client must take or
	// send, patience the time it has beside that.
	slowest  = 64 << 10
	patience = 15 * time.Second
)

func timeFor(bytes int) time.Duration {
	return patience + time.Duration(bytes/slowest)*time.Second
}

// send answers with the bytes as they are. contentType is one of the fixed header
// values.
func (x *exchange) send(status int, contentType []string, body []byte) {
	h := x.Header()
	h["Content-Type"] = contentType
	x.set("Content-Length", strconv.Itoa(len(body)))
	if len(body) > deadlineFrom {
		rc := http.NewResponseController(x.ResponseWriter)
		// A writer without deadlines (a test's recorder) does without.
		_ = rc.SetWriteDeadline(time.Now().Add(timeFor(len(body))))
		defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	}
	x.WriteHeader(status)
	_, _ = x.Write(body) // a client that went away is noticed by the server
}
