package session

import (
	"bytes"
	"errors"
	"io"
)

// errTooLong means that a line went over the limit.
var errTooLong = errors.New("it sent more than the limit for a result")

const (
	lineBuffer  = 64 << 10 // to begin with, for a stream that stays
	smallBuffer = 8 << 10  // the same for the answer to one request
	keepLine    = 1 << 20  // a larger buffer is let go after its line
)

// lines splits a stream at line feeds. It buffers one line at most, and never
// more than max bytes of it.
type lines struct {
	from     io.Reader
	buf      []byte
	at, seen int // the line starts at at; up to seen there is no line feed
	fill     int
	max      int
	err      error
	idle     func() // called before a read, when every whole line was returned
}

func newLines(from io.Reader, size, max int) *lines {
	return &lines{from: from, buf: make([]byte, size), max: max}
}

// next returns the next line without its end, valid until the following call.
// What stands after the last line feed counts as a line. The error is
// errTooLong, or what the stream ended with.
func (l *lines) next() ([]byte, error) {
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
			if len(line) > 0 {
				return line, nil
			}
			return nil, l.err
		}
		if l.fill-l.at > l.max {
			return nil, errTooLong
		}
		l.room()
		if l.idle != nil {
			l.idle()
		}
		n, err := l.from.Read(l.buf[l.fill:])
		l.fill += n
		l.err = err
	}
}

// room makes place to read into.
func (l *lines) room() {
	size := l.fill - l.at
	switch {
	case size <= lineBuffer/4 && len(l.buf) > keepLine:
		fresh := make([]byte, lineBuffer)
		copy(fresh, l.buf[l.at:l.fill])
		l.buf = fresh
	case l.at > 0 && (size == 0 || len(l.buf)-l.fill < len(l.buf)/4 && size < len(l.buf)/2):
		copy(l.buf, l.buf[l.at:l.fill])
	case l.fill < len(l.buf):
		return
	default:
		bigger := make([]byte, min(2*len(l.buf), l.max+smallBuffer))
		copy(bigger, l.buf[l.at:l.fill])
		l.buf = bigger
	}
	l.seen -= l.at
	l.at, l.fill = 0, size
}
