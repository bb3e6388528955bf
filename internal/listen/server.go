package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// refusedBody is how long the client of a refused request may take to send the rest of its body.
	refusedBody = 5 * time.Second
)

// NewServer returns a server for next with limits for headers and idle connections. It refuses
// compressed bodies, because no handler decompresses them and the size limits count received bytes.
// The client of a refused request whose body has no announced length gets the answer at once, and may send
// the rest of the body for 5 s.
// While draining is set, it asks clients to close each connection after the next answer. Closing
// idle connections instead would break requests that are already on their way.
func NewServer(next http.Handler, draining *atomic.Bool, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			if r.ContentLength < 0 && r.ProtoMajor == 1 {
				w = &streamWriter{w}
			}
			if coding := codingOf(r.Header); coding != "" {
				w.Header().Set("Accept-Encoding", "identity")
				problem.Write(w, schema.Errorf(problem.KindMediaType, "The body is encoded with %q, which is not supported: send it as it is, without Content-Encoding.", problem.Printable(coding, maxCoding)))
				return
			}
			next.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// streamWriter writes the answer to a request whose body has no announced length, such as a stream of lines.
// Before net/http sends an answer, it reads what the handler has left of a body, up to 256 KiB and without a
// limit of time. A client that streams would not learn that it is refused, and anybody could keep a
// connection occupied.
type streamWriter struct{ http.ResponseWriter }

// WriteHeader closes the connection after an error, which is therefore sent at once, and limits the time
// for the rest of the body.
func (s *streamWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Now().Add(refusedBody)) // the recorder of a test has none
		s.Header().Set("Connection", "close")
	}
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the connection.
func (s *streamWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// maxCoding is the maximum number of characters of a content coding that an error repeats.
const maxCoding = 64

// codingOf returns the content coding of a body, or "" (RFC 9110, section 8.4).
func codingOf(h http.Header) string {
	values := h["Content-Encoding"]
	if len(values) == 0 {
		return ""
	}
	coding := strings.TrimSpace(strings.Join(values, ", "))
	if strings.EqualFold(coding, "identity") {
		return ""
	}
	return coding
}

// Serve serves on l until the server is shut down. If it ends earlier, Serve sends the error with the
// configured address to failed, which must have capacity for it.
func Serve(s *http.Server, l net.Listener, address string, failed chan<- error) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("serving on %s: %w", address, err)
	}
}
