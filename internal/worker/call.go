package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/warrant"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// job is one call on this worker.
type job struct {
	worker  *Worker
	server  *held // nil if the worker does not hold the server
	seq     uint64
	to      bus.ReplyTo
	id      schema.CallID
	running atomic.Pointer[session.Running]
	abandon atomic.Pointer[context.CancelFunc] // for a call that waits for a container or a session of its own
	own     atomic.Pointer[session.Owned]      // the caller's own session, while the call runs on it
	ended   atomic.Bool                        // canceled before it was running

	credential atomic.Pointer[chan []byte] // receives the credential of the person
	keep       *memory                     // remembers its outcome; nil if nothing does
	request    session.Request
	warrant    *warrant.Claims // nil if the call needed no approval
	span       *telemetry.Span // nil if there are no traces
}

// Call accepts a call from the bus; see [bus.Handler].
func (w *Worker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	if strings.HasPrefix(f.Method, ownPrefix) {
		w.own.Go(func() { control{w}.answer(f, to) })
		return
	}
	j := &job{worker: w, seq: f.Seq, to: to, id: f.ID}
	w.mu.Lock()
	if w.jobs[f.Seq] != nil {
		// The number is random, so this is a duplicate of a message that is already being
		// processed. The answer to the first answers both.
		w.mu.Unlock()
		w.log.Warn("a call was received twice; it runs once", "call", f.ID, "server", f.Server)
		return
	}
	h := w.servers.held[f.Server]
	if h != nil {
		w.jobs[f.Seq] = j
		j.server = h
		h.taking.Add(1) // under the lock: retiring a server waits for it
		defer h.taking.Done()
	}
	canceled := w.early.has(f.Seq)
	w.mu.Unlock()
	if w.o.Traces != nil {
		j.span = w.begin(f)
	}
	var refusal *schema.Error
	var v verdict
	if canceled {
		refusal = session.CanceledEarly()
	} else if m := w.remembers(f); m != nil {
		if refusal = m.begin(f.ID, f.Seq, to, time.Now()); refusal == nil {
			j.keep = m
		}
	}
	if refusal == nil {
		refusal = w.unfetchedFault()
	}
	if refusal == nil {
		if refusal = metadataFault(f, f.Approval != ""); refusal == nil {
			v, refusal = w.judge(h, f)
			j.warrant = v.warrant
		}
	}
	if refusal != nil {
		if j.keep != nil {
			j.keep.end(f.ID, f.Seq, to, session.Outcome{}, time.Now())
		}
		w.mu.Lock()
		delete(w.jobs, f.Seq)
		w.mu.Unlock()
		w.listener.Error(to, f.Seq, refusal.WithCall(f.ID), false, 0)
		if j.span != nil {
			j.span.Outcome(nil, refusal)
			j.span.End()
		}
		return
	}
	method := f.Method
	if method == "" {
		method = schema.MethodCallTool
	}
	j.request = session.Request{
		CallID: f.ID, Method: method, Name: f.Tool, Params: f.Payload, Extra: f.Extra, Timeout: f.Budget, More: f.More,
		Trace: schema.Trace{Parent: f.TraceParent, State: f.TraceState}, Session: conversation(f), Clock: f.Clock, Seed: f.Seed,
	}
	if h.served.Session.Pinned && method == schema.MethodCallTool {
		j.request.Digest = f.ToolDigest
	}
	if j.span != nil {
		j.request.Trace = j.span.Trace()
	}
	if f.Progress {
		j.request.Progress = j.progress
	}
	var caller session.Caller
	if f.Hears {
		caller = session.CallerOf(identity(f)+"/"+f.Session, f.Extra)
		if schema.IsLogLevel(caller.Level) {
			j.request.Said, j.request.LogLevel, j.request.Caller = j.said, caller.Level, identity(f)
		}
	}
	if f.Lease != "" {
		h.leases.do(j, f.Lease, &v)
		return
	}
	if v.sandboxed {
		h.sandboxed.do(j, identity(f), v)
		return
	}
	if h.personal != nil {
		h.personal.do(j, identity(f))
		return
	}
	if h.asking.takes(f) {
		h.asking.do(j, caller)
		return
	}
	running := h.pool.Do(&j.request, j.done)
	j.running.Store(running)
	if j.ended.Load() {
		running.Cancel()
	}
}

// unfetchedFault returns the reason to start no call while the results that front doors have not
// fetched yet take too much memory. Only calls that run by then add theirs.
func (w *Worker) unfetchedFault() *schema.Error {
	n := w.listener.Unfetched()
	if n <= w.o.MaxUnfetched {
		return nil
	}
	return schema.Errorf(schema.KindUnavailable, "Worker %s holds %d MiB of results that front doors have not fetched yet; the call did not start.", w.id, n>>20).RetryableAfter(time.Second)
}

// conversation returns the name of the conversation of a call. Calls without one, or with a name
// that is too long to keep, share one conversation per caller. Servers receive the name, so it
// contains nothing that they must not see.
func conversation(f *bus.CallFrame) string {
	who := f.Principal
	if f.Tenant != "" {
		who = string(f.Tenant) + "//" + who
	}
	if f.Session == "" || len(f.Session) > maxSessionName {
		return who
	}
	return who + "/" + f.Session
}

// remembers returns the memory for the outcome of a call, or nil if none is kept.
func (w *Worker) remembers(f *bus.CallFrame) *memory {
	switch {
	case f.Keep:
		return w.memory
	case f.Brief:
		return w.brief
	}
	return nil
}

func (j *job) progress(params []byte) { j.worker.listener.Progress(j.to, j.seq, params) }

// done ends the job with its outcome; see [session.Pool.Do].
func (j *job) done(_ *session.Request, out session.Outcome) {
	w := j.worker
	out.Body = rawjson.Readable(out.Body) // every later reader relies on it
	if j.request.Method == schema.MethodCallTool && j.server != nil {
		out = j.server.checkOutput(j.request.Name, out)
	}
	w.mu.Lock()
	delete(w.jobs, j.seq)
	last := w.draining && len(w.jobs) == 0
	w.mu.Unlock()
	if out.Err != nil {
		if j.warrant != nil && !out.Started {
			w.spent.Return(j.warrant)
		}
		w.listener.Error(j.to, j.seq, out.Err.WithCall(j.id), out.Started, out.Took)
	} else {
		w.listener.Result(j.to, j.seq, &schema.Result{Body: out.Body, ToolError: out.ToolError, InputRequired: out.Input, Took: out.Took})
	}
	if j.keep != nil {
		j.keep.end(j.id, j.seq, j.to, out, time.Now())
	}
	if j.span != nil {
		j.endSpan(out)
	}
	if last {
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// identity returns a unique name of a call's principal, because tenants may have principals of the
// same name. State that is kept for one, such as a session with its credential, is not shared.
func identity(f *bus.CallFrame) string {
	if f.Tenant == "" {
		return f.Principal
	}
	return string(f.Tenant) + "\x00" + f.Principal
}
