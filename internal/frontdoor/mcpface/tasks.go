package mcpface

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// A call that is held, or that the policy wants stored, is a task for clients that
// know the Tasks extension. The task is the durable call: it is stored before its
// id is told, and every front door answers for it. The id of a call that its caller
// may confirm holds the token as well, so that any front door can spend it.
const taskGlue = "~"

func taskID(callID, token string) string {
	if token == "" {
		return callID
	}
	return callID + taskGlue + token
}

// tasks says that the client knows the extension, and that it is served here.
func (x *exchange) tasks() bool {
	return x.modern && x.f.o.Desk != nil && x.f.o.Ledger != nil && capable(x.meta.capabilities, "extensions", extensionTasks)
}

// pollEvery is how often a client should ask, in milliseconds.
const pollEvery = "1000"

// newTask answers a call with its task.
func (f *Face) newTask(ctx context.Context, x *exchange, id string) ([]byte, *fault) {
	about, e := f.taskState(ctx, x, id, false)
	if e != nil {
		return nil, e
	}
	return append(append([]byte(`{"resultType":"task",`), about...), '}'), nil
}

// task serves tasks/get, tasks/update and tasks/cancel.
func (f *Face) task(ctx context.Context, x *exchange) ([]byte, *fault) {
	if !x.modern || f.o.Desk == nil || f.o.Ledger == nil {
		return nil, noMethod(x.msg.method)
	}
	if !x.tasks() {
		return nil, tasksMissing("The request does not declare the Tasks extension among its client capabilities.")
	}
	id := getString(x.msg.params, "taskId")
	switch x.msg.method {
	case "tasks/get":
		about, e := f.taskState(ctx, x, id, true)
		if e != nil {
			return nil, e
		}
		return append(append([]byte(`{"resultType":"complete",`), about...), '}'), nil
	case "tasks/update":
		return f.updateTask(ctx, x, id)
	}
	return f.cancelTask(ctx, x, id)
}

func noTask() *fault { return &fault{Code: codeInvalidParams, Message: "Unknown task."} }

// taskState returns the members that describe a task, without braces; whole also
// those of its end.
func (f *Face) taskState(ctx context.Context, x *exchange, id string, whole bool) ([]byte, *fault) {
	callID, token, _ := strings.Cut(id, taskGlue)
	if _, _, ok := batch.ParseCallID(callID); ok && f.o.Batches != nil {
		return f.storedTask(ctx, x, id, callID)
	}
	p, err := f.approval(ctx, x.principal, callID)
	if err != nil {
		if isGone(err) {
			return nil, noTask()
		}
		return nil, x.faultOf(err)
	}
	t := taskView{id: id, created: p.Created, updated: p.Created}
	for _, d := range p.Decisions {
		t.updated = d.At
	}
	if !p.Ended.IsZero() {
		t.updated = p.Ended
	}
	switch {
	case p.State == ledger.Pending:
		t.status, t.message = "working", "It waits until somebody approves it."
		if page := f.page(p); page != "" && token == "" {
			t.message += " " + page
		}
		if question := f.question(x, p, token, nil); question != nil {
			t.status = "input_required"
			t.end = append(append([]byte(`"inputRequests":{"`+questionID+`":{"method":"elicitation/create","params":`), question...), `}}`...)
		}
	case !p.State.Ended():
		t.status = "working"
	case p.State == ledger.Canceled:
		t.status = "cancelled"
	default:
		t.finish(f.approved(ctx, x, p))
	}
	return t.encode(whole), nil
}

// storedTask is taskState for a call of the journal.
func (f *Face) storedTask(ctx context.Context, x *exchange, id, callID string) ([]byte, *fault) {
	s, err := f.o.Batches.Status(ctx, callID, x.principal, 0)
	if err != nil {
		if isGone(err) {
			return nil, noTask()
		}
		return nil, x.faultOf(err)
	}
	t := taskView{id: id, status: "working", ttl: storedFor}
	if s.Call != nil {
		t.created, t.updated = s.Call.Accepted, s.Call.Accepted
	}
	if s.State == batch.StateInputRequired {
		t.status, t.updated = "input_required", s.Asked
		t.end = append([]byte(`"inputRequests":`), storedQuestions(s)...)
	}
	if s.Result != nil {
		if t.updated = s.Result.Ended; t.created.IsZero() {
			t.created = t.updated
		}
		if t.status = "cancelled"; s.State != "canceled" {
			t.finish(f.recorded(ctx, x, callID, s.Result))
		}
	}
	return t.encode(true), nil
}

// taskView is a task on its way out.
type taskView struct {
	id, status, message string
	ttl                 string // in milliseconds, "" for none
	created, updated    time.Time
	end                 []byte // a member
}

// finish notes how the call of a task ended: a result of the tool's own is a
// completed task even with isError.
func (t *taskView) finish(result []byte, e *fault) {
	if e == nil {
		t.status, t.end = "completed", append([]byte(`"result":`), result...)
		return
	}
	t.status, t.message = "failed", e.Message
	inner := append([]byte{'{'}, `"code":`...)
	inner = append(inner, jsonInt(e.Code)...)
	inner = appendMember(inner, "message", quote(e.Message))
	if len(e.Data) > 0 {
		inner = appendMember(inner, "data", e.Data)
	}
	t.end = append([]byte(`"error":`), append(inner, '}')...)
}

