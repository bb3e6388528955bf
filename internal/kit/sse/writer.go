package sse

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// keep is the size, in bytes, of the largest buffer that is kept between events.
const keep = 64 << 10

// appendEvent appends one event. id is left out where it is empty. The parts are its data,
// joined; line breaks in them (LF, CR LF or CR) become those of the event's data.
func appendEvent(dst []byte, name, id string, parts ...[]byte) []byte {
	dst = append(append(append(dst, "event: "...), name...), '\n')
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(dst, "data: "...)
	for _, part := range parts {
		dst = appendLines(dst, part)
	}
	return append(dst, "\n\n"...)
}

func appendLines(dst, text []byte) []byte {
	for {
		i := bytes.IndexAny(text, "\r\n")
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:i]...), "\ndata: "...)
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		text = text[i+1:]
	}
}

// Writer sends events as the answer to one request. It is used by one goroutine, or
// under a lock of its owner.
type Writer struct {
	W http.ResponseWriter
	// Within is the time that the client has to take a number of bytes.
	Within func(bytes int) time.Duration

	begun bool
	buf   []byte
}

// Begin sends the head of the answer, once; what sends anything else begins too.
func (w *Writer) Begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy must not hold events back
	w.W.WriteHeader(http.StatusOK)
}

// Begun says that the head was sent.
func (w *Writer) Begun() bool { return w.begun }

// Event sends one event; the data is its parts, joined.
func (w *Writer) Event(name, id string, parts ...[]byte) error {
	w.buf = appendEvent(w.buf[:0], name, id, parts...)
	return w.flush()
}

// Beat sends a comment, so that nothing on the way closes a quiet connection and a
// client that left is noticed.
func (w *Writer) Beat() error {
	w.buf = append(w.buf[:0], ": alive\n\n"...)
	return w.flush()
}

// Retry tells the client how long to wait before it reconnects.
func (w *Writer) Retry(after time.Duration) error {
	w.buf = append(strconv.AppendInt(append(w.buf[:0], "retry: "...), after.Milliseconds(), 10), "\n\n"...)
	return w.flush()
}

// End leaves the connection as it was found.
func (w *Writer) End() {
	if w.begun {
		_ = http.NewResponseController(w.W).SetWriteDeadline(time.Time{}) // see flush
	}
}

func (w *Writer) flush() error {
	w.Begin()
	rc := http.NewResponseController(w.W)
	_ = rc.SetWriteDeadline(time.Now().Add(w.Within(len(w.buf)))) // a writer without deadlines does without
	_, err := w.W.Write(w.buf)
	if err == nil {
		err = rc.Flush()
	}
	if cap(w.buf) > keep {
		w.buf = nil
	}
	if err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	return nil
}

// Offer puts v into a channel whose values are written as events, and never blocks: where
// the channel is full, the oldest goes.
func Offer[T any](to chan T, v T) {
	for {
		select {
		case to <- v:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}
