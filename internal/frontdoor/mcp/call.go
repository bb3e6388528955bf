package mcp

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/sse"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// progressWaiting is the maximum number of notifications that are queued for a client that reads
// slowly. The oldest is dropped first.
const progressWaiting = 64

// requests serves the requests that are forwarded to an MCP server: tool calls, resource reads,
// prompts and completions. It submits each to [calls.Calls] and answers with the outcome.
type requests struct {
	calls     *calls.Calls
	catalog   *catalog.Catalog
	log       *slog.Logger
	lists     *lists
	held      *heldCalls
	tasks     *tasks
	suspended *suspendedCalls
}

// callTool serves tools/call, for both eras and both kinds of mount.
func (r *requests) callTool(ctx context.Context, x *exchange) ([]byte, *fault) {
	arguments, responses, state := x.msg.param("arguments"), x.msg.param("inputResponses"), x.msg.param("requestState")
	name, named := str(x.msg.param("name"))
	if !named {
		return nil, invalidParams("The params have no tool name.")
	}
	folded := x.searching && name == toolCall
	if x.searching {
		var result []byte
		var done bool
		var e *fault
		if name, arguments, result, done, e = r.unfold(x, name, arguments); done {
			return result, e
		}
	}
	if arguments == nil || string(arguments) == "null" {
		arguments = []byte(`{}`)
	}
	to, ok := r.lists.tool(r.lists.place(x), name)
	if !ok {
		return nil, invalidParams("Unknown tool: " + problem.Printable(name, maxPrinted))
	}
	if e := x.allowTool(to.server, to.name); e != nil {
		return nil, e
	}
	if x.modern && !folded { // the headers repeat arguments of the tool, but this request has those of call_tool
		if e := r.checkParamHeaders(x, to, arguments); e != nil {
			return nil, e
		}
	}
	call := &schema.Call{ID: schema.NewCallID(), Server: to.server, Tool: to.name, Principal: x.principal, Arguments: arguments, Trace: x.meta.trace}
	ours, state, ok := unwrapState(state)
	switch {
	case ok && ours.Connect && x.modern:
		if refused := r.connected(ctx, x, to.server, responses); refused != nil {
			return x.toolFault(refused.WithCall(call.ID))
		}
		responses, state = nil, nil // they are not for the server
	case ok:
		return r.resume(ctx, x, call, ours, responses)
	}
	call.Extra = x.extra(responses, state)
	if x.acceptsMessages() {
		call.Session = r.conversation(x, to)
	}
	if responses != nil || state != nil {
		call.Fresh, call.NoStore = true, true // one step of a multi-step exchange
	}
	if x.modern && r.tasks.enabled() && r.lists.view(r.lists.place(x)).taskOnly[to] {
		return r.tasks.run(ctx, x, call)
	}
	if r.mayBeSuspended(x, to) {
		return r.suspended.run(ctx, x, call)
	}
	return r.run(ctx, x, call)
}

// capabilities returns the client capabilities: those of the session, or without a session those
// of this request.
func (x *exchange) capabilities() []byte {
	if x.session != nil {
		return x.session.capabilities
	}
	return x.meta.capabilities
}

// extra returns the params that are sent to the server in addition to the arguments.
func (x *exchange) extra(responses, state []byte) []byte {
	about := x.meta.forwarded(x.capabilities(), x.logLevel())
	if about == nil && responses == nil && state == nil {
		return nil
	}
	b := []byte{'{'}
	if about != nil {
		b = appendMember(b, "_meta", about)
	}
	if responses != nil {
		b = appendMember(b, "inputResponses", responses)
	}
	if state != nil {
		b = appendMember(b, "requestState", state)
	}
	return append(b, '}')
}

