package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// quietMost is how long a stream of events may be silent. The front door sends a
// comment each 15 seconds, so a longer silence is a connection that is gone.
const quietMost = time.Minute

var errQuiet = errors.New("nothing came for a minute, not even a sign of life")

// event is one server-sent event.
type event struct {
	name string // "message" where the stream names none
	data []byte
}

// errEnough, returned by the reader of a stream, ends it.
var errEnough = errors.New("enough")

// readEvents reads a stream of server-sent events to its end, or until each
// returns an error, which is returned; errEnough ends it without one. An event
// that the end of the stream cut off is dropped, as the format asks for.
func readEvents(r io.Reader, each func(event) error) error {
	in := bufio.NewReaderSize(r, 32<<10)
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = in.Discard(3) // it was peeked at
	}
	var e event
	var lines int
	line := func(text []byte) error {
		if len(text) > 0 {
			lines += e.take(text, lines)
			return nil
		}
		ready := e
		had := lines > 0
		e, lines = event{}, 0
		if !had {
			return nil
		}
		ready.name = firstOf(ready.name, "message")
		return each(ready)
	}
	for {
		chunk, err := in.ReadBytes('\n')
		whole := len(chunk) > 0 && chunk[len(chunk)-1] == '\n'
		if whole {
			chunk = bytes.TrimSuffix(chunk[:len(chunk)-1], []byte("\r"))
		}
		// A lone carriage return ends a line too.
		for {
			text, rest, more := bytes.Cut(chunk, []byte("\r"))
			if more || whole {
				if err := line(text); err != nil {
					if errors.Is(err, errEnough) {
						return nil
					}
					return err
				}
			}
			if !more {
				break
			}
			chunk = rest
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take adds one line of the stream to the event and returns how many lines of
// data it was: one or none.
func (e *event) take(text []byte, lines int) int {
	field, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if lines > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return 1
	}
	return 0 // a comment, an id, or a field of another time
}

// stream sends the request and hands over the events of its answer. An answer
// that is JSON instead becomes one event, named by "json". A stream that is
// silent for [quietMost] is an error.
func (c *client) stream(ctx context.Context, q request, each func(event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media := mediaType(resp.Header); media != mediaEvents {
		body, err := c.readJSON(ctx, resp)
		if err != nil {
			return err
		}
		if err = each(event{name: answerEvent(resp), data: body}); errors.Is(err, errEnough) {
			err = nil
		}
		return err
	}
	quiet := time.AfterFunc(quietMost, func() { cancel(errQuiet) })
	defer quiet.Stop()
	err = readEvents(&watched{r: resp.Body, heard: func() { quiet.Reset(quietMost) }}, each)
	var ours *exitError
	if err == nil || errors.As(err, &ours) {
		return err
	}
	return c.unreachable(ctx, err)
}

// Names of events that stand for an answer in one piece.
const (
	eventJSON = "json"
	eventHeld = "held"
)

func answerEvent(resp *http.Response) string {
	if resp.StatusCode == http.StatusAccepted {
		return eventHeld
	}
	return eventJSON
}

// watched says when something was read.
type watched struct {
	r     io.Reader
	heard func()
}

// Read reads on.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.heard()
	}
	return n, err
}
