package launch

import (
	"context"
	"log/slog"
	"sync"
)

// Tail keeps the end of a server's stderr and logs its lines at debug level, for servers whose
// stderr is not a pipe. Write must not be called concurrently; String may.
type Tail struct {
	tail  *tail
	lines lineLog
	end   sync.Once
}

// NewTail returns an empty Tail. Values of env, which may be secret, are shown as the names of their
// variables.
func NewTail(log *slog.Logger, env map[string]string) *Tail {
	t := newTail(log, env)
	return &Tail{tail: t, lines: lineLog{log: log, redactor: t.redactor, quota: perSecond{limit: lineRate}}}
}

// Write adds output of the server. It does not fail.
func (t *Tail) Write(p []byte) (int, error) {
	t.tail.add(p)
	if t.lines.log.Enabled(context.Background(), slog.LevelDebug) {
		t.lines.add(p)
	}
	return len(p), nil
}

// End logs the rest of the last line. Do not call Write after it.
func (t *Tail) End() { t.end.Do(t.lines.end) }

// String returns the end of the output, like [Child.StderrTail].
func (t *Tail) String() string { return t.tail.String() }
