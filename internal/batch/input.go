package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// A server can answer a stored call with an input request to its caller, if the call declares
// that its caller can be asked. The input request ends that call, and the caller's answers
// start the next one: the same arguments, with the answers and the server's request state in
// its metadata. Entries like those of idempotency keys link the calls of such a conversation;
// the first writer of an entry wins, so any front door can continue the conversation, and no
// answer is sent twice. To callers the conversation is one call with the id of its first.

// inputRequired is the resultType of a result by which a server asks for input.
const inputRequired = "input_required"

const (
	// methodAnswers marks a record with some of the answers. Its arguments are the rest of
	// the input request, which is also its result.
	methodAnswers = "callyard/answers"
	// methodWithdrawn marks the end of a conversation that its caller canceled.
	methodWithdrawn = "callyard/withdrawn"
	// maxMetadataBytes bounds the metadata of a call, as workers do.
	maxMetadataBytes = 512 << 10
	// bareMost bounds how often a server can request a retry without requesting input.
	bareMost = 3
)

// inputRequest has the members of a result that requests input.
type inputRequest struct {
	Type     string                     `json:"resultType"`
	Requests map[string]json.RawMessage `json:"inputRequests"`
	State    json.RawMessage            `json:"requestState"`
}

// metadata has the params of a call other than its name and arguments.
type metadata struct {
	Meta      json.RawMessage            `json:"_meta"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
	State     json.RawMessage            `json:"requestState"`
}

// encode returns the members that are set; their values keep their bytes.
func (e *metadata) encode() []byte {
	b := []byte{'{'}
	if len(e.Meta) > 0 {
		b = rawjson.AppendMember(b, "_meta", e.Meta)
	}
	if e.Responses != nil {
		b = rawjson.AppendMember(b, "inputResponses", object(e.Responses))
	}
	if len(e.State) > 0 {
		b = rawjson.AppendMember(b, "requestState", e.State)
	}
	return append(b, '}')
}

// object writes members in the order of their names.
func object(members map[string]json.RawMessage) []byte {
	b := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		b = rawjson.AppendMember(b, name, members[name])
	}
	return append(b, '}')
}

// asks reports whether the result of a call requests input. The outcomes that workers of version 0.1
// keep lack that flag, but only calls whose callers can be asked get input requests.
func asks(it *item, res *schema.Result) bool {
	if res.InputRequired || len(it.rec.Extra) == 0 || !bytes.Contains(res.Body, []byte(`"`+inputRequired+`"`)) {
		return res.InputRequired
	}
	var q inputRequest
	return json.Unmarshal(res.Body, &q) == nil && q.Type == inputRequired
}

// prepareRetry prepares a retry if the server requests one without requesting input; again is false
// for any other result.
func (it *item) prepareRetry(res *schema.Result) (again bool, err error) {
	if !res.InputRequired || len(it.rec.Extra) == 0 {
		return false, nil
	}
	var q inputRequest
	if json.Unmarshal(res.Body, &q) != nil || len(q.Requests) > 0 || len(q.State) == 0 {
		return false, nil
	}
	if it.sentBack++; it.sentBack > bareMost {
		return false, schema.Errorf(schema.KindInputRequired, "The server asked for a retry %d times without requesting input; the call was given up.", it.sentBack)
	}
	var e metadata
	if err := json.Unmarshal(it.call.Extra, &e); err != nil {
		return false, schema.Errorf(schema.KindInternal, "The metadata of the call cannot be read: %w", err)
	}
	e.State = q.State
	it.call.Extra = e.encode()
	return true, nil
}

// note returns the result of a record that only continues a conversation and is not sent.
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
func nextOf(who *schema.Principal, callID schema.CallID) string {
	return journal.KeyHash(who.ID(), nextKey(callID))
}

func nextKey(callID schema.CallID) string { return "\x00next\x00" + string(callID) }

// conversations follows and continues the calls of a conversation. It is safe for concurrent use.
type conversations struct {
	o        *Options
	finder   *finder
	acceptor *acceptor
}

// follow returns the state of a call whose server requested input, which is the state of the last
// call of the conversation. An unanswered input request is open for as long as entries are kept;
// after that it is unknown whether it was answered.
func (v *conversations) follow(ctx context.Context, first *Status, who schema.Principal, wait time.Duration) (*Status, error) {
	whole := *first
	whole.Round = 1
	for at := first; ; {
		whole.Head, whole.head, whole.State, whole.Result = at.CallID, at.Call, at.State, at.Result
		if at.Result == nil || !at.Result.Input {
			return &whole, nil
		}
		next, err := v.o.recall(ctx, &who, nextKey(at.CallID))
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

// open returns the state of a conversation whose last input request is open.
func (v *conversations) open(ctx context.Context, s *Status) (*Status, error) {
	if time.Since(s.Result.Ended) > keepKeys {
		return nil, schema.Errorf(schema.KindNotFound, "There is no call %q, or it has been deleted.", s.CallID)
	}
	body, err := resultBody(ctx, v.o.Store, s.Principal.Tenant, journalOf(s), s.Result)
	if err != nil {
		return nil, err
	}
	s.State, s.Asked, s.InputRequest, s.Result = schema.StateSuspended, s.Result.Ended, body, nil
	return s, nil
}

// next returns the record that follows from the answers, or nil if they answer no open request.
func (v *conversations) next(ctx context.Context, s *Status, answers map[string]json.RawMessage) (*Submission, *journal.CallRecord, error) {
	var q inputRequest
	if err := json.Unmarshal(s.InputRequest, &q); err != nil {
		return nil, nil, schema.Errorf(schema.KindInternal, "The input request of call %s cannot be read: %w", s.CallID, err)
	}
	var given metadata
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
	} else if err := v.continueWith(ctx, s, call, rec, &given, q.State); err != nil {
		return nil, nil, err
	}
	if len(rec.Extra) > maxMetadataBytes {
		return nil, nil, schema.Errorf(schema.KindTooLarge, "The answers exceed the limit of %d bytes.", maxMetadataBytes).WithCall(s.CallID)
	}
	return &Submission{Call: call}, rec, nil
}

// encode returns the input request as JSON.
func (q *inputRequest) encode() []byte {
	b := append([]byte(`{"resultType":"`+inputRequired+`","inputRequests":`), object(q.Requests)...)
	if len(q.State) > 0 {
		b = rawjson.AppendMember(b, "requestState", q.State)
	}
	return append(b, '}')
}

// continueWith prepares the call of the next round; the gate checks it like any other.
func (v *conversations) continueWith(ctx context.Context, s *Status, call *schema.Call, rec *journal.CallRecord, given *metadata, state json.RawMessage) (err error) {
	if call.Arguments, err = v.o.Store.Arguments(ctx, s.Principal.Tenant, journalOf(s), s.Call); err != nil {
		return err
	}
	var began metadata
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

// proceed appends the next record of a conversation. mine is false if a concurrent request
// appended one first.
func (v *conversations) proceed(ctx context.Context, s *Status, who schema.Principal, sub Submission, rec journal.CallRecord) (mine bool, err error) {
	t, err := v.acceptor.accept(ctx, sub, rec, nextOf(&who, s.Head))
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
