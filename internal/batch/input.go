package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// A server may answer a stored call with a question to its caller, where the call says that
// the caller can be asked. The question is then the end of that call, and the answer makes
// the next one: the same arguments, with the answer and the server's own state next to
// them. The calls of such a conversation are tied to each other by entries like those of
// idempotency keys, of which the first writer's counts, so that any front door can continue
// it and no answer is given twice. To callers the whole conversation is one call, under the
// id of its first.

// inputRequired is the resultType of a result by which a server asks for input.
const inputRequired = "input_required"

const (
	// methodAnswers marks a record that holds some of the answers: its arguments are
	// what is left of the question, and its result.
	methodAnswers = "callyard/answers"
	// methodWithdrawn marks the end of a conversation that its caller took back.
	methodWithdrawn = "callyard/withdrawn"
	// extraMost bounds what goes to a server with the arguments, as workers do.
	extraMost = 512 << 10
	// bareMost is how often a server may ask for nothing but to be asked again.
	bareMost = 3
)

// question is what counts of a result that asks.
type question struct {
	Type     string                     `json:"resultType"`
	Requests map[string]json.RawMessage `json:"inputRequests"`
	State    json.RawMessage            `json:"requestState"`
}

// extra is what goes along with the arguments of a call.
type extra struct {
	Meta      json.RawMessage            `json:"_meta"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
	State     json.RawMessage            `json:"requestState"`
}

// encode writes the members that are there; their values stay the bytes that they are.
func (e *extra) encode() []byte {
	b := []byte{'{'}
	member := func(name string, value []byte) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
		b = append(b, value...)
	}
	if len(e.Meta) > 0 {
		member("_meta", e.Meta)
	}
	if e.Responses != nil {
		member("inputResponses", object(e.Responses))
	}
	if len(e.State) > 0 {
		member("requestState", e.State)
	}
	return append(b, '}')
}

// object writes members in the order of their names.
func object(members map[string]json.RawMessage) []byte {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(name) // a string
		b = append(append(append(b, quoted...), ':'), members[name]...)
	}
	return append(b, '}')
}

// asks reports whether the result of a call is a question. The outcomes that workers
// remember lack that flag, but only calls whose callers can be asked get questions.
func asks(it *item, res *schema.Result) bool {
	if res.InputRequired || len(it.rec.Extra) == 0 || !bytes.Contains(res.Body, []byte(`"`+inputRequired+`"`)) {
		return res.InputRequired
	}
	var q question
	return json.Unmarshal(res.Body, &q) == nil && q.Type == inputRequired
}

// bare has a call sent again whose server asks for nothing but that; again is false
// for any other result.
func (it *item) bare(res *schema.Result) (again bool, err error) {
	if !res.InputRequired || len(it.rec.Extra) == 0 {
		return false, nil
	}
	var q question
	if json.Unmarshal(res.Body, &q) != nil || len(q.Requests) > 0 || len(q.State) == 0 {
		return false, nil
	}
	if it.sentBack++; it.sentBack > bareMost {
		return false, schema.Errorf(schema.KindInputRequired, "The server asked for a retry %d times without requesting input; the call was given up.", it.sentBack)
	}
	var e extra
	if err := json.Unmarshal(it.call.Extra, &e); err != nil {
		return false, schema.Errorf(schema.KindInternal, "The metadata of the call cannot be read: %w", err)
	}
	e.State = q.State
	it.call.Extra = e.encode()
	return true, nil
}

// note is the end of a record of a conversation that is no call of its own.
func (it *item) note() (*schema.Result, error) {
	if it.rec.Method == methodWithdrawn {
		e := schema.Errorf(schema.KindOutcomeUnknown, "The call was canceled while its server waited for an answer; it may have done part of its work.")
		e.CancelRequested = true
		return nil, e
	}
	return &schema.Result{Body: it.call.Arguments, InputRequired: true}, nil
}

func (it *item) isNote() bool {
	return it.rec.Method == methodAnswers || it.rec.Method == methodWithdrawn
}

// nextOf names the entry of the call that follows one in its conversation. No caller
// can use such a key: a header cannot hold it.
func nextOf(who schema.Principal, callID string) string {
	return journal.KeyHash(who.Name, "\x00next\x00"+callID)
}

// conversations follows the calls that belong together, and continues them. It is safe for
// concurrent use.
type conversations struct {
	o        *Options
	finder   *finder
	acceptor *acceptor
}

// conversation returns how a call stands whose server asked: as the last call of the
// conversation does. A question that nobody answered counts for as long as entries
// are kept; then nobody can tell any more whether it was answered.
func (v *conversations) follow(ctx context.Context, first *Status, who schema.Principal, wait time.Duration) (*Status, error) {
	whole := *first
	whole.Round = 1
	for at := first; ; {
		whole.Head, whole.head, whole.State, whole.Result = at.CallID, at.Call, at.State, at.Result
		if at.Result == nil || !at.Result.Input {
			return &whole, nil
		}
		next, err := v.o.Store.Recall(ctx, nextOf(who, at.CallID))
		if schema.KindOf(err) == schema.KindNotFound {
			return v.open(ctx, &whole)
		}
		if err != nil {
			return nil, err
		}
		if at, err = v.finder.standing(ctx, next.CallID, who, wait); err != nil {
			return nil, err
		}
		if at.Call != nil && at.Call.Method != methodAnswers {
			whole.Round++
		}
	}
}

// open makes the state of a conversation whose last question is open.
func (v *conversations) open(ctx context.Context, s *Status) (*Status, error) {
	if time.Since(s.Result.Ended) > keepKeys {
		return nil, schema.Errorf(schema.KindNotFound, "There is no call %q, or it has been deleted.", s.CallID)
	}
	body, err := resultBody(ctx, v.o.Store, journalOf(s), s.Result)
	if err != nil {
		return nil, err
	}
	s.State, s.Asked, s.Question, s.Result = schema.StateSuspended, s.Result.Ended, body, nil
	return s, nil
}

// next makes the record that follows from answers; nil where they answer nothing.
func (v *conversations) next(ctx context.Context, s *Status, answers map[string]json.RawMessage) (*Submission, *journal.CallRecord, error) {
	var q question
	if err := json.Unmarshal(s.Question, &q); err != nil {
		return nil, nil, schema.Errorf(schema.KindInternal, "The input request of call %s cannot be read: %w", s.CallID, err)
	}
	var given extra
	if s.head != nil && s.head.Method == methodAnswers {
		if err := json.Unmarshal(s.head.Extra, &given); err != nil {
			return nil, nil, schema.Errorf(schema.KindInternal, "The answers to call %s cannot be read: %w", s.CallID, err)
		}
	}
	if given.Responses == nil {
		given.Responses = make(map[string]json.RawMessage)
	}
	asked := len(q.Requests)
	for name, answer := range answers {
		if _, ok := q.Requests[name]; ok {
			given.Responses[name] = answer
			delete(q.Requests, name)
		}
	}
	if len(q.Requests) == asked && asked > 0 {
		return nil, nil, nil
	}
	first := s.Call
	if first == nil {
		return nil, nil, schema.Errorf(schema.KindNotFound, "Call %s has been deleted.", s.CallID).WithCall(s.CallID)
	}
	call := &schema.Call{Server: first.Server, Tool: first.Tool, Principal: s.Principal, Trace: first.Trace, Timeout: first.Timeout}
	now := time.Now().UTC()
	rec := &journal.CallRecord{Server: first.Server, Tool: first.Tool, Accepted: now, Expires: now.Add(v.o.Lifetime), Principal: s.Principal, Trace: first.Trace}
	if len(q.Requests) > 0 {
		rec.Method, rec.Arguments, rec.Extra = methodAnswers, q.encode(), given.encode()
	} else if err := v.goOn(ctx, s, call, rec, &given, q.State); err != nil {
		return nil, nil, err
	}
	if len(rec.Extra) > extraMost {
		return nil, nil, schema.Errorf(schema.KindTooLarge, "The answers exceed the limit of %d bytes.", extraMost).WithCall(s.CallID)
	}
	return &Submission{Call: call}, rec, nil
}

// encode writes what is left of a question.
func (q *question) encode() []byte {
	b := append([]byte(`{"resultType":"`+inputRequired+`","inputRequests":`), object(q.Requests)...)
	if len(q.State) > 0 {
		b = append(append(b, `,"requestState":`...), q.State...)
	}
	return append(b, '}')
}

// goOn makes the call of the next round; the gate looks at it like at any other.
func (v *conversations) goOn(ctx context.Context, s *Status, call *schema.Call, rec *journal.CallRecord, given *extra, state json.RawMessage) (err error) {
	if call.Arguments, err = v.o.Store.Arguments(ctx, journalOf(s), s.Call); err != nil {
		return err
	}
	var began extra
	if err := json.Unmarshal(s.Call.Extra, &began); err != nil {
		return schema.Errorf(schema.KindInternal, "The metadata of call %s cannot be read: %w", s.CallID, err)
	}
	given.Meta, given.State = began.Meta, state
	call.Extra = given.encode()
	verdict, err := v.o.Gate.Check(call)
	if err != nil {
		return schema.AsError(err).WithCall(s.CallID)
	}
	if verdict.Assessment.Approval != nil {
		return schema.Errorf(schema.KindForbidden, "The policy changed, and this call now requires an approval; an approved call cannot carry answers. Send a new call.").WithCall(s.CallID)
	}
	rec.Arguments, rec.Extra, rec.ToolDigest, rec.Timeout, rec.Safe = call.Arguments, call.Extra, call.ToolDigest, call.Timeout, call.Safe
	return nil
}

// proceed appends the next record of a conversation; mine is false when somebody else
// was faster.
func (v *conversations) proceed(ctx context.Context, s *Status, who schema.Principal, sub Submission, rec journal.CallRecord) (mine bool, err error) {
	t, err := v.acceptor.accept(ctx, sub, rec, nextOf(who, s.Head))
	if err != nil {
		return false, err
	}
	return !t.Replayed, nil
}

// withdraw ends a conversation whose server waits for an answer.
func (v *conversations) withdraw(ctx context.Context, s *Status, who schema.Principal) (mine bool, err error) {
	now := time.Now().UTC()
	rec := journal.CallRecord{Method: methodWithdrawn, Accepted: now, Expires: now.Add(v.o.Lifetime), Principal: s.Principal}
	if s.Call != nil {
		rec.Server, rec.Tool = s.Call.Server, s.Call.Tool
	}
	return v.proceed(ctx, s, who, Submission{Call: &schema.Call{Server: rec.Server, Tool: rec.Tool, Principal: s.Principal}}, rec)
}