// run runs the call and returns its result verbatim.
func (r *requests) run(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	x.setCall(call.ID)
	x.note(call)
	for rounds := 0; ; rounds++ {
		end := r.submit(ctx, x, call)
		if end.err != nil || end.out.Result == nil || !end.out.Result.InputRequired || x.modern {
			return r.finish(ctx, x, call, end)
		}
		x.outcome(&end.out, nil)
		again, e := r.answered(ctx, x, call, end.out.Result.Body, rounds)
		if e != nil {
			return nil, e
		}
		call = again
	}
}

// finish answers with the outcome of a submitted call.
func (r *requests) finish(ctx context.Context, x *exchange, call *schema.Call, end ended) ([]byte, *fault) {
	x.outcome(&end.out, end.err)
	switch {
	case end.err != nil:
		return r.failed(x, call, end.err)
	case end.out.Held != nil:
		return r.held.answer(ctx, x, call, end.out.Held)
	case end.out.Accepted != nil:
		return r.tasks.answer(ctx, x, end.out.Accepted)
	case end.out.Result.InputRequired:
		return x.fitted(wrapState(end.out.Result.Body)), nil
	}
	return x.fitted(end.out.Result.Body), nil
}

// setCall adds the call ID to the answer, so that people can look up the call.
func (x *exchange) setCall(id schema.CallID) {
	x.res.set("Callyard-Call-Id", string(id))
}

type ended struct {
	out calls.Outcome
	err error
}

// submit runs the call and forwards its progress while it runs.
func (r *requests) submit(ctx context.Context, x *exchange, call *schema.Call) (end ended) {
	progress, hears := x.meta.token != nil && x.res.streams, call.Method == "" && x.acceptsMessages()
	if !progress && !hears {
		end.out, end.err = r.calls.Submit(ctx, calls.Request{Call: call})
		return end
	}
	words := make(chan notification, progressWaiting)
	if progress {
		call.Progress = func(params []byte) { sse.Offer(words, notification{params: params}) }
	}
	defer x.forwardNotifications(words)()
	ctx, cancel := context.WithCancel(ctx)
	if hears {
		var open openRequests
		defer open.end()
		call.Hear = x.onMessage(ctx, words, &open)
	}
	defer cancel()
	end.out, end.err = r.calls.Submit(ctx, calls.Request{Call: call})
	return end
}

// passProgress returns a function that forwards the progress of a call of this request. stop
// sends the queued notifications and ends that. progress is nil if the client wants no progress.
func (x *exchange) passProgress() (progress func(params []byte), stop func()) {
	if x.meta.token == nil || !x.res.streams {
		return nil, func() {}
	}
	words := make(chan notification, progressWaiting)
	return func(params []byte) { sse.Offer(words, notification{params: params}) }, x.forwardNotifications(words)
}

// forwardNotifications sends the notifications of a call to the client, in order. stop sends the
// queued ones and ends that.
func (x *exchange) forwardNotifications(words <-chan notification) (stop func()) {
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case w := <-words:
				_ = x.sendNotification(w) // if the client disconnected, the request context is canceled
			case <-over:
				for len(words) > 0 {
					_ = x.sendNotification(<-words)
				}
				return
			}
		}
	})
	return func() {
		close(over)
		wait.Wait()
	}
}

func (x *exchange) sendNotification(w notification) error {
	if w.method == "" {
		return x.progress(w.params)
	}
	return x.notify(w.method, w.params)
}

// submitGuarded submits the call and recovers from a panic. It runs in its own goroutine, where
// a panic would end the process.
func (r *requests) submitGuarded(ctx context.Context, call *schema.Call) (end ended) {
	defer func() {
		if v := recover(); v != nil {
			r.log.Error("a call panicked", "call", call.ID, "panic", v, "stack", string(debug.Stack()))
			end.err = schema.Errorf(schema.KindInternal, "The front door failed on this call; its log has the cause.").WithCall(call.ID)
		}
	}()
	end.out, end.err = r.calls.Submit(ctx, calls.Request{Call: call})
	return end
}
