package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	// heartbeat is how often a quiet stream sends a comment, so that proxies do
	// not close it and a client that left is noticed.
	heartbeat = 15 * time.Second
	// progressWaiting is how many progress events may wait for a client that
	// reads slowly; the oldest is dropped first.
	progressWaiting = 64
	// drainLook is how often a stream of events looks whether to end.
	drainLook = 500 * time.Millisecond
)

// events writes server-sent events. It is used by one goroutine.
type events struct {
	a       *API
	x       *exchange
	rc      *http.ResponseController
	started bool
	buf     []byte
}

func (a *API) newEvents(x *exchange) *events {
	return &events{a: a, x: x, rc: http.NewResponseController(x.ResponseWriter)}
}

// start sends the head of the answer, once.
func (e *events) start() {
	if e.started {
		return
	}
	e.started = true
	h := e.x.Header()
	h["Content-Type"] = e.a.fixed.events
	h.Set("X-Accel-Buffering", "no") // a proxy must not hold events back
	e.x.WriteHeader(http.StatusOK)
}

// event sends one event.
func (e *events) event(name, id string, data []byte) error {
	e.build(name, id, data)
	return e.flush()
}

// build writes an event into the buffer. Lines of data that end in a carriage
// return, a line feed or both become lines of the event, as the format asks for.
func (e *events) build(name, id string, data []byte) {
	e.buf = append(append(append(e.buf[:0], "event: "...), name...), '\n')
	if id != "" {
		e.buf = append(append(append(e.buf, "id: "...), id...), '\n')
	}
	for more := true; more; {
		line := data
		if end := bytes.IndexAny(data, "\r\n"); end < 0 {
			more = false
		} else {
			line = data[:end]
			if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
				end++
			}
			data = data[end+1:]
		}
		e.buf = append(append(append(e.buf, "data: "...), line...), '\n')
	}
	e.buf = append(e.buf, '\n')
}

// beat sends a comment.
func (e *events) beat() error {
	e.buf = append(e.buf[:0], ": alive\n\n"...)
	return e.flush()
}

func (e *events) flush() error {
	e.start()
	_ = e.rc.SetWriteDeadline(time.Now().Add(timeFor(len(e.buf)))) // a writer without deadlines does without
	if _, err := e.x.Write(e.buf); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	if err := e.rc.Flush(); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	return nil
}

// end leaves the connection as it was found.
func (e *events) end() { _ = e.rc.SetWriteDeadline(time.Time{}) }

type ended struct {
	res *schema.Result
	err error
}

// stream has the call run and sends its progress as it comes, then its result or
// error. A call that fails before anything was sent is answered with an ordinary
// problem document. When the client leaves, the call is cancelled.
func (a *API) stream(x *exchange, r *http.Request, call *schema.Call) error {
	progress := make(chan []byte, progressWaiting)
	call.Progress = func(params []byte) { pushNewest(progress, params) }
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan ended, 1)
	var wait sync.WaitGroup
	wait.Go(func() { done <- a.guarded(ctx, call) })
	defer wait.Wait()
	defer cancel()

	x.set("Callyard-Call-Id", call.ID)
	out := a.newEvents(x)
	defer out.end()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case params := <-progress:
			err = out.event("progress", "", params)
		case <-beat.C:
			err = out.beat()
		case end := <-done:
			return a.endStream(out, progress, end)
		}
		if err != nil {
			return nil // the client left; nobody reads an error
		}
	}
}

// pushNewest never blocks: where there is no room, the oldest goes.
func pushNewest(to chan []byte, params []byte) {
	for {
		select {
		case to <- params:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}

func (a *API) endStream(out *events, progress <-chan []byte, end ended) error {
	for len(progress) > 0 {
		if err := out.event("progress", "", <-progress); err != nil {
			return nil // the client left
		}
	}
	switch {
	case end.err == nil:
		if end.res.Worker != "" && !out.started {
			out.x.set("Callyard-Worker", end.res.Worker)
		}
		_ = out.event("result", "", end.res.Body)
	case !out.started:
		return end.err
	default:
		_ = out.event("error", "", bytes.TrimSuffix(a.problem(end.err).encode(), []byte("\n")))
	}
	return nil
}

// guarded is Gate.Call for a goroutine of its own, where a panic would end the
// process.
func (a *API) guarded(ctx context.Context, call *schema.Call) (end ended) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("a call panicked", "call", call.ID, "panic", v, "stack", string(debug.Stack()))
			end.err = schema.Errorf(schema.KindInternal, "The front door failed on this call; its log says why.").WithCall(call.ID)
		}
	}()
	end.res, end.err = a.o.Gate.Call(ctx, call)
	return end
}

// follow is GET /events: the fleet as it is, then again after each change.
func (a *API) follow(x *exchange, r *http.Request) error {
	out := a.newEvents(x)
	defer out.end()
	if r.Method == http.MethodHead {
		out.start() // there is no body to wait for
		return nil
	}
	changes, cancel := a.o.Catalog.Changes()
	defer cancel()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	fleet := func(n int, since time.Time) error {
		return out.event("fleet", strconv.Itoa(n), a.snapshot.get(since, a.fleet))
	}
	n := 1
	err := fleet(n, time.Now())
	for err == nil {
		select {
		case <-r.Context().Done():
			return nil
		case <-changes:
			woken := time.Now()
			if err = out.settle(r.Context()); err == nil {
				n++
				err = fleet(n, woken)
			}
		case <-beat.C:
			err = out.beat()
		case <-look.C:
			if a.o.Draining() {
				return nil
			}
		}
	}
	return nil
}
