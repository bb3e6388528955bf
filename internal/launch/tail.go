package launch

import (
	"context"
	"log/slog"
	"sync"
)

// Tail keeps the end of what a server writes to stderr and logs its lines at
// debug level, for servers whose stderr does not come through a pipe. Write is
// for one goroutine, String for any.
type Tail struct {
	tail  *tail
	lines lineLog
	end   sync.Once
}

// NewTail returns an empty Tail. Values of env, which may be secrets, are shown
// as the names of their variables.
func NewTail(log *slog.Logger, env map[string]string) *Tail {
	t := newTail(log, env)
	return &Tail{tail: t, lines: lineLog{log: log, redactor: t.redactor, quota: perSecond{limit: lineRate}}}
}

// Write takes what the server wrote. It does not fail.
func (t *Tail) Write(p []byte) (int, error) {
	t.tail.add(p)
	if t.lines.log.Enabled(context.Background(), slog.LevelDebug) {
		t.lines.add(p)
	}
	return len(p), nil
}

// End logs what is left of the last line; nothing is written after it.
func (t *Tail) End() { t.end.Do(t.lines.end) }

// String returns the end of it as [Child.StderrTail] does.
func (t *Tail) String() string { return t.tail.String() }
