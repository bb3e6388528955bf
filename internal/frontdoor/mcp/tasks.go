package mcp

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// A call that is held, or that the policy requires to be stored, is a task for clients that
// support the Tasks extension. The task is the durable call: it is stored before its ID is sent
// to the client, and every front door can serve it. If the caller may confirm the call, the ID
// also contains the token, so that any front door can spend it.
const taskGlue = "~"

func taskID(callID schema.CallID, token string) schema.CallID {
	if token == "" {
		return callID
	}
	return schema.CallID(string(callID) + taskGlue + token)
}

// callOf returns the call of a task and its token. The token is "" if the ID has none.
func callOf(id schema.CallID) (callID schema.CallID, token string) {
	call, token, _ := strings.Cut(string(id), taskGlue)
	return schema.CallID(call), token
}

// tasks answers stored calls, as tasks or with their outcomes.
type tasks struct {
	calls    *calls.Calls
	held     *heldCalls
	requests *requests
}

// tasks reports whether the client supports the extension and this front door serves it.
func (x *exchange) tasks() bool {
	return x.modern && x.ep.o.Calls.CanHold() && capable(x.meta.capabilities, "extensions", mcpwire.ExtensionTasks)
}

// pollEvery is the recommended polling interval for clients, in milliseconds.
const pollEvery = "1000"

// create answers a call with its task.
func (ts *tasks) create(ctx context.Context, x *exchange, id schema.CallID) ([]byte, *fault) {
	about, e := ts.state(ctx, x, id, false)
	if e != nil {
		return nil, e
	}
	return append(append([]byte(`{"resultType":"task",`), about...), '}'), nil
}

// serve serves tasks/get, tasks/update and tasks/cancel.
func (ts *tasks) serve(ctx context.Context, x *exchange) ([]byte, *fault) {
	if !x.modern || !ts.calls.CanHold() {
		return nil, noMethod(x.msg.method)
	}
	if !x.tasks() {
		return nil, tasksMissing("The request does not declare the Tasks extension in its client capabilities.")
	}
	id := schema.CallID(x.msg.textParam("taskId"))
	switch x.msg.method {
	case mcpwire.MethodGetTask:
		about, e := ts.state(ctx, x, id, true)
		if e != nil {
			return nil, e
		}
		return append(append([]byte(`{"resultType":"complete",`), about...), '}'), nil
	case mcpwire.MethodUpdateTask:
		return ts.update(ctx, x, id)
	}
	return ts.cancel(ctx, x, id)
}

func noTask() *fault { return invalidParams("Unknown task.") }

// state returns the members that describe a task, without braces. If whole is set, it includes
// the outcome.
func (ts *tasks) state(ctx context.Context, x *exchange, id schema.CallID, whole bool) ([]byte, *fault) {
	callID, token := callOf(id)
	s, err := ts.calls.Get(ctx, callID, x.principal)
	switch {
	case isGone(err), err == nil && s.RecordOnly:
		return nil, noTask()
	case err != nil:
		return nil, x.faultOf(err)
	}
	token = valid(token, s.Held)
	t := taskView{id: id, status: "working", created: s.Created, updated: s.Created}
	if s.Held == nil {
		whole, t.ttl = true, storedFor
	}
	for _, d := range s.Decisions {
		t.updated = d.At
	}
	switch {
	case s.State == schema.StateSuspended:
		t.status, t.updated = "input_required", s.Asked
		t.end = append([]byte(`"inputRequests":`), storedInputRequests(s)...)
	case s.State == schema.StateHeld && s.Held != nil:
		t.message = "It is waiting for approval."
		if page := ts.held.page(s.Held); page != "" && token == "" {
			t.message += " " + page
		}
		question, e := ts.question(ctx, x, s, token)
		if e != nil {
			return nil, e
		}
		if question != nil {
			t.status = "input_required"
			t.end = append(append([]byte(`"inputRequests":{"`+approvalRequestID+`":{"method":"`+mcpwire.MethodElicit+`","params":`), question...), `}}`...)
		}
	case !s.State.Ended():
	case s.State == schema.StateCanceled:
		t.status = "cancelled"
	default:
		t.finish(ts.end(ctx, x, s))
	}
	if !s.Ended.IsZero() {
		if t.updated = s.Ended; t.created.IsZero() {
			t.created = s.Ended
		}
	}
	return t.encode(whole), nil
}

// question returns [heldCalls.question] for a task. It reads the arguments of the call, because
// tasks/get does not carry them and no user should confirm a call without seeing them.
func (ts *tasks) question(ctx context.Context, x *exchange, s *calls.Status, token string) ([]byte, *fault) {
	var arguments []byte
	if token != "" && isObject(get(x.capabilities(), "elicitation")) {
		var err error
		if arguments, err = ts.calls.Arguments(ctx, s); err != nil {
			return nil, x.faultOf(err)
		}
	}
	return ts.held.question(x, s.Held, token, arguments), nil
}

// taskView is a task in its wire format.
type taskView struct {
	id               schema.CallID
	status, message  string
	ttl              string // in milliseconds; "" if there is none
	created, updated time.Time
	end              []byte // encoded member with the outcome
}

