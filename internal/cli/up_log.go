package cli

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// startupLog is the log of `up` at a terminal. Until the start screen is complete, it drops records
// below warnings: the progress line shows the parts that start, and log lines between the parts of
// the screen would hide it.
type startupLog struct {
	slog.Handler
	starting *atomic.Bool
}

// Enabled implements [slog.Handler].
func (h startupLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || !h.starting.Load())
}

// WithAttrs implements [slog.Handler].
func (h startupLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return startupLog{h.Handler.WithAttrs(attrs), h.starting}
}

// WithGroup implements [slog.Handler].
func (h startupLog) WithGroup(name string) slog.Handler {
	return startupLog{h.Handler.WithGroup(name), h.starting}
}
