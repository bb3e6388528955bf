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

// refusalMost is how much of a refusal is read.
const refusalMost = 1 << 20

// Lines reads an answer that has one JSON value on each line, as far as it goes,
// and closes it. It takes what the methods of [Client] return:
//
//	for result, err := range callyard.Lines[callyard.BatchResult](client.GetBatchResults(ctx, id, params)) {
//
// A refusal is returned as one *[ProblemError]. There are no more lines after an error; the
// Cursor of the last line is where the next request continues. The sequence can be read
// once. With json.RawMessage as T, each line is the bytes that were received.
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
	// Name says what Data is: fleet, batch, progress, result or error.
	Name string
	// ID is empty where the event has none.
	ID string
	// Data is JSON.
	Data json.RawMessage
}

// Events reads an answer of server-sent events, as far as it goes, and closes it.
// What holds for [Lines] holds here. An end without an error is that of the
// stream: the front door is shutting down, or there is nothing more to tell.
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

// readEvents gives the events of a stream to each until that returns false. An
// event whose end did not come is dropped, as the format asks for.
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

// open says whether there is an answer to read; otherwise it closes what came.
func open(res *http.Response, err error) error {
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, refusalMost))
	if err != nil {
		return fmt.Errorf("reading a refusal of status %d: %w", res.StatusCode, err)
	}
	return Check(res, body)
}

// LinesType is the content type of bodies that have one JSON value on each line.
const LinesType = "application/x-ndjson"

// LinesOf returns a request body that has each value as JSON on a line, made while
// it is read, so that a batch may have any number of calls:
//
//	client.CreateBatchWithBody(ctx, params, callyard.LinesType, callyard.LinesOf(calls))
//
// It must be read to its end or closed, which net/http does.
func LinesOf[T any](values iter.Seq[T]) io.ReadCloser {
	next, stop := iter.Pull(values)
	return &lineReader[T]{next: next, stop: stop}
}

type lineReader[T any] struct {
	next func() (T, bool)
	stop func()
	left bytes.Buffer
}

// Read makes the next line when the one before is read.
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

// Close ends the values.
func (l *lineReader[T]) Close() error {
	l.stop()
	return nil
}
