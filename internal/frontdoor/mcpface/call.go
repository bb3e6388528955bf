package mcpface

import (
	"context"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// progressWaiting is how many notifications may wait for a client that reads
// slowly; the oldest goes first.
const progressWaiting = 64

// callTool is tools/call. Both eras, and both kinds of mount, come through here.
func (f *Face) callTool(ctx context.Context, x *exchange) ([]byte, *fault) {
	var name string
	var arguments, responses, state []byte
	named := false
	each(x.msg.params, func(key string, value []byte) {
		switch key {
		case "name":
			name, named = str(value)
		case "arguments":
			arguments = value
		case "inputResponses":
			responses = value
		case "requestState":
			state = value
		}
	})
	if !named {
		return nil, &fault{Code: codeInvalidParams, Message: "The params lack the name of the tool."}
	}
	if arguments == nil || string(arguments) == "null" {
		arguments = []byte(`{}`)
	}
	to, ok := f.tool(x.mount, name)
	if !ok {
		return nil, &fault{Code: codeInvalidParams, Message: "Unknown tool: " + printable(name)}
	}
	if x.modern {
		if e := f.checkParamHeaders(x, to, arguments); e != nil {
			return nil, e
		}
	}
	call := &schema.Call{ID: schema.NewCallID(), Server: to.server, Tool: to.name, Principal: x.principal, Arguments: arguments, Trace: x.meta.trace}
	if ours, ok := readState(state); ok {
		return f.resume(ctx, x, call, ours, responses)
	}
	call.Extra = x.extra(responses, state)
	if x.hears() {
		call.Session = f.conversation(x, to)
	}
	if responses != nil || state != nil {
		call.Fresh, call.NoStore = true, true // it is one step of a conversation
	}
	if x.modern && f.stores() && f.view(x.mount).taskOnly[to] {
		return f.asTask(ctx, x, call)
	}
	if f.bridges(x, to) {
		return f.talk(ctx, x, call)
	}
	return f.run(ctx, x, call)
}

// tool returns what a name stands for at a mount.
func (f *Face) tool(mount, name string) (target, bool) {
	if mount != "" {
		return target{mount, name}, true // the gate knows whether it is there
	}
	to, ok := f.view("").toolOf[name]
	if ok {
		return to, true
	}
	// One that is switched off is not listed, and a call of it is told why.
	if server, tool, found := strings.Cut(name, nameGlue); found && exposed(server, tool) == name {
		if _, err := f.o.Catalog.Tool(server, tool); err == nil || schema.KindOf(err) == schema.KindUnavailable {
			return target{server, tool}, true
		}
	}
	return target{}, false
}

// extra is what goes to the server beside the arguments.
func (x *exchange) extra(responses, state []byte) []byte {
	capabilities := x.meta.capabilities
	if x.session != nil {
		capabilities = x.session.capabilities
	}
	about := x.meta.forwarded(capabilities, x.logLevel())
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

// run has the call run and returns its result as it came.
func (f *Face) run(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	x.setCall(call.ID)
	if x.span != nil {
		x.note(call)
	}
	for rounds := 0; ; rounds++ {
		end := f.watched(ctx, x, call)
		if end.err != nil || end.out.Result == nil || !end.out.Result.InputRequired || x.modern {
			return f.ending(ctx, x, call, end)
		}
		if x.span != nil {
			x.outcome(&end.out, nil)
		}
		again, e := f.fulfil(ctx, x, call, end.out.Result.Body, rounds)
		if e != nil {
			return nil, e
		}
		call = again
	}
}

// ending answers with what came of a submitted call.
func (f *Face) ending(ctx context.Context, x *exchange, call *schema.Call, end ended) ([]byte, *fault) {
	if x.span != nil {
		x.outcome(&end.out, end.err)
	}
	switch {
	case end.err != nil && call.Method == "":
		return x.toolFault(end.err)
	case end.err != nil:
		return nil, x.faultOf(end.err)
	case end.out.Held != nil:
		return f.held(ctx, x, call, end.out.Held)
	case end.out.Accepted != nil:
		return f.durable(ctx, x, end.out.Accepted)
	}
	return x.fitted(end.out.Result.Body), nil
}

// setCall names the call in the answer, for people who look for it.
func (x *exchange) setCall(id string) { x.w.Header()["Callyard-Call-Id"] = []string{id} }

type ended struct {
	out calls.Outcome
	err error
}

// watched runs the call, and passes its progress on while it runs.
func (f *Face) watched(ctx context.Context, x *exchange, call *schema.Call) (end ended) {
	progress, hears := x.meta.token != nil && x.streams, call.Method == "" && x.hears()
	if !progress && !hears {
		end.out, end.err = f.o.Calls.Submit(ctx, calls.Request{Call: call})
		return end
	}
	words := make(chan spoken, progressWaiting)
	if progress {
		call.Progress = func(params []byte) { pushNewest(words, spoken{params: params}) }
	}
	ctx, cancel := context.WithCancel(ctx)
	if hears {
		var questions asking
		defer questions.end()
		call.Hear = x.hearing(ctx, words, &questions)
	}
	done := make(chan ended, 1)
	var wait sync.WaitGroup
	wait.Go(func() { done <- f.guarded(ctx, call) })
	defer wait.Wait()
	defer cancel()
	for {
		select {
		case w := <-words:
			if x.say(w) != nil && x.modern {
				cancel() // the client left
			}
		case end := <-done:
			// What came before the result goes out before it.
			for len(words) > 0 {
				_ = x.say(<-words)
			}
			return end
		}
	}
}

func (x *exchange) say(w spoken) error {
	if w.method == "" {
		return x.progress(w.params)
	}
	return x.notify(w.method, w.params)
}

// pushNewest never blocks: where there is no room, the oldest goes.
func pushNewest(to chan spoken, w spoken) {
	for {
		select {
		case to <- w:
			return
		default:
		}
		select {
		case <-to:
		default:
		}
	}
}

// guarded submits the call in a goroutine of its own, where a panic would end the
// process.
func (f *Face) guarded(ctx context.Context, call *schema.Call) (end ended) {
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("a call panicked", "call", call.ID, "panic", v, "stack", string(debug.Stack()))
			end.err = schema.Errorf(schema.KindInternal, "The front door failed on this call; its log says why.").WithCall(call.ID)
		}
	}()
	end.out, end.err = f.o.Calls.Submit(ctx, calls.Request{Call: call})
	return end
}
