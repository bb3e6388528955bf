// Package lines splits an untrusted stream at its line feeds.
//
// It owns the buffer: a [Reader] holds one line at most, up to a limit, returns lines without a
// copy, and releases a large buffer after its line. It does not interpret lines.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong means that a line exceeded the limit.
var ErrTooLong = errors.New("its output exceeds the limit for a result")

const (
	// Long is the initial buffer size for a long-lived stream, Short that for the response to one
	// request, in bytes.
	Long  = 64 << 10
	Short = 8 << 10
	// Keep is the size, in bytes, of the largest buffer that is kept after its line.
	Keep = 1 << 20
)

// Reader splits a stream at line feeds. It is used by one goroutine.
type Reader struct {
	// Idle, if set, is called before each read, when every complete line has been returned.
	Idle func()

	from     io.Reader
	buf      []byte
	at, seen int // the line starts at at; there is no line feed before seen
	fill     int
	max      int
	err      error
	cut      bool
}

// NewReader returns a reader with an initial buffer of size bytes. Lines may have at most max
// bytes, or slightly more.
func NewReader(from io.Reader, size, max int) *Reader {
	return &Reader{from: from, buf: make([]byte, size), max: max}
}

// Next returns the next line without its LF or CR LF. It is valid until the next call. Text after
// the last line feed counts as a line. The error is ErrTooLong, or the error of the stream.
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

// skipEnds is the number of bytes at each end of a line that Skip returns.
const skipEnds = 256

// Skip discards the rest of a line for which Next has returned ErrTooLong. It returns the first and the
// last bytes of the line, so that the caller can find out what it was. If the line does not end within
// most further bytes, the error is ErrTooLong, and if the stream ends, it is that of the stream; then tail
// is nil.
func (l *Reader) Skip(most int) (head, tail []byte, err error) {
	head = bytes.Clone(l.buf[l.at:min(l.at+skipEnds, l.fill)])
	l.at = 0
	l.keepEnd()
	for skipped := 0; l.err == nil; {
		if skipped > most {
			return head, nil, ErrTooLong
		}
		from := l.fill
		n, err := l.from.Read(l.buf[from:])
		l.fill += n
		l.err = err
		if i := bytes.IndexByte(l.buf[from:l.fill], '\n'); i >= 0 {
			end := from + i
			l.at, l.seen = end+1, end+1
			return head, bytes.Clone(l.buf[max(0, end-skipEnds):end]), nil
		}
		skipped += n
		l.keepEnd()
	}
	l.at, l.seen = l.fill, l.fill
	return head, nil, l.err
}

// keepEnd moves the last bytes of the buffer to its beginning, and discards the rest.
func (l *Reader) keepEnd() {
	l.fill = copy(l.buf, l.buf[max(0, l.fill-skipEnds):l.fill])
	l.seen = l.fill
}

// Cut reports whether the stream ended within the line that Next returned last.
func (l *Reader) Cut() bool { return l.cut }

// space makes space in the buffer for the next read.
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
