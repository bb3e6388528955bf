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

// maxSessionName limits the length of the name of a caller's conversation.
const maxSessionName = 128

// allAsked declares everything that a server may ask of a client, and the MCP Apps extension (tools
// with their own pages), because some servers list tools only to clients that declare it.
const allAsked = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},"extensions":{"` + mcpwire.ExtensionUI + `":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// asking runs calls of a server that may ask its callers. Each call uses a session that belongs to
// its caller, so that a question of the server belongs to that call.
type asking struct {
	id      schema.ServerID
	own     *session.Own
	timeout time.Duration // of a call without a timeout
	callGroup
}

// openAsking returns the runner for calls on callers' own sessions.
func openAsking(w *Worker, s *Served) *asking {
	a := &asking{id: s.Session.Spec.ID, own: session.OpenOwn(s.Session, w.launcher, w.log), timeout: s.Session.CallTimeout}
	a.calls, a.cut = context.WithCancel(context.Background())
	return a
}

// takes reports whether the call needs its caller's own session: the caller has a conversation in
// which it receives messages from the server. An approval covers only the arguments, so an approved
// call never does.
func (a *asking) takes(f *bus.CallFrame) bool {
	return a != nil && f.Hears && f.Session != "" && len(f.Session) <= maxSessionName && f.Approval == "" &&
		(f.Method == "" || f.Method == schema.MethodCallTool)
}

// do runs the call of the job and reports its outcome to the job.
func (a *asking) do(j *job, caller session.Caller) {
	if !a.begin(j, a.timeout, func(ctx context.Context, deadline time.Time) { a.run(ctx, j, caller, deadline, true) }) {
		j.done(&j.request, session.Outcome{Err: noSandbox("The sessions of the server %q are being closed; the call was not started.", a.id)})
	}
}

// run runs the call on its caller's own session. again means that it may use another session if the
// server no longer knows the first one.
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
		one.Close() // ends the call
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
		a.own.Release(one, false) // leftovers of the call must not reach the next
		return
	}
	a.own.Release(one, true) // before the answer, because the caller's next call may follow at once
	j.done(&j.request, out)
}

// said passes on a message from the server; see [session.Request].
func (j *job) said(number int64, message []byte) bool {
	return j.worker.listener.Said(j.to, j.seq, number, message)
}

// Answer passes the caller's answer to the server; see [bus.Answerer].
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
			default: // already answered
			}
		}
		return
	}
	if one := j.own.Load(); one != nil {
		one.Answer(number, object)
	}
}

// close stops taking calls, lets running calls continue until ctx ends, aborts the rest, and
// closes the sessions. The worker has waited for its calls before.
func (a *asking) close(ctx context.Context) {
	a.drain(ctx)
	a.own.Close()
}
