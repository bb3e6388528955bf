package callyard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// refusalMost limits the number of bytes that are read of an error response.
const refusalMost = 1 << 20

// Lines decodes a response that has one JSON value per line while it arrives, and closes it. Its
// arguments are the results of a method of [Client]:
//
//	for result, err := range callyard.Lines[callyard.BatchResult](client.GetBatchResults(ctx, id, params)) {
//
// An error response yields one *[ProblemError]. The sequence ends after an error; pass the Cursor
// of the last line to the next request to continue. The sequence can be iterated once. If T is
// json.RawMessage, each value is the line as received.
func Lines[T any](res *http.Response, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err = open(res, err); err != nil {
			yield(none, err)
			return
		}
		defer res.Body.Close()
		from := bufio.NewReaderSize(res.Body, 64<<10)
		for {
			line, err := from.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(none, fmt.Errorf("reading a line of the answer: %w", err))
				return
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				var value T
				if fault := json.Unmarshal(line, &value); fault != nil {
					yield(none, fmt.Errorf("decoding a line of the answer: %w", fault))
					return
				}
				if !yield(value, nil) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// Event is one server-sent event.
type Event struct {
	// Name is the type of Data: fleet, batch, progress, result or error.
	Name string
	// ID is empty if the event has none.
	ID string
	// Data is JSON.
	Data json.RawMessage
}

// Events reads a response of server-sent events while it arrives, and closes it. Errors
// and iteration work as for [Lines]. If the sequence ends without an error, the front
// door ended the stream because it shuts down or has no more events.
func Events(res *http.Response, err error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err = open(res, err); err != nil {
			yield(Event{}, err)
			return
		}
		defer res.Body.Close()
		if err := readEvents(res.Body, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, fmt.Errorf("reading the events: %w", err))
		}
	}
}

// readEvents calls each for every event of a stream until each returns false. It drops an
// incomplete last event, as the SSE format requires.
func readEvents(r io.Reader, each func(Event) bool) error {
	from := bufio.NewReaderSize(r, 64<<10)
	var e Event
	has := false
	for {
		line, err := from.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		if len(line) == 0 {
			if has && !each(e) {
				return nil
			}
			e, has = Event{}, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		case "data":
			if has {
				e.Data = append(e.Data, '\n')
			}
			e.Data, has = append(e.Data, value...), true
		}
	}
}

// open returns nil if the response can be streamed. Otherwise it closes the response and
// returns its error.
func open(res *http.Response, err error) error {
	if err != nil || res.StatusCode < http.StatusBadRequest && !isForeignPage(res) {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, refusalMost))
	if err != nil {
		return fmt.Errorf("reading a refusal of status %d: %w", res.StatusCode, err)
	}
	return Check(res, body)
}

// LinesType is the media type of bodies with one JSON value per line.
const LinesType = "application/x-ndjson"

// LinesOf returns a request body that has each value as JSON on its own line. The lines are
// encoded while the body is sent, so a batch may have any number of calls:
//
//	client.CreateBatchWithBody(ctx, params, callyard.LinesType, callyard.LinesOf(calls))
//
// The body must be read to its end or closed; net/http does both.
func LinesOf[T any](values iter.Seq[T]) io.ReadCloser {
	next, stop := iter.Pull(values)
	return &lineReader[T]{next: next, stop: stop}
}

type lineReader[T any] struct {
	next func() (T, bool)
	stop func()
	left bytes.Buffer
}

// Read encodes the next value when the previous line has been read.
func (l *lineReader[T]) Read(p []byte) (int, error) {
	for l.left.Len() == 0 {
		value, ok := l.next()
		if !ok {
			return 0, io.EOF
		}
		if err := json.NewEncoder(&l.left).Encode(value); err != nil {
			return 0, fmt.Errorf("encoding a line: %w", err)
		}
	}
	return l.left.Read(p)
}

// Close stops the iteration over the values.
func (l *lineReader[T]) Close() error {
	l.stop()
	return nil
}
