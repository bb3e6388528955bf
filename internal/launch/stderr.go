package launch

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
)

const (
	tailSize    = 8 << 10 // maximum that StderrTail shows, before unprintable bytes are escaped
	longestLine = 2 << 10 // maximum of a line that is processed for the log
	loggedLine  = 512     // maximum of a line that is logged
	lineRate    = 50      // logged lines per second
)

// tail reads a child's stderr, keeps its end and logs its lines at debug level.
type tail struct {
	log      *slog.Logger
	redactor redactor
	keep     int // kept bytes: the tail and one configured value that may be cut at its start

	mu   sync.Mutex
	buf  []byte
	lost bool // bytes before buf were dropped
}

func newTail(log *slog.Logger, env map[string]string) *tail {
	r := newRedactor(env)
	return &tail{log: log, redactor: r, keep: tailSize + r.longest}
}

// drain reads until the pipe ends or its deadline passes.
func (t *tail) drain(r io.Reader) {
	lines := lineLog{log: t.log, redactor: t.redactor, quota: perSecond{limit: lineRate}}
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			t.add(buf[:n])
			if t.log.Enabled(context.Background(), slog.LevelDebug) {
				lines.add(buf[:n])
			}
		}
		if err != nil {
			lines.end()
			return
		}
	}
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	// Moving bytes only when the buffer is twice too long moves each byte once.
	if len(t.buf) > 2*t.keep {
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-t.keep:])]
		t.lost = true
	}
}

// String returns the tail in the form for people.
func (t *tail) String() string {
	t.mu.Lock()
	raw := bytes.Clone(t.buf)
	lost := t.lost
	t.mu.Unlock()
	if len(raw) > t.keep {
		raw, lost = raw[len(raw)-t.keep:], true
	}
	text := t.redactor.redact(string(raw))
	if lost { // it may start with the end of a value
		text = text[min(len(text), t.redactor.longest):]
	}
	if len(text) > tailSize {
		text, lost = text[len(text)-tailSize:], true
	}
	if lost {
		text = truncate.DropPartialRune(text)
	}
	return clean(text)
}

// lineLog logs lines within its quota.
type lineLog struct {
	log      *slog.Logger
	redactor redactor
	quota    perSecond
	line     []byte
	cut      bool // the line was truncated
}

func (l *lineLog) add(p []byte) {
	for len(p) > 0 {
		part, rest, complete := bytes.Cut(p, []byte{'\n'})
		budget := longestLine + l.redactor.longest - len(l.line)
		if len(part) > budget {
			part, l.cut = part[:budget], true
		}
		l.line = append(l.line, part...)
		if complete {
			l.flush()
		}
		p = rest
	}
}

func (l *lineLog) flush() {
	line, cut := l.line, l.cut
	l.line, l.cut = l.line[:0], false
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	allowed, dropped := l.quota.take(time.Now())
	if dropped > 0 {
		l.log.Debug("stderr lines not logged", "lines", dropped)
	}
	if !allowed {
		return
	}
	text := l.redactor.redact(string(line))
	if cut { // it may end with the start of a value
		text = text[:max(0, len(text)-l.redactor.longest)]
	}
	if len(text) > loggedLine {
		text = text[:loggedLine]
	}
	l.log.Debug("stderr", "line", clean(text))
}

func (l *lineLog) end() {
	l.flush()
	if l.quota.dropped > 0 {
		l.log.Debug("stderr lines not logged", "lines", l.quota.dropped)
	}
}

// perSecond is a quota per second.
type perSecond struct {
	limit   int
	second  int64
	used    int
	dropped int // since the start of a second in which something was dropped
}

// take reports whether one more is allowed now, and once per second the number dropped before that
// second.
func (p *perSecond) take(now time.Time) (allowed bool, dropped int) {
	if s := now.Unix(); s != p.second {
		dropped = p.dropped
		p.second, p.used, p.dropped = s, 0, 0
	}
	if p.used >= p.limit {
		p.dropped++
		return false, dropped
	}
	p.used++
	return true, dropped
}
