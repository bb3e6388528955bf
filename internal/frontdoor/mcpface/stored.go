package mcpface

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// A call that is stored is answered here, whether the policy or its tool wants it to
// be. Its server may ask for input: then the call waits, and goes on with the answers,
// at whichever front door they come in.

const (
	// firstQuestion is how long the call of a tool that only runs as a task is watched
	// before its client gets the task: what the server asks until then is asked in the
	// request itself, as the extension wants it.
	firstQuestion = 10 * time.Second
	// statusWait is how long one look at a stored call waits for its end.
	statusWait = 30 * time.Second
	// storedFor is how long a stored call can be asked for at the least, in
	// milliseconds.
	storedFor = "86400000"
)

// stores says that calls can be stored here, and tasks served.
func (f *Face) stores() bool { return f.o.Batches != nil && f.o.Desk != nil && f.o.Ledger != nil }

// tasksMissing is the error for a client that does not know the Tasks extension.
func tasksMissing(message string) *fault {
	return &fault{Code: codeNoCapability, Message: message, Data: []byte(`{"requiredCapabilities":{"extensions":{"` + extensionTasks + `":{}}}}`)}
}

// taskOnly says that a tool only runs as a task: its definition says so.
func taskOnly(raw []byte) bool {
	return mayHold(raw, `"taskSupport"`) && getString(get(raw, "execution"), "taskSupport") == "required"
}

// asTask runs a tool that only runs as a task.
func (f *Face) asTask(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	if !x.tasks() {
		return nil, tasksMissing("This tool runs as a task only, and the request does not declare the Tasks extension among its client capabilities.")
	}
	t, result, e := f.store(ctx, x, call)
	if t == nil {
		return result, e
	}
	if askable(x.meta.capabilities) != nil {
		soon, cancel := context.WithTimeout(ctx, firstQuestion)
		defer cancel()
		if rec, err := f.o.Batches.Wait(soon, t); err == nil && rec.Input {
			return f.followed(ctx, x, t.CallID)
		}
	}
	return f.newTask(ctx, x, t.CallID)
}

// durable stores a call that the policy wants stored, and waits for its end where
// the client cannot come back for it.
func (f *Face) durable(ctx context.Context, x *exchange, call *schema.Call) ([]byte, *fault) {
	t, result, e := f.store(ctx, x, call)
	switch {
	case t == nil:
		return result, e
	case x.tasks():
		return f.newTask(ctx, x, t.CallID)
	}
	rec, err := f.o.Batches.Wait(ctx, t)
	switch {
	case err != nil:
		return x.toolFault(schema.AsError(err).WithCall(t.CallID))
	case rec.Input:
		return f.followed(ctx, x, t.CallID)
	}
	return f.recorded(ctx, x, t.CallID, rec)
}

// store stores a call. Without a ticket the request is answered.
func (f *Face) store(ctx context.Context, x *exchange, call *schema.Call) (t *batch.Ticket, result []byte, e *fault) {
	if f.o.Batches == nil {
		result, e = x.toolFault(schema.Errorf(schema.KindUnavailable, "The policy wants this call stored, and durable calls are not available here."))
		return nil, result, e
	}
	call.ID, call.Session, call.Hear = "", "", nil
	t, err := f.o.Batches.Submit(ctx, batch.Submission{Call: call, Waited: !x.tasks()})
	var held *admission.HeldError
	switch {
	case errors.As(err, &held):
		result, e = f.held(ctx, x, call, held)
		return nil, result, e
	case err != nil:
		result, e = x.toolFault(err)
		return nil, result, e
	}
	x.setCall(t.CallID)
	return t, nil, nil
}

// followed answers with the end of a stored call, or with what its server asks. A
// client of the legacy era is asked in its session.
func (f *Face) followed(ctx context.Context, x *exchange, id string) ([]byte, *fault) {
	for rounds := 0; ; {
		s, err := f.o.Batches.Status(ctx, id, x.principal, statusWait)
		switch {
		case err != nil:
			return nil, x.faultOf(err)
		case s.Ended():
			return f.recorded(ctx, x, id, s.Result)
		case ctx.Err() != nil:
			return x.toolFault(schema.Errorf(schema.KindCanceled, "The caller left; the call goes on.").WithCall(id))
		case s.State != batch.StateInputRequired:
			continue
		case x.modern:
			return storedQuestion(s), nil
		}
		answers, e := f.askAll(ctx, x, id, get(s.Question, "inputRequests"), rounds)
		if e != nil {
			return nil, e
		}
		rounds++
		if err := f.o.Batches.Answer(ctx, id, x.principal, s.Round, membersOf(answers, "")); err != nil {
			return x.toolFault(err)
		}
	}
}

