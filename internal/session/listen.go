package session

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/lines"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/sse"
)

const (
	listenOpen   = 2 * time.Second       // wait for the headers of the GET stream before the session is used without it
	listenSettle = 20 * time.Millisecond // wait for messages that were sent on it before the answer to a call
)

// reopens sets the pauses between attempts to reopen the stream.
var reopens = backoff.Policy{First: resumeWait, Max: 30 * time.Second}

// listen opens the GET stream of a legacy session and reads it until the session ends. Servers
// send everything on it that they do not tie to one request, such as questions to the caller,
// log messages, progress and list changes. listen returns once the server has answered the GET,
// because a server drops messages that it sends before. ctx and listenOpen limit that wait.
func (l *remoteLink) listen(ctx context.Context) {
	if l.s.modern() {
		return // that era has subscriptions/listen, which the SDK reads
	}
	opened := make(chan struct{})
	l.work.Go(func() { l.listenOn(opened) })
	timer := time.NewTimer(listenOpen)
	defer timer.Stop()
	select {
	case <-opened:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// listenOn keeps the GET stream open as long as the server offers one. It closes opened after the
// first answer.
func (l *remoteLink) listenOn(opened chan<- struct{}) {
	resp, err := l.getStream(l.ctx, "")
	close(opened)
	in := new(sse.Reader)
	for failures := 0; ; failures++ {
		var status *statusError
		switch {
		case l.ctx.Err() != nil:
			return
		case err == nil:
			next := newEvents(&l.s.pool.cfg, resp.Body, lines.Short)
			next.LastID, next.Retry = in.LastID, in.Retry
			in = next
			l.hears.Store(true)
			if l.readStream(in) {
				failures = 0
			}
			resp.Body.Close()
		case errors.As(err, &status) && !l.hears.Load():
			return // the server has no stream: some do not report that with 405
		case errors.As(err, &status) && l.lost(status.code, status.text):
			l.s.retire(errForgotten)
			return
		case errors.As(err, &status) && status.code/100 == 4:
			return
		}
		wait := in.Retry
		if wait <= 0 || failures > 0 { // a short time of the server must not make it busy with failing attempts
			wait = max(wait, reopens.Delay(failures))
		}
		if !sleep.For(wait, l.ctx.Done()) {
			return
		}
		resp, err = l.getStream(l.ctx, in.LastID)
	}
}

// readStream reads the GET stream to its end. It reports whether it read any event, including those
// without content, with which servers announce the id from which to continue.
func (l *remoteLink) readStream(in *sse.Reader) (some bool) {
	var scan scanner
	var f frame
	before := in.LastID
	for {
		ev, err := nextEvent(in)
		if err != nil {
			return some || in.LastID != before
		}
		some = true
		if !isMessage(ev) {
			continue
		}
		if !scan.frame(ev.Data, &f) || f.method == nil {
			l.s.pool.noise.Add(1)
			continue
		}
		l.spoke.Store(true)
		l.s.incoming(&f)
	}
}

// settle waits briefly before it ends a call whose caller receives messages from the server.
// Messages that the server sent on the GET stream before its answer arrive on another connection.
func (l *remoteLink) settle(ctx context.Context, r *Request) {
	if l.hears.Load() && (r.Said != nil && l.s.asks != nil || r.Progress != nil && l.spoke.Load()) {
		sleep.For(listenSettle, ctx.Done())
	}
}

// getStream sends a GET for an event stream, to resume after an event if one is given. An answer
// that is not an event stream is returned as a *statusError.
func (l *remoteLink) getStream(ctx context.Context, after string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = l.header(nil)
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		text, _ := readAll(resp.Body, resp.ContentLength, frameHeadroom) // a body that cannot be read counts as empty
		resp.Body.Close()
		return nil, &statusError{resp.StatusCode, text}
	}
	return resp, nil
}

// statusError is an answer to a GET that is not an event stream.
type statusError struct {
	code int
	text []byte
}

func (e *statusError) Error() string {
	return "it rejected the event stream with HTTP " + statusLine(e.code)
}