func (t *taskView) encode(whole bool) []byte {
	when := func(at time.Time) []byte { return quote(at.UTC().Format(time.RFC3339Nano)) }
	b := append([]byte(`"taskId":`), quote(t.id)...)
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

// updateTask takes the answer to the question of a task. The call goes on by
// itself; the client asks for its end.
func (f *Face) updateTask(ctx context.Context, x *exchange, id string) ([]byte, *fault) {
	callID, token, _ := strings.Cut(id, taskGlue)
	if _, _, ok := batch.ParseCallID(callID); ok && f.o.Batches != nil {
		return f.updateStored(ctx, x, callID)
	}
	p, err := f.approval(ctx, x.principal, callID)
	if err != nil {
		if isGone(err) {
			return nil, noTask()
		}
		return nil, x.faultOf(err)
	}
	answer := get(get(x.msg.params, "inputResponses"), questionID)
	if answer == nil || token == "" && getString(answer, "action") == "accept" || p.State.Ended() {
		return []byte(`{}`), nil // what is not asked, or decided elsewhere, changes nothing
	}
	gone, leave := context.WithCancel(ctx)
	defer leave()
	if getString(answer, "action") == "accept" && string(get(get(answer, "content"), "confirm")) == "true" {
		running, err := f.o.Desk.Confirm(ctx, token, true, x.principal, schema.NewID("mcp"), f.o.RouterID)
		if err != nil {
			if isGone(err) {
				return []byte(`{}`), nil // it was spent before: the state tells
			}
			return nil, x.faultOf(err)
		}
		leave() // the call goes on without its caller
		_, _ = f.o.Release(gone, running)
		return []byte(`{}`), nil
	}
	if _, _, e := f.decide(ctx, x, p, token, answer); e != nil {
		return nil, e
	}
	return []byte(`{}`), nil
}

// updateStored takes answers to what the server of a stored call asks.
func (f *Face) updateStored(ctx context.Context, x *exchange, callID string) ([]byte, *fault) {
	s, err := f.o.Batches.Status(ctx, callID, x.principal, 0)
	if err == nil && s.State == batch.StateInputRequired {
		err = f.o.Batches.Answer(ctx, callID, x.principal, s.Round, membersOf(get(x.msg.params, "inputResponses"), roundPrefix(s)))
	}
	switch {
	case isGone(err):
		return nil, noTask()
	case err != nil:
		return nil, x.faultOf(err)
	}
	return []byte(`{}`), nil
}

// cancelTask takes a task back, where that is still possible.
func (f *Face) cancelTask(ctx context.Context, x *exchange, id string) ([]byte, *fault) {
	callID, _, _ := strings.Cut(id, taskGlue)
	var err error
	if _, _, ok := batch.ParseCallID(callID); ok && f.o.Batches != nil {
		_, err = f.o.Batches.CancelCall(ctx, callID, x.principal)
	} else if _, err = f.approval(ctx, x.principal, callID); err == nil {
		_, err = f.o.Desk.Cancel(ctx, callID, x.principal)
	}
	switch {
	case isGone(err):
		return nil, noTask()
	case err != nil && schema.KindOf(err) != schema.KindConflict && schema.KindOf(err) != schema.KindExpired:
		return nil, x.faultOf(err)
	}
	return []byte(`{}`), nil
}

// storedEvery is how often a stored task is looked at for a client that listens.
const storedEvery = time.Second

// watchTasks has an ear hear of tasks; the returned function ends that.
func (f *Face) watchTasks(ctx context.Context, x *exchange, e *ear) (stop func()) {
	if !x.tasks() {
		return func() {}
	}
	by := make(map[string]string, len(e.wants.tasks)) // task by call
	stored := make(map[string]string)                 // how a stored one was seen last
	for _, id := range e.wants.tasks {
		callID, _, _ := strings.Cut(id, taskGlue)
		by[callID] = id
		if _, _, ok := batch.ParseCallID(callID); ok && f.o.Batches != nil {
			stored[id] = ""
		}
	}
	moved := make(chan string, len(by)*4)
	unwatch := make([]func(), 0, len(by))
	for callID, id := range by {
		unwatch = append(unwatch, f.o.Ledger.WatchOne(ledger.IDFor(callID), func(*ledger.Approval) {
			select {
			case moved <- id:
			default: // the client reads slowly, and asks now and then
			}
		}))
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		// Nothing tells of a stored call that goes on elsewhere, so these are looked at.
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
				if about, fault := f.taskState(ctx, x, id, true); fault == nil {
					e.say("notifications/tasks", append(append([]byte{'{'}, about...), '}'))
				}
			case <-look.C:
				for id, seen := range stored {
					about, fault := f.taskState(ctx, x, id, true)
					if ctx.Err() != nil {
						return
					}
					if fault != nil {
						delete(stored, id) // it is not there, or not the caller's
						continue
					}
					state := append(append([]byte{'{'}, about...), '}')
					status := getString(state, "status")
					if string(state) != seen && (seen != "" || status != "working") {
						e.say("notifications/tasks", state)
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
