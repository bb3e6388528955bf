package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/kit/urls"
	"github.com/callyard/callyard/pkg/schema"
)

// newEvents returns a reader for the events of a server, with an initial buffer of size bytes.
func newEvents(cfg *Config, from io.Reader, size int) *sse.Reader {
	return sse.NewReader(from, size, cfg.MaxResult+frameHeadroom)
}

// nextEvent returns the next event with content. Some servers send empty events, which only have
// an id.
func nextEvent(in *sse.Reader) (sse.Event, error) {
	for {
		if ev, err := in.Next(); err != nil || len(ev.Data) > 0 {
			return ev, err
		}
	}
}

// isMessage reports whether the event carries a JSON-RPC message.
func isMessage(ev sse.Event) bool { return ev.Name == "" || ev.Name == "message" }

// eventLink talks to a server over the legacy SSE transport. The server answers on one
// long-lived event stream, and requests are posted to an address that the stream names.
type eventLink struct {
	s      *session
	client *http.Client
	to     string // URL for posting messages
	ctx    context.Context
	end    context.CancelFunc
	in     *sse.Reader
	body   io.Closer
	work   sync.WaitGroup
	// replies is a semaphore for maxReplied.
	replies chan struct{}
}

// newEventLink opens the event stream. ctx bounds the opening only.
func newEventLink(ctx context.Context, s *session, client *http.Client) (*eventLink, error) {
	spec := &s.pool.cfg.Spec
	l := &eventLink{s: s, client: client, replies: make(chan struct{}, maxReplied)}
	l.ctx, l.end = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, l.end)
	in, err := l.open(spec.URL)
	if err == nil && !stop() {
		l.body.Close()
		err = ctx.Err()
	}
	if err != nil {
		l.end()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	l.in = in
	s.link = l
	return l, nil
}

// start starts the reader.
func (l *eventLink) start() { l.work.Go(l.read) }

func (l *eventLink) open(address string) (*sse.Reader, error) {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("its url is not an address")
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("it answered with HTTP %s", statusLine(resp.StatusCode))
	}
	in := newEvents(&l.s.pool.cfg, resp.Body, lines.Long)
	ev, err := nextEvent(in)
	if err == nil && ev.Name != "endpoint" {
		err = errors.New("its first event does not name an endpoint")
	}
	var to *url.URL
	if err == nil {
		to, err = req.URL.Parse(string(ev.Data))
	}
	if err != nil {
		resp.Body.Close()
		return nil, fmt.Errorf("reading its message endpoint: %w", err)
	}
	l.to, l.body = to.String(), resp.Body
	return in, nil
}

func (l *eventLink) read() {
	for {
		ev, err := nextEvent(l.in)
		if err != nil {
			if !errors.Is(err, lines.ErrTooLong) {
				err = errors.New("its event stream ended")
			}
			l.s.fail(err)
			return
		}
		if isMessage(ev) {
			l.s.receive(ev.Data)
		}
	}
}

func (l *eventLink) send(r *Running) bool {
	return l.s.begin(l.ctx, r, l.work.Go, func(ctx context.Context, _ context.CancelFunc, id int64) {
		if o, ok := l.push(ctx, appendRequest(nil, l.s.env.forCall(r), id, r.req)); !ok && l.s.take(id) != nil {
			r.end(o)
		}
	})
}

// push posts one message. If that fails, it returns the outcome for a call in the message.
func (l *eventLink) push(ctx context.Context, body []byte) (Outcome, bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	resp, connected, err := postMessage(ctx, l.client, l.to, nil, body)
	if err != nil {
		if ctx.Err() == nil {
			l.s.doubt()
		}
		return unreachable(&l.s.pool.cfg, connected, err), false
	}
	defer drain(resp, stop)
	if resp.StatusCode/100 == 2 {
		return Outcome{}, true
	}
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
		l.s.retire(errForgotten)
	}
	return refused(&l.s.pool.cfg, resp), false
}

func (l *eventLink) sdkWrite(ctx context.Context, body []byte) error {
	if o, ok := l.push(ctx, body); !ok {
		return o.Err
	}
	return nil
}

func (l *eventLink) post(body []byte) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.closed {
		return
	}
	l.work.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, postTime)
		defer cancel()
		l.push(ctx, body)
	})
}

// reply sends the reply to a request of the server. It is dropped if the server has not taken maxReplied
// earlier ones: the stream with the answers of all calls must be read on.
func (l *eventLink) reply(body []byte) {
	select {
	case l.replies <- struct{}{}:
	default:
		return
	}
	l.work.Go(func() { // the goroutine that read the request belongs to l.work
		defer func() { <-l.replies }()
		ctx, cancel := context.WithTimeout(l.ctx, postTime)
		defer cancel()
		l.push(ctx, body)
	})
}

func (l *eventLink) cancel(r *Running, id int64, reason string) {
	r.stop()
	l.post(cancelMessage(id, reason))
}

func (l *eventLink) close() {
	l.end()
	l.body.Close()
	l.work.Wait()
}

// statusLine returns an HTTP status without any text that the server chose.
func statusLine(code int) string {
	return strconv.Itoa(code) + " " + http.StatusText(code)
}

// unreachable returns the outcome of a call whose exchange failed in the network.
func unreachable(cfg *Config, connected bool, err error) Outcome {
	var ours *schema.Error
	switch {
	case errors.As(err, &ours):
		return Outcome{Started: ours.Kind == schema.KindOutcomeUnknown, Err: ours}
	case !connected:
		return Outcome{Err: &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
			Detail: fmt.Sprintf("The server %q could not be reached: %v. The call did not start.", cfg.Spec.ID, urls.WithoutURL(err))}}
	}
	return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
		"The connection to the server %q broke while the call was running: %w. The call may have run.", cfg.Spec.ID, urls.WithoutURL(err))}
}

// refused returns the outcome of a call that was answered with an HTTP error.
func refused(cfg *Config, resp *http.Response) Outcome {
	status := statusLine(resp.StatusCode)
	if resp.StatusCode/100 != 4 || resp.StatusCode == http.StatusRequestTimeout {
		// A gateway may send 502 to 504 even after the server has started the call.
		return Outcome{Started: true, Err: schema.Errorf(schema.KindOutcomeUnknown,
			"The server %q answered with HTTP %s; the call may have run.", cfg.Spec.ID, status)}
	}
	e := &schema.Error{Kind: schema.KindServerFailed, Retryable: true,
		Detail: fmt.Sprintf("The server %q refused the call with HTTP %s; it did not start.", cfg.Spec.ID, status)}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Detail = fmt.Sprintf("The server %q refused the call with HTTP %s; check the credentials in its \"headers\". The call did not start.", cfg.Spec.ID, status)
	case http.StatusTooManyRequests:
		e.RateLimited = true
		e.RetryAfter = backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now(), time.Hour)
	}
	return Outcome{Err: e}
}
