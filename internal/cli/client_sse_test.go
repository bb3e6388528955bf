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

// silentStream is a front door that starts a stream and then sends nothing.
type silentStream struct{}

func (silentStream) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &silentBody{ctx: r.Context(), first: strings.NewReader(": alive\n\n")}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

type silentBody struct {
	ctx   context.Context
	first io.Reader
}

func (s *silentBody) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func (s *silentBody) Close() error { return nil }

func TestASilentStreamTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{base: "http://door", http: &http.Client{Transport: silentStream{}}}
		began := time.Now()
		err := c.stream(t.Context(), c.other(http.MethodGet, "/events", nil), func(sse.Event) error { return nil })
		if exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "stopped responding") || time.Since(began) != quietMost {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
