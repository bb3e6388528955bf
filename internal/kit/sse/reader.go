package sse

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/callyard/callyard/internal/kit/lines"
)

// Event is one event. Its data is valid until the next one is read.
type Event struct {
	Name string // "" if the stream names none, which means "message"
	Data []byte
}

// Reader reads a stream of events. It must be used by one goroutine.
//
// A lone CR ends a line too, but lines are read up to the next line feed. Therefore the limit of a
// line applies to all text up to there.
type Reader struct {
	LastID string        // ID of the last whole event that had one
	Retry  time.Duration // reconnection time that the server requested; 0 if none

	in    *lines.Reader
	max   int
	begun bool
	rest  []byte // unread lines before the last line feed
	more  bool   // rest contains a line, which may be empty
	data  []byte
	id    string // of the event that is being read
	hasID bool
}

// NewReader returns a reader with an initial buffer of size bytes. It rejects lines and event data
// of more than max bytes.
func NewReader(from io.Reader, size, max int) *Reader {
	return &Reader{in: lines.NewReader(from, size, max), max: max}
}

// Next returns the next event that has data, which may be empty. The error is
// [lines.ErrTooLong], or the error of the stream. An event that is truncated by the end of the
// stream is dropped.
func (r *Reader) Next() (Event, error) {
	var ev Event
	if r.data = r.data[:0]; cap(r.data) > lines.Keep {
		r.data = nil
	}
	some := false
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if r.hasID {
				r.LastID, r.hasID = r.id, false
			}
			if some {
				ev.Data = r.data
				return ev, nil
			}
			ev = Event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if len(r.data)+len(value) > r.max {
				return Event{}, lines.ErrTooLong
			}
			if some {
				r.data = append(r.data, '\n')
			}
			some = true
			r.data = append(r.data, value...)
		case "event":
			if ev.Name = "message"; string(value) != ev.Name { // the usual name: avoid a copy
				ev.Name = string(value)
			}
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				r.id, r.hasID = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				r.Retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end.
func (r *Reader) line() ([]byte, error) {
	for {
		for r.more {
			line, rest, more := bytes.Cut(r.rest, []byte{'\r'})
			if r.rest, r.more = rest, more; more || !r.in.Cut() {
				return line, nil
			}
		}
		line, err := r.in.Next()
		if err != nil {
			return nil, err
		}
		if !r.begun {
			r.begun = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		r.rest, r.more = line, true
	}
}
