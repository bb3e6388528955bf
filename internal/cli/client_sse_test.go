package cli

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
)

// silent is a front door that starts a stream and then sends nothing.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &silence{ctx: r.Context(), first: strings.NewReader(": alive\n\n")}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

type silence struct {
	ctx   context.Context
	first io.Reader
}

func (s *silence) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (s *silence) Close() error { return nil }

func TestASilentStreamTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{base: "http://door", http: &http.Client{Transport: silent{}}}
		began := time.Now()
		err := c.stream(t.Context(), c.other(http.MethodGet, "/events", nil), func(sse.Event) error { return nil })
		if exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "stopped responding") || time.Since(began) != quietMost {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
