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
)

// NewServer returns a server of next with bounds for headers and idle connections. It refuses
// bodies that are compressed, as nobody here unpacks them: their bounds count what arrives. While
// draining is set it asks clients to close their connections, each after its answer:
// closing idle connections instead would meet requests that are already on their way.
func NewServer(next http.Handler, draining *atomic.Bool, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if draining.Load() {
				w.Header().Set("Connection", "close")
			}
			if coding := codingOf(r.Header); coding != "" {
				w.Header().Set("Accept-Encoding", "identity")
				problem.Write(w, schema.Errorf(problem.KindMediaType, "The body is encoded with %q, which is not supported: send it as it is, without Content-Encoding.", problem.Printable(coding, mostCoding)))
				return
			}
			next.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// mostCoding is how many characters of a content coding are repeated.
const mostCoding = 64

// codingOf returns the content coding of a body, "" for none (RFC 9110, section 8.4).
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

// Serve serves at l until the server is shut down. Where it ends before, failed gets the
// error, with the address that was configured; it must have room for that.
func Serve(s *http.Server, l net.Listener, address string, failed chan<- error) {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("serving on %s: %w", address, err)
	}
}
