package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/sse"
)

// quietMost is how long a stream of events may be silent. The front door sends a
// comment each 15 seconds, so a longer silence is a connection that is gone.
const quietMost = time.Minute

var errQuiet = errors.New("no data arrived for a minute")

// errEnough, returned by the reader of a stream, ends it.
var errEnough = errors.New("enough")

// maxEvent is the size, in bytes, of the largest event that is read: no result comes
// near it.
const maxEvent = 1 << 30

// readEvents reads a stream of server-sent events to its end, or until each
// returns an error, which is returned; errEnough ends it without one. The data of an
// event is valid until each returns.
func readEvents(r io.Reader, each func(sse.Event) error) error {
	for in := sse.NewReader(r, lines.Long, maxEvent); ; {
		e, err := in.Next()
		if err == nil {
			e.Name = cmp.Or(e.Name, "message")
			err = each(e)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		}
	}
}

// stream sends the request and hands over the events of its answer. An answer
// that is JSON instead becomes one event, named by "json". A stream that is
// silent for [quietMost] is an error.
func (c *client) stream(ctx context.Context, q request, each func(sse.Event) error, edit ...callyard.RequestEditorFn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.do(ctx, q, edit...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media := mediaType(resp.Header); media != mediaEvents {
		body, err := c.readJSON(ctx, resp)
		if err != nil {
			return err
		}
		if err = each(sse.Event{Name: answerEvent(resp), Data: body}); errors.Is(err, errEnough) {
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

// accepts asks for other media types than JSON.
func accepts(media string) callyard.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", media)
		return nil
	}
}
