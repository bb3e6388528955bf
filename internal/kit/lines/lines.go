// Package lines splits a stream that somebody else writes at its line feeds.
//
// It owns the buffer: a [Reader] holds one line at most, never more than a limit of
// it, gives lines out without a copy, and lets a large buffer go after its line. It
// refuses to know what a line means.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong means that a line went over the limit.
var ErrTooLong = errors.New("its output exceeds the limit for a result")

const (
	// Long is a first buffer for a stream that stays, Short one for the answer to
	// one request, in bytes.
	Long  = 64 << 10
	Short = 8 << 10
	// Keep is the size, in bytes, of the largest buffer that is kept after its line.
	Keep = 1 << 20
)

// Reader splits a stream at line feeds. It is used by one goroutine.
type Reader struct {
	// Idle, where set, is called before each read: every whole line was returned.
	Idle func()

	from     io.Reader
	buf      []byte
	at, seen int // the line starts at at; up to seen there is no line feed
	fill     int
	max      int
	err      error
	cut      bool
}

// NewReader returns a reader with a first buffer of size bytes that takes lines of at
// most max bytes, or a little more.
func NewReader(from io.Reader, size, max int) *Reader {
	return &Reader{from: from, buf: make([]byte, size), max: max}
}

// Next returns the next line without its end, LF or CR LF, valid until the following
// call. What stands after the last line feed counts as a line. The error is
// ErrTooLong, or what the stream ended with.
func (l *Reader) Next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.fill], '\n'); i >= 0 {
			line := l.buf[l.at : l.seen+i]
			l.at = l.seen + i + 1
			l.seen = l.at
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			return line, nil
		}
		l.seen = l.fill
		if l.err != nil {
			line := l.buf[l.at:l.fill]
			l.at = l.fill
			if l.cut = len(line) > 0; l.cut {
				return line, nil
			}
			return nil, l.err
		}
		if l.fill-l.at > l.max {
			return nil, ErrTooLong
		}
		l.space()
		if l.Idle != nil {
			l.Idle()
		}
		n, err := l.from.Read(l.buf[l.fill:])
		l.fill += n
		l.err = err
	}
}

// Cut says that the line which Next returned last has no end: the stream ended in it.
func (l *Reader) Cut() bool { return l.cut }

// space makes place to read into.
func (l *Reader) space() {
	size := l.fill - l.at
	switch {
	case size <= Long/4 && len(l.buf) > Keep:
		fresh := make([]byte, Long)
		copy(fresh, l.buf[l.at:l.fill])
		l.buf = fresh
	case l.at > 0 && (size == 0 || len(l.buf)-l.fill < len(l.buf)/4 && size < len(l.buf)/2):
		copy(l.buf, l.buf[l.at:l.fill])
	case l.fill < len(l.buf):
		return
	default:
		bigger := make([]byte, min(2*len(l.buf), l.max+Short))
		copy(bigger, l.buf[l.at:l.fill])
		l.buf = bigger
	}
	l.seen -= l.at
	l.at, l.fill = 0, size
}
