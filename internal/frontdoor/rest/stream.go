package rest

import (
	"bytes"
	"context"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/sse"
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

func newEvents(x *exchange) *sse.Writer { return &sse.Writer{W: x, Within: timeFor} }

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
	out := newEvents(x)
	defer out.End()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case params := <-progress:
			err = out.Event("progress", "", params)
		case <-beat.C:
			err = out.Beat()
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

func (a *API) endStream(out *sse.Writer, progress <-chan []byte, end ended) error {
	for len(progress) > 0 {
		if err := out.Event("progress", "", <-progress); err != nil {
			return nil // the client left
		}
	}
	switch {
	case end.err == nil:
		if end.res.Worker != "" && !out.Begun() {
			out.W.Header().Set("Callyard-Worker", end.res.Worker)
		}
		_ = out.Event("result", "", end.res.Body)
	case !out.Begun():
		return end.err
	default:
		_ = out.Event("error", "", bytes.TrimSuffix(a.problem(end.err).encode(), []byte("\n")))
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
	out := newEvents(x)
	defer out.End()
	if r.Method == http.MethodHead {
		out.Begin() // there is no body to wait for
		return nil
	}
	changes, cancel := a.o.Catalog.Changes()
	defer cancel()
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	fleet := func(n int, since time.Time) error {
		return out.Event("fleet", strconv.Itoa(n), a.snapshot.get(since, a.fleet))
	}
	n := 1
	err := fleet(n, time.Now())
	for err == nil {
		select {
		case <-r.Context().Done():
			return nil
		case <-changes:
			woken := time.Now()
			if err = settle(r.Context()); err == nil {
				n++
				err = fleet(n, woken)
			}
		case <-beat.C:
			err = out.Beat()
		case <-look.C:
			if a.o.Draining() {
				return nil
			}
		}
	}
	return nil
}
