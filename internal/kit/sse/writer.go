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

// appendEvent appends one event. An empty id is omitted. The data is the concatenation of parts;
// line breaks in it (LF, CR LF or CR) start a new data line.
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

// Writer sends events as the response to one request. It must be used by one goroutine, or under
// the owner's lock.
type Writer struct {
	W http.ResponseWriter
	// Within returns the time that the client has to receive a number of bytes.
	Within func(bytes int) time.Duration

	begun bool
	buf   []byte
}

// Begin sends the response header, once. All other methods that send call it first.
func (w *Writer) Begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy must not buffer events
	w.W.WriteHeader(http.StatusOK)
}

// Begun reports whether the response header was sent.
func (w *Writer) Begun() bool { return w.begun }

// Event sends one event. Its data is the concatenation of parts.
func (w *Writer) Event(name, id string, parts ...[]byte) error {
	w.buf = appendEvent(w.buf[:0], name, id, parts...)
	return w.flush()
}

// Beat sends a comment, so that proxies do not close an idle connection, and to detect a
// disconnected client.
func (w *Writer) Beat() error {
	w.buf = append(w.buf[:0], ": alive\n\n"...)
	return w.flush()
}

// Retry sends the time that the client must wait before it reconnects.
func (w *Writer) Retry(after time.Duration) error {
	w.buf = append(strconv.AppendInt(append(w.buf[:0], "retry: "...), after.Milliseconds(), 10), "\n\n"...)
	return w.flush()
}

// End resets the write deadline of the connection.
func (w *Writer) End() {
	if w.begun {
		_ = http.NewResponseController(w.W).SetWriteDeadline(time.Time{}) // see flush
	}
}

func (w *Writer) flush() error {
	w.Begin()
	rc := http.NewResponseController(w.W)
	_ = rc.SetWriteDeadline(time.Now().Add(w.Within(len(w.buf)))) // not every writer supports deadlines
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

// Offer sends v to a channel of pending events without blocking. If the channel is full, it drops
// the oldest value.
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