// finish sets the outcome of a task. A result of the tool is a completed task, even with isError.
func (t *taskView) finish(result []byte, e *fault) {
	if e == nil {
		t.status, t.end = "completed", append([]byte(`"result":`), result...)
		return
	}
	t.status, t.message = "failed", e.Message
	t.end = append([]byte(`"error":`), e.encode()...)
}

func (t *taskView) encode(whole bool) []byte {
	when := func(at time.Time) []byte { return quote(at.UTC().Format(time.RFC3339Nano)) }
	b := append([]byte(`"taskId":`), quote(string(t.id))...)
	b = append(append(b, `,"status":`...), quote(t.status)...)
	if t.message != "" {
		b = append(append(b, `,"statusMessage":`...), quote(t.message)...)
	}
	b = append(append(b, `,"createdAt":`...), when(t.created)...)
	b = append(append(b, `,"lastUpdatedAt":`...), when(t.updated)...)
	b = append(b, `,"ttlMs":`+cmp.Or(t.ttl, "null")+`,"pollIntervalMs":`+pollEvery...)
	if whole && t.end != nil {
		b = append(append(b, ','), t.end...)
	}
	return b
}

// update accepts the answers to the questions of a task. The call continues by itself, and the
// client polls for its outcome.
func (ts *tasks) update(ctx context.Context, x *exchange, id schema.CallID) ([]byte, *fault) {
	callID, token := callOf(id)
	s, err := ts.calls.Get(ctx, callID, x.principal)
	responses := x.msg.param("inputResponses")
	answer := get(responses, approvalRequestID)
	approved, rejected := confirmed(answer)
	switch {
	case isGone(err), err == nil && s.RecordOnly:
		return nil, noTask()
	case err != nil:
		return nil, x.faultOf(err)
	case s.State == schema.StateSuspended:
		if err := ts.calls.Answer(ctx, callID, x.principal, s.Round, membersOf(responses, roundPrefix(s))); err != nil {
			return nil, x.faultOf(err)
		}
	case s.Held == nil, s.State.Ended():
		// Other answers, and answers after the decision, change nothing.
	case approved && valid(token, s.Held) != "":
		_, err := ts.calls.Confirm(ctx, calls.Confirmation{Token: token, Confirm: true, Principal: x.principal, Attempt: schema.NewID("mcp"), Async: true})
		// A token that was spent or is no longer valid changes nothing: tasks/get shows who must
		// decide.
		if err != nil && !isGone(err) && !ts.held.changed(ctx, x, s.Held, err) {
			return nil, x.faultOf(err)
		}
	case rejected:
		if _, _, e := ts.held.decide(ctx, x, s.Held, token, answer); e != nil {
			return nil, e
		}
	}
	return []byte(`{}`), nil
}

// cancel withdraws a task, if that is still possible.
func (ts *tasks) cancel(ctx context.Context, x *exchange, id schema.CallID) ([]byte, *fault) {
	callID, _ := callOf(id)
	_, err := ts.calls.Cancel(ctx, callID, x.principal)
	switch {
	case isGone(err):
		return nil, noTask()
	case err != nil && schema.KindOf(err) != schema.KindConflict && schema.KindOf(err) != schema.KindExpired:
		return nil, x.faultOf(err)
	}
	return []byte(`{}`), nil
}

// storedEvery is the interval at which a stored task is read for a client that listens.
const storedEvery = time.Second

// watch notifies a listener of changes of tasks until stop is called.
func (ts *tasks) watch(ctx context.Context, x *exchange, e *listener) (stop func()) {
	if !x.tasks() {
		return func() {}
	}
	stored := make(map[schema.CallID]string) // last seen state of the calls whose changes are not announced
	moved := make(chan schema.CallID, len(e.filter.tasks)*4)
	unwatch := make([]func(), 0, len(e.filter.tasks))
	for _, id := range e.filter.tasks {
		callID, _ := callOf(id)
		announced, stop := ts.calls.Watch(x.principal.Tenant, callID, func() {
			select {
			case moved <- id:
			default: // the client reads slowly, and polls now and then
			}
		})
		if unwatch = append(unwatch, stop); !announced {
			stored[id] = ""
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		// Changes of a stored call that runs elsewhere are not announced, so poll it.
		look := time.NewTicker(storedEvery)
		defer look.Stop()
		if len(stored) == 0 {
			look.Stop()
		}
		for {
			select {
			case <-ctx.Done():
				return
			case id := <-moved:
				if about, fault := ts.state(ctx, x, id, true); fault == nil {
					e.notify(mcpwire.NotifyTask, append(append([]byte{'{'}, about...), '}'))
				}
			case <-look.C:
				for id, seen := range stored {
					about, fault := ts.state(ctx, x, id, true)
					if ctx.Err() != nil {
						return
					}
					if fault != nil {
						delete(stored, id) // the call does not exist or does not belong to the caller
						continue
					}
					state := append(append([]byte{'{'}, about...), '}')
					status := getString(state, "status")
					if string(state) != seen && (seen != "" || status != "working") {
						e.notify(mcpwire.NotifyTask, state)
					}
					if stored[id] = string(state); status != "working" && status != "input_required" {
						delete(stored, id)
					}
				}
			}
		}
	})
	return func() {
		for _, stop := range unwatch {
			stop()
		}
		cancel()
		wait.Wait()
	}
}
