package submit

import (
	"bytes"
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/pkg/schema"
)

// progressWaiting is the maximum number of progress events that are queued for a client that reads
// slowly. The oldest is dropped first.
const progressWaiting = 64

type ended struct {
	out calls.Outcome
	err error
}

// stream submits the call and sends its progress as events, then its result or error. A call that
// fails, or is held, before any event was sent is answered without a stream. If the client
// disconnects, the call is canceled.
func (u *Runner) stream(ctx context.Context, x *httpapi.Exchange, req calls.Request) error {
	call := req.Call
	progress := make(chan []byte, progressWaiting)
	call.Progress = func(params []byte) { sse.Offer(progress, params) }
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan ended, 1)
	var wait sync.WaitGroup
	wait.Go(func() { done <- u.guarded(ctx, x.Principal, req) })
	defer wait.Wait()
	defer cancel()

	x.Set("Callyard-Call-Id", string(call.ID))
	out := httpapi.NewEvents(x)
	defer out.End()
	beat := time.NewTicker(u.heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case params := <-progress:
			err = out.Event("progress", "", params)
		case <-beat.C:
			err = out.Beat()
		case end := <-done:
			noteOutcome(x, &end.out, end.err)
			return u.endStream(x, call, out, progress, end)
		}
		if err != nil {
			return nil // the client disconnected and cannot read an error
		}
	}
}

func (u *Runner) endStream(x *httpapi.Exchange, call *schema.Call, out *sse.Writer, progress <-chan []byte, end ended) error {
	for len(progress) > 0 {
		if err := out.Event("progress", "", <-progress); err != nil {
			return nil // the client disconnected
		}
	}
	switch res := end.out.Result; {
	case end.out.Held != nil && !out.Begun():
		u.held(x, end.out.Held)
	case end.out.Held != nil:
		_ = out.Event("held", "", httpapi.EncodeInline(u.Confirmation(end.out.Held)))
	case end.err == nil:
		if !out.Begun() {
			x.Set("Callyard-Call-Id", string(call.ID))
			if res.Worker != "" {
				x.Set("Callyard-Worker", string(res.Worker))
			}
		}
		_ = out.Event("result", "", res.Body)
	case !out.Begun():
		return end.err
	default:
		_ = out.Event("error", "", bytes.TrimSuffix(u.problems.Of(end.err).Encode(), []byte("\n")))
	}
	return nil
}

// guarded submits a call and, if the policy stores it, waits for its end. It recovers from a panic,
// which would end the process, because it runs in its own goroutine.
func (u *Runner) guarded(ctx context.Context, who schema.Principal, req calls.Request) (end ended) {
	id := req.Call.ID
	defer func() {
		if v := recover(); v != nil {
			u.log.Error("a call panicked", "call", id, "panic", v, "stack", string(debug.Stack()))
			end.err = schema.Errorf(schema.KindInternal, "The front door failed on this call; its log has the cause.").WithCall(id)
		}
	}()
	end.out, end.err = u.calls.Submit(ctx, req)
	if end.err != nil || end.out.Accepted == nil {
		return end
	}
	s, err := u.calls.Await(ctx, end.out.Accepted, who)
	if err == nil {
		end.out.Result, err = u.calls.Result(ctx, s)
	}
	if end.err = err; err != nil {
		end.err = schema.AsError(err).WithCall(end.out.Accepted.CallID)
	}
	return end
}

// WantsEvents reports whether the caller prefers an event stream to JSON: it accepts
// text/event-stream, and does not list JSON before it.
func WantsEvents(accept []string) bool {
	if len(accept) == 0 {
		return false
	}
	if len(accept) == 1 && (accept[0] == "*/*" || accept[0] == "application/json") {
		return false
	}
	for media := range strings.SplitSeq(strings.ToLower(strings.Join(accept, ",")), ",") {
		media, parameters, _ := strings.Cut(media, ";")
		if slices.Contains(strings.Fields(strings.ReplaceAll(parameters, ";", " ")), "q=0") {
			continue
		}
		switch strings.TrimSpace(media) {
		case "text/event-stream":
			return true
		case "application/json":
			return false
		}
	}
	return false
}