// Questions of a stored call have the number of their round before their ids: an id
// is never used twice within a task, whatever the server does.
func roundPrefix(s *batch.Status) string { return strconv.Itoa(s.Round) + "." }

// storedQuestions returns the questions of a stored call that are open, as an object.
func storedQuestions(s *batch.Status) []byte {
	out := []byte{'{'}
	each(get(s.Question, "inputRequests"), func(id string, request []byte) {
		out = appendMember(out, roundPrefix(s)+id, request)
	})
	return append(out, '}')
}

// storedQuestion is a result that asks what the server of a stored call does. What the
// client brings back is the call; the server's own state stays here.
func storedQuestion(s *batch.Status) []byte {
	b := append([]byte(`{"resultType":"input_required","inputRequests":`), storedQuestions(s)...)
	b = appendQuoted(append(b, `,"requestState":`...), heldState{Call: s.CallID, Round: s.Round}.String())
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

// resumeStored goes on with a stored call whose client comes back with answers.
func (f *Face) resumeStored(ctx context.Context, x *exchange, call *schema.Call, state heldState, responses []byte) ([]byte, *fault) {
	foreign := &fault{Code: codeInvalidParams, Message: "The requestState does not belong to this request."}
	s, err := f.o.Batches.Status(ctx, state.Call, x.principal, 0)
	switch {
	case isGone(err):
		return nil, foreign
	case err != nil:
		return nil, x.faultOf(err)
	case s.Call == nil || s.Call.Server != call.Server || s.Call.Tool != call.Tool || !sameArguments(s.Call, call.Arguments):
		return nil, foreign
	}
	x.setCall(s.CallID)
	if s.State == batch.StateInputRequired && s.Round == state.Round {
		if err := f.o.Batches.Answer(ctx, s.CallID, x.principal, s.Round, membersOf(responses, roundPrefix(s))); err != nil {
			return x.toolFault(err)
		}
	}
	if !x.tasks() {
		return f.followed(ctx, x, s.CallID)
	}
	until := time.Now().Add(firstQuestion)
	for first := true; first || !s.Ended() && s.State != batch.StateInputRequired && time.Now().Before(until); first = false {
		if s, err = f.o.Batches.Status(ctx, s.CallID, x.principal, time.Until(until)); err != nil {
			return nil, x.faultOf(err)
		}
	}
	if s.State == batch.StateInputRequired {
		return storedQuestion(s), nil
	}
	return f.newTask(ctx, x, s.CallID)
}

// sameArguments says that the bytes are those that are stored.
func sameArguments(rec *journal.CallRecord, arguments []byte) bool {
	if o := rec.ArgumentsObject; o.Name != "" {
		return strings.TrimPrefix(digest.Of(arguments), "sha256:") == o.SHA256
	}
	return string(rec.Arguments) == string(arguments)
}

// recorded answers with the end of a durable call.
func (f *Face) recorded(ctx context.Context, x *exchange, id string, rec *journal.ResultRecord) ([]byte, *fault) {
	if rec.Outcome != journal.Succeeded || len(rec.Error) > 0 {
		e := &schema.Error{}
		if json.Unmarshal(rec.Error, e) != nil || e.Kind == "" {
			e = schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", rec.Outcome)
		}
		return x.toolFault(e.WithCall(id))
	}
	journalID, _, _ := batch.ParseCallID(id)
	body, err := f.o.Batches.ResultBody(ctx, journalID, rec)
	if err != nil {
		return nil, x.faultOf(schema.AsError(err).WithCall(id))
	}
	if len(body) == 0 {
		body = []byte(`{"content":[]}`) // a person said that it is done
	}
	return x.fitted(body), nil
}
