package worker

import (
	"context"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// longestSession is more than the name of a caller's conversation takes.
const longestSession = 128

// allAsked is everything that a server may ask of a client, and the extension of tools
// with pages of their own (MCP Apps): some servers list tools only to clients with it.
const allAsked = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},"extensions":{"` + mcpwire.ExtensionUI + `":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// asking runs calls of a server that may ask its callers: each on a session of its
// caller's own, so that what the server asks belongs to that call.
type asking struct {
	id      schema.ServerID
	own     *session.Own
	timeout time.Duration // of a call that brings none
	apart
}

// openAsking returns what runs calls on sessions of their callers' own.
func openAsking(w *Worker, s *Served) *asking {
	a := &asking{id: s.Session.Spec.ID, own: session.OpenOwn(s.Session, w.launcher, w.log), timeout: s.Session.CallTimeout}
	a.calls, a.cut = context.WithCancel(context.Background())
	return a
}

// takes says that the call is one for a session of its caller's own: the caller has
// a conversation in which it hears the server. An approval is for the arguments
// alone, so an approved call is none.
func (a *asking) takes(f *bus.CallFrame) bool {
	return a != nil && f.Hears && f.Session != "" && len(f.Session) <= longestSession && f.Approval == "" &&
		(f.Method == "" || f.Method == schema.MethodCallTool)
}

// do runs the call of the job; the job is told its end.
func (a *asking) do(j *job, caller session.Caller) {
	if !a.begin(j, a.timeout, func(ctx context.Context, deadline time.Time) { a.run(ctx, j, caller, deadline, true) }) {
		j.done(&j.request, session.Outcome{Err: noSandbox("The sessions of the server %q are being closed; the call was not started.", a.id)})
	}
}

// run runs the call on a session of its caller's own. again says that it may go to another
// one where the server does not know the first any more.
func (a *asking) run(ctx context.Context, j *job, caller session.Caller, deadline time.Time, again bool) {
	one, err := a.own.Take(ctx, caller)
	if err != nil {
		if j.ended.Load() {
			err = session.CanceledEarly()
		}
		j.done(&j.request, session.Outcome{Err: schema.AsError(err)})
		return
	}
	j.own.Store(one)
	j.request.Said = j.said
	_, over := j.send(one.Do, deadline)
	var out session.Outcome
	select {
	case out = <-over:
	case <-a.calls.Done():
		one.Close() // which ends the call
		out = <-over
	}
	j.own.Store(nil)
	if again && out.SessionLost() && !j.ended.Load() {
		a.own.Release(one, false)
		a.run(ctx, j, caller, deadline, false)
		return
	}
	if out.Err != nil && out.Err.Kind != schema.KindProtocol {
		j.done(&j.request, out)
		a.own.Release(one, false) // what is left of the call must not reach the next
		return
	}
	a.own.Release(one, true) // the caller's next call may come as soon as this one is answered
	j.done(&j.request, out)
}

// said passes on what the server says; see [session.Request].
func (j *job) said(number int64, message []byte) bool {
	return j.worker.listener.Said(j.to, j.seq, number, message)
}

// Answer hands the server what its caller answered; see [bus.Answerer].
func (w *Worker) Answer(seq uint64, number int64, object []byte) {
	w.mu.RLock()
	j := w.jobs[seq]
	w.mu.RUnlock()
	if j == nil {
		return
	}
	if number == bus.CredentialNumber {
		if to := j.credential.Load(); to != nil {
			select {
			case *to <- slices.Clone(object):
			default: // it was answered
			}
		}
		return
	}
	if one := j.own.Load(); one != nil {
		one.Answer(number, object)
	}
}

// close takes no more calls, lets those that it has run until ctx ends, ends the rest, and
// closes the sessions. The worker has waited for its calls before.
func (a *asking) close(ctx context.Context) {
	a.drain(ctx)
	a.own.Close()
}
