package rest

import (
	"bytes"
	"context"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
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
	out calls.Outcome
	err error
}

// stream submits the call and sends its progress as it comes, then its result or
// error. A call that fails, or is held, before anything was sent is answered as without a
// stream. When the client leaves, the call is canceled.
func (a *API) stream(ctx context.Context, x *exchange, req calls.Request) error {
	call := req.Call
	progress := make(chan []byte, progressWaiting)
	call.Progress = func(params []byte) { pushNewest(progress, params) }
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan ended, 1)
	var wait sync.WaitGroup
	wait.Go(func() { done <- a.guarded(ctx, x.principal, req) })
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
			if x.span != nil {
				x.outcome(&end.out, end.err)
			}
			return a.endStream(x, call, out, progress, end)
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

func (a *API) endStream(x *exchange, call *schema.Call, out *sse.Writer, progress <-chan []byte, end ended) error {
	for len(progress) > 0 {
		if err := out.Event("progress", "", <-progress); err != nil {
			return nil // the client left
		}
	}
	switch res := end.out.Result; {
	case end.out.Held != nil && !out.Begun():
		a.held(x, end.out.Held)
	case end.out.Held != nil:
		_ = out.Event("held", "", encode(a.confirmation(end.out.Held)))
	case end.err == nil:
		if !out.Begun() {
			x.set("Callyard-Call-Id", call.ID)
			if res.Worker != "" {
				x.set("Callyard-Worker", res.Worker)
			}
		}
		_ = out.Event("result", "", res.Body)
	case !out.Begun():
		return end.err
	default:
		_ = out.Event("error", "", bytes.TrimSuffix(a.problem(end.err).encode(), []byte("\n")))
	}
	return nil
}

// guarded submits a call in a goroutine of its own, where a panic would end the process,
// and waits for its end where the policy wants it stored.
func (a *API) guarded(ctx context.Context, who schema.Principal, req calls.Request) (end ended) {
	id := req.Call.ID
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("a call panicked", "call", id, "panic", v, "stack", string(debug.Stack()))
			end.err = schema.Errorf(schema.KindInternal, "The front door failed on this call; its log says why.").WithCall(id)
		}
	}()
	end.out, end.err = a.o.Calls.Submit(ctx, req)
	if end.err != nil || end.out.Accepted == nil {
		return end
	}
	s, err := a.o.Calls.Await(ctx, end.out.Accepted, who)
	if err == nil {
		end.out.Result, err = a.o.Calls.Result(ctx, s)
	}
	if end.err = err; err != nil {
		end.err = schema.AsError(err).WithCall(end.out.Accepted.CallID)
	}
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
