package listen_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/listen"
)

func TestACompressedBodyIsRefused(t *testing.T) {
	var draining atomic.Bool
	s := listen.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "read") }), &draining, slog.New(slog.DiscardHandler))
	for coding, want := range map[string]int{"": 200, "identity": 200, " Identity ": 200, "gzip": 415, "br": 415, "identity, gzip": 415, strings.Repeat("x", 1000): 415} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header["Content-Encoding"] = strings.SplitAfter(coding, ",")
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d %s", coding, w.Code, w.Body)
		}
		if body := w.Body.String(); want == 415 && (w.Header().Get("Accept-Encoding") != "identity" || !strings.Contains(body, "without Content-Encoding") || len(body) > 500) {
			t.Errorf("%q: %v %s", coding, w.Header(), body)
		}
	}
}

// net/http would read the body first, which never ends.
func TestARefusedStreamIsAnsweredBeforeItEnds(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
	s := httptest.NewUnstartedServer(nil)
	s.Config = listen.NewServer(refuse, &draining, slog.New(slog.DiscardHandler))
	s.Start()
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the connection is closed
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") {
		t.Errorf("%q, %v", answer, err)
	}
}
