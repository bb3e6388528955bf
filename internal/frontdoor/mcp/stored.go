package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// Answers to stored calls, whether the policy or the tool requires storing. If the server asks for
// input, the call waits and continues with the answers, at whichever front door they arrive.

const (
	// firstInputWait is the time that the call of a task-only tool is watched before its client
	// receives the task. Questions of the server during that time are asked in the request itself, as
	// the Tasks extension requires.
	firstInputWait = 10 * time.Second
	// statusWait is the time of one wait for the end of a stored call.
	statusWait = 30 * time.Second
	// storedFor is the minimum time, in milliseconds, that a stored call can be retrieved.
	storedFor = "86400000"
)

// enabled reports whether calls can be stored, so that tasks can be served.
func (ts *tasks) enabled() bool { return ts.calls.CanStore() && ts.calls.CanHold() }

// tasksMissing returns the error for a client that does not support the Tasks extension.
func tasksMissing(message string) *fault {
	return &fault{Code: mcpwire.CodeMissingCapability, Message: message, Data: []byte(`{"requiredCapabilities":{"extensions":{"` + mcpwire.ExtensionTasks + `":{}}}}`)}
}

// taskOnly reports whether a definition requires that the tool runs as a task.
func taskOnly(raw []byte) bool {
	return mayHold(raw, `"taskSupport"`) && getString(get(raw, "execution"), "taskSupport") == "required"
}

// run runs a task-only tool.
func (ts *tasks) run(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	if !x.tasks() {
		return nil, tasksMissing("This tool runs only as a task, and the request does not declare the Tasks extension in its client capabilities.")
	}
	call.Session, call.Hear = "", nil
	out, err := ts.calls.Submit(ctx, calls.Request{Call: call, Durable: true, Async: true})
	if err != nil || out.Accepted == nil {
		return ts.requests.finish(ctx, x, call, ended{out, err})
	}
	x.setCall(out.Accepted.CallID)
	if askable(x.meta.capabilities) != nil {
		soon, cancel := context.WithTimeout(ctx, firstInputWait)
		defer cancel()
		if s, err := ts.calls.Await(soon, out.Accepted, x.principal); err == nil && s.State == schema.StateSuspended {
			return ts.follow(ctx, x, s)
		}
	}
	return ts.create(ctx, x, out.Accepted.CallID)
}

// answer answers a call that was stored. If the client cannot retrieve the outcome later, it waits
// for the end.
func (ts *tasks) answer(ctx context.Context, x *exchange, a *calls.Accepted) ([]byte, *fault) {
	x.setCall(a.CallID)
	if x.tasks() {
		return ts.create(ctx, x, a.CallID)
	}
	s, err := ts.calls.Await(ctx, a, x.principal)
	if err != nil {
		return x.toolFault(schema.AsError(err).WithCall(a.CallID))
	}
	return ts.follow(ctx, x, s)
}

// follow answers with the outcome of a stored call, or with the questions of its server. A
// client of the legacy era is asked in its session.
func (ts *tasks) follow(ctx context.Context, x *exchange, s *calls.Status) ([]byte, *fault) {
	for rounds := 0; ; {
		switch {
		case s.State.Ended():
			return ts.end(ctx, x, s)
		case ctx.Err() != nil:
			return x.toolFault(schema.Errorf(schema.KindCanceled, "The caller disconnected; the call continues.").WithCall(s.ID))
		case s.State == schema.StateSuspended && x.modern:
			return storedInput(s), nil
		case s.State == schema.StateSuspended:
			answers, e := ts.requests.askAll(ctx, x, s.ID, get(s.InputRequest, "inputRequests"), rounds)
			if e != nil {
				return nil, e
			}
			rounds++
			if err := ts.calls.Answer(ctx, s.ID, x.principal, s.Round, membersOf(answers, "")); err != nil {
				return x.toolFault(err)
			}
		}
		var err error
		if s, err = ts.calls.WaitSuspended(ctx, s.ID, x.principal, statusWait); err != nil {
			return nil, x.faultOf(err)
		}
	}
}

// roundPrefix returns the prefix of the question IDs in this round of a stored call. It keeps IDs
// unique within a task, even if the server repeats its own.
func roundPrefix(s *calls.Status) string { return strconv.Itoa(s.Round) + "." }

// storedInputRequests returns the open input requests of a stored call as an object.
func storedInputRequests(s *calls.Status) []byte {
	out := []byte{'{'}
	each(get(s.InputRequest, "inputRequests"), func(id string, request []byte) {
		out = appendMember(out, roundPrefix(s)+id, request)
	})
	return append(out, '}')
}

// storedInput returns a result with the questions of the server of a stored call. The state that
// the client sends back only names the call; the server's state is kept here.
func storedInput(s *calls.Status) []byte {
	b := append([]byte(`{"resultType":"input_required","inputRequests":`), storedInputRequests(s)...)
	b = appendQuoted(append(b, `,"requestState":`...), requestState{Call: s.ID, Round: s.Round}.String())
	return append(b, '}')
}

// membersOf returns the members of an object whose names have the prefix, with it removed.
func membersOf(object []byte, prefix string) map[string]json.RawMessage {
	of := make(map[string]json.RawMessage)
	if isObject(object) {
		each(object, func(key string, value []byte) {
			if id, ok := strings.CutPrefix(key, prefix); ok {
				of[id] = value
			}
		})
	}
	return of
}

// resume continues a stored call whose client sends answers.
func (ts *tasks) resume(ctx context.Context, x *exchange, call *schema.Call, state requestState, responses []byte) ([]byte, *fault) {
	s, e := stored(ctx, ts.calls, x, call, state)
	if e != nil {
		return nil, e
	}
	x.setCall(s.ID)
	if s.State == schema.StateSuspended && s.Round == state.Round {
		if err := ts.calls.Answer(ctx, s.ID, x.principal, s.Round, membersOf(responses, roundPrefix(s))); err != nil {
			return x.toolFault(err)
		}
	}
	wait := statusWait
	if x.tasks() {
		wait = firstInputWait
	}
	s, err := ts.calls.WaitSuspended(ctx, s.ID, x.principal, wait)
	if err != nil {
		return nil, x.faultOf(err)
	}
	switch {
	case !x.tasks():
		return ts.follow(ctx, x, s)
	case s.State == schema.StateSuspended:
		return storedInput(s), nil
	}
	return ts.create(ctx, x, s.ID)
}

// end answers with the outcome of a call that was stored or held.
func (ts *tasks) end(ctx context.Context, x *exchange, s *calls.Status) ([]byte, *fault) {
	res, err := ts.calls.Result(ctx, s)
	switch {
	case err == nil:
		return x.fitted(res.Body), nil
	case s.State == schema.StateSucceeded && s.Error == nil:
		return nil, x.faultOf(err) // the call has a result, which cannot be read
	}
	return x.toolFault(err)
}
