package session

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/pkg/schema"
)

// warnCounter counts the warnings of a log.
type warnCounter struct {
	slog.Handler
	n *atomic.Int32
}

func (h warnCounter) Enabled(context.Context, slog.Level) bool { return true }
func (h warnCounter) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h warnCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		h.n.Add(1)
	}
	return nil
}

func TestRepeatedStartFailuresAreLoggedAtMostOnce(t *testing.T) {
	t.Parallel()
	counter := warnCounter{slog.DiscardHandler, new(atomic.Int32)}
	w := &watched{t: t, flips: make(chan struct{}, 1)}
	w.Pool = Open(Config{Spec: scripted("exits")}, launcher(t), slog.New(counter), func() {
		select {
		case w.flips <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() { w.close(t) })
	w.mu.Lock()
	w.warnings = warnings.Spacing{}
	w.warnings.Due(time.Now().Add(time.Hour)) // as if it was logged in an hour
	before := counter.n.Load()
	w.mu.Unlock()
	w.until("four failures", func(schema.Server) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.keepers[0].fails >= 4
	})
	if n := counter.n.Load() - before; n > 1 {
		t.Errorf("%d lines for four failures", n)
	}
}
