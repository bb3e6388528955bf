package listen_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
