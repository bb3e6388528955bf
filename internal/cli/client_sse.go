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

// quietMost limits the silence of an event stream. The front door sends a comment each 15 seconds,
// so a longer silence means that the connection is lost.
const quietMost = time.Minute

var errQuiet = errors.New("no data arrived for a minute")

// errEnough ends a stream without an error when each returns it.
var errEnough = errors.New("enough")

// maxEvent limits the size of an event, in bytes. It is far above the size of any result.
const maxEvent = 1 << 30

// readEvents reads server-sent events until the end of the stream or until each returns an error,
// which it returns, except errEnough. The data of an event is valid until each returns.
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

// stream sends the request and calls each for the events of its response. A JSON response becomes
// one event with the name [eventJSON] or [eventHeld]. A silence of [quietMost] is an error.
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
	err = readEvents(&watched{r: resp.Body, onRead: func() { quiet.Reset(quietMost) }}, each)
	var ours *exitError
	if err == nil || errors.As(err, &ours) {
		return err
	}
	return c.unreachable(ctx, err)
}

// Names of events that represent a JSON response.
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

// watched calls onRead after each read of data.
type watched struct {
	r      io.Reader
	onRead func()
}

// Read implements [io.Reader].
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.onRead()
	}
	return n, err
}

// accepts sets the Accept header to other media types than JSON.
func accepts(media string) callyard.RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", media)
		return nil
	}
}
