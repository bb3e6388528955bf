package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/waits"
	"github.com/callyard/callyard/pkg/schema"
)

// stalled is a connection whose client sends nothing more. Reads block until a deadline is set.
type stalled struct {
	http.ResponseWriter
	due chan struct{}
}

func (s *stalled) SetReadDeadline(time.Time) error {
	close(s.due)
	return nil
}

func (s *stalled) Read([]byte) (int, error) {
	<-s.due
	return 0, os.ErrDeadlineExceeded
}

func TestTheTimeForABodyFollowsItsAnnouncedSize(t *testing.T) {
	const limit = 32 << 20
	for announced, want := range map[int64]time.Duration{
		1000: 15 * time.Second, 64 << 10: 16 * time.Second, -1: bodies.TimeFor(limit),
	} {
		synctest.Test(t, func(t *testing.T) {
			conn := &stalled{httptest.NewRecorder(), make(chan struct{})}
			r := httptest.NewRequest(http.MethodPost, "/batches", io.NopCloser(conn))
			r.ContentLength = announced
			x := NewShared(slog.New(slog.DiscardHandler), NewBudget(), waits.New(waits.All, waits.Each), func() bool { return false }).Begin(conn, "1")
			begun := time.Now()
			_, err := x.ReadBody(r, limit)
			if kind := schema.KindOf(err); kind != problem.KindBodyTimeout || time.Since(begun) != want {
				t.Errorf("a body of %d bytes ends after %s with %v, want %s", announced, time.Since(begun), err, want)
			}
		})
	}
}
