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

// A call that is stored is answered here, whether the policy or its tool wants it to be.
// Its server may ask for input: then the call waits, and continues with the answers, at
// whichever front door they come in.

const (
	// firstInputWait is how long the call of a tool that only runs as a task is watched
	// before its client gets the task: what the server asks until then is asked in the
	// request itself, as the extension wants it.
	firstInputWait = 10 * time.Second
	// statusWait is how long one look at a stored call waits for its end.
	statusWait = 30 * time.Second
	// storedFor is how long a stored call can be asked for at the least, in
	// milliseconds.
	storedFor = "86400000"
)

// enabled says that calls can be stored here, and tasks served.
func (ts *tasks) enabled() bool { return ts.calls.CanStore() && ts.calls.CanHold() }

// tasksMissing is the error for a client that does not know the Tasks extension.
func tasksMissing(message string) *fault {
	return &fault{Code: mcpwire.CodeMissingCapability, Message: message, Data: []byte(`{"requiredCapabilities":{"extensions":{"` + mcpwire.ExtensionTasks + `":{}}}}`)}
}

// taskOnly says that a tool only runs as a task: its definition says so.
func taskOnly(raw []byte) bool {
	return mayHold(raw, `"taskSupport"`) && getString(get(raw, "execution"), "taskSupport") == "required"
}

// run runs a tool that only runs as a task.
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

// answer answers for a call that was stored, and waits for its end where the client cannot
// ask for it later.
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

// follow answers with the end of a stored call, or with the questions of its server. A
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

// Questions of a stored call have the number of their round before their ids: an id
// is never used twice within a task, whatever the server does.
func roundPrefix(s *calls.Status) string { return strconv.Itoa(s.Round) + "." }

// storedInputRequests returns the open input requests of a stored call as an object.
func storedInputRequests(s *calls.Status) []byte {
	out := []byte{'{'}
	each(get(s.InputRequest, "inputRequests"), func(id string, request []byte) {
		out = appendMember(out, roundPrefix(s)+id, request)
	})
	return append(out, '}')
}

// storedInput is a result that asks what the server of a stored call does. What the
// client brings back is the call; the server's own state stays here.
func storedInput(s *calls.Status) []byte {
	b := append([]byte(`{"resultType":"input_required","inputRequests":`), storedInputRequests(s)...)
	b = appendQuoted(append(b, `,"requestState":`...), requestState{Call: s.ID, Round: s.Round}.String())
	return append(b, '}')
}

// membersOf returns the members of an object whose names have the prefix, without it.
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

// end answers with the end of a call that was stored or held.
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
