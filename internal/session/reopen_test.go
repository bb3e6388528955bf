package session

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/launch"
)

// streams answers each GET with an event stream that ends at once.
type streams struct {
	mu    sync.Mutex
	gets  int
	event func(n int) string
}

func (s *streams) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(s.event(s.gets))),
	}, nil
}

// reopened returns how often a session opens such streams in a minute.
func reopened(t *testing.T, event func(n int) string) (gets int) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(newPool(Config{Spec: launch.Spec{ID: "remote", Type: "http", URL: "http://server/mcp"}}, slog.New(slog.DiscardHandler), func() {}))
		server := &streams{event: event}
		l := newRemoteLink(s, &http.Client{Transport: server}, mcpwire.LegacyNewest, "s1")
		l.listen(t.Context())
		time.Sleep(time.Minute)
		l.close()
		gets = server.gets
	})
	return gets
}

func TestAStreamWithoutEventsIsReopenedLessAndLessOften(t *testing.T) {
	if n := reopened(t, func(int) string { return "retry: 1\n\n" }); n > 10 {
		t.Errorf("it was opened %d times in a minute", n)
	}
	if n := reopened(t, func(n int) string { return fmt.Sprintf("id: %d\nretry: 1000\ndata:\n\n", n) }); n < 50 {
		t.Errorf("a server that asks to be polled each second was asked %d times in a minute", n)
	}
}
