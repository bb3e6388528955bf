package calls

import (
	"context"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Decision is a person's decision on a held call.
type Decision = ledger.Decision

// Allow is an approver's request that similar calls run without an approval.
type Allow = ledger.Allow

// Pattern selects the arguments that an Allow covers.
type Pattern = ledger.Pattern

// Value is a location in the arguments and the digest of its value.
type Value = ledger.Value

// Status is everything known about a call, independent of where it is stored. It is immutable.
type Status struct {
	ID schema.CallID
	// Tenant is the principal's tenant. The default tenant may be "".
	Tenant schema.TenantID
	State  schema.State
	// Server and Tool are empty if the call record is no longer stored.
	Server schema.ServerID
	Tool   string
	// Batch is the batch that contains the call at Index, or "" for a single call.
	Batch    schema.BatchID
	Index    uint64
	CustomID string
	// ApprovalID is the approval for which the call waits or under which it ran, or "".
	ApprovalID schema.ApprovalID
	// Held is the approval request, or nil if the call was not held as a single call.
	Held   *Held
	Edited bool // an approver changed the arguments
	// ReplayOf is the call whose arguments this call repeats, or "".
	ReplayOf  schema.CallID
	Decisions []Decision

	// RecordOnly is set if only the execution record of the call is left, without its result.
	RecordOnly bool

	Created time.Time
	Expires time.Time // deadline for the approval or the start
	Ended   time.Time

	Worker    schema.WorkerID
	Attempt   int
	ToolError bool   // the tool returned an error
	GivenUp   bool   // every attempt failed
	Settled   string // who settled an unknown outcome, and the reason
	// Error is the reason why an ended call has no result.
	Error *schema.Error

	// InputRequest is the result with which the server requested input at the time Asked, while
	// the call is suspended. Round counts the requests from 1.
	InputRequest []byte
	Asked        time.Time
	Round        int

	approval *ledger.Approval
	call     *journal.CallRecord
	result   *journal.ResultRecord
	trace    records.TraceID // from the record; only with RecordOnly
}

// Held describes a call that was held for an approval.
type Held struct {
	CallID     schema.CallID
	ApprovalID schema.ApprovalID
	// Token is the single-use confirmation token of a call that was just held, or "" if other
	// people decide. It is returned to the caller and not stored.
	Token string
	// Replayed is set if the call was held earlier with the same idempotency key.
	Replayed bool
	Server   schema.ServerID
	Tool     string
	// ByCaller is set if the caller itself confirms the call. Otherwise other people decide,
	// even on a call with a token, because the rule can change while the call is held.
	ByCaller bool
	// Level is the risk level. Reasons explain why an approval is required.
	Level   int
	Reasons []string
	Expires time.Time
}

func heldOf(a *ledger.Approval) *Held {
	return &Held{
		CallID: a.CallID, ApprovalID: a.ID, Server: a.Binding.Server, Tool: a.Binding.Tool, Level: a.Bound().Level, Reasons: a.Reasons, Expires: a.Expires,
		ByCaller: approval.ByCaller(a),
	}
}

// approvalStates maps the state of an approval to the state of its call.
var approvalStates = map[ledger.State]schema.State{
	ledger.Pending: schema.StateHeld, ledger.Approved: schema.StateQueued, ledger.Running: schema.StateRunning, ledger.Succeeded: schema.StateSucceeded,
	ledger.Failed: schema.StateFailed, ledger.Denied: schema.StateDenied, ledger.Revoked: schema.StateDenied, ledger.Expired: schema.StateExpired,
	ledger.Canceled: schema.StateCanceled, ledger.Unknown: schema.StateUnknown,
}

// OfApproval returns the status of a call that was held as a single call.
func OfApproval(a *ledger.Approval) *Status {
	return &Status{Tenant: a.Binding.Tenant,
		ID: a.CallID, State: approvalStates[a.State], Server: a.Binding.Server, Tool: a.Binding.Tool, ApprovalID: a.ID, Held: heldOf(a),
		Edited: a.Edited != nil, Decisions: a.Decisions, Created: a.Created, Expires: a.Expires, Ended: a.Ended, ToolError: a.ToolError, Error: a.Error, ReplayOf: a.ReplayOf,
		approval: a,
	}
}

// OfEnd returns the status of a durable call that has ended.
func OfEnd(e batch.End) *Status {
	return ofStored(&batch.Status{CallID: e.CallID, State: batch.StateOf(e.Result.Outcome), Call: e.Call, Result: e.Result, Principal: e.Principal})
}

// ofStored returns the status of a durable call.
func ofStored(b *batch.Status) *Status {
	s := &Status{ID: b.CallID, State: b.State, Batch: b.Batch, Index: b.Index, InputRequest: b.InputRequest, Asked: b.Asked, Round: b.Round, Tenant: b.Principal.Tenant, call: b.Call}
	if c := b.Call; c != nil {
		s.Server, s.Tool, s.CustomID, s.Created, s.Expires, s.ReplayOf = c.Server, c.Tool, c.CustomID, c.Accepted, c.Expires, c.ReplayOf
	}
	if b.State == schema.StateHeld {
		s.ApprovalID = ledger.IDFor(b.CallID)
	}
	s.end(b.Result)
	return s
}

// ofResult returns the status of an accepted call that ended in this process.
func (c *Calls) ofResult(a *Accepted, r *journal.ResultRecord) *Status {
	s := &Status{ID: a.CallID, State: batch.StateOf(r.Outcome), Server: a.call.Server, Tool: a.call.Tool, Tenant: a.call.Principal.Tenant}
	s.end(r)
	return s
}

// end sets the outcome of a durable call. A nil record means that the call has not ended.
func (s *Status) end(r *journal.ResultRecord) {
	if r == nil {
		return
	}
	s.result = r
	s.Ended, s.Worker, s.Attempt, s.ToolError, s.GivenUp = r.Ended, r.Worker, r.Attempt, r.ToolError, r.Outcome == journal.Dead
	if r.By != "" {
		s.Settled = r.By + ": " + r.Reason
	}
	if len(r.Error) > 0 {
		s.Error = batch.ErrorOf(s.ID, r)
	}
}

// ofRecord returns the status of a call of which only the execution record is left.
func ofRecord(r *records.Record) *Status {
	s := &Status{
		RecordOnly: true, ID: r.ID, Tenant: r.Tenant, State: r.State, Server: r.Server, Tool: r.Tool, ApprovalID: r.Approval, Created: time.Unix(0, r.Admitted).UTC(), Worker: r.Worker,
		Attempt: r.Attempt, ToolError: r.ToolError, ReplayOf: r.ReplayOf, trace: r.Trace,
	}
	if r.Ended != 0 {
		s.Ended = time.Unix(0, r.Ended).UTC()
	}
	if r.Error != "" {
		s.Error = &schema.Error{Kind: r.Error, Detail: r.Detail, CallID: r.ID, CancelRequested: r.CancelRequested}
	}
	return s
}

// Same reports whether call is for the same tool with identical argument bytes.
func (s *Status) Same(call *schema.Call) bool {
	if s.Server != call.Server || s.Tool != call.Tool {
		return false
	}
	switch {
	case s.approval != nil:
		return s.approval.Binding.ArgumentsDigest == schema.Digest(call.Arguments)
	case s.call == nil:
		return false
	case s.call.ArgumentsObject.Name != "":
		return strings.TrimPrefix(schema.Digest(call.Arguments), "sha256:") == s.call.ArgumentsObject.SHA256
	}
	return string(s.call.Arguments) == string(call.Arguments)
}

// Body returns the result of a successful call as the bytes that the tool returned. It returns
// nil if the call did not succeed, a person settled it as succeeded, or only its execution record
// is left. Errors: KindUnavailable; KindNotFound for a result that is no longer stored.
func (c *Calls) Body(ctx context.Context, s *Status) ([]byte, error) {
	if s.State != schema.StateSucceeded || s.Error != nil {
		return nil, nil
	}
	switch {
	case s.approval != nil:
		return c.o.Ledger.Result(ctx, s.approval)
	case s.result != nil:
		return c.o.Durable.Calls.ResultBody(ctx, s.Tenant, s.ID, s.result)
	}
	return nil, nil
}

// Result returns the result of an ended call, or the reason why it has none as the error. A call
// that a person settled as succeeded has a result without content.
func (c *Calls) Result(ctx context.Context, s *Status) (*schema.Result, error) {
	switch {
	case s.Error != nil:
		return nil, s.Error.WithCall(s.ID)
	case s.State == schema.StateSucceeded:
		body, err := c.Body(ctx, s)
		if err != nil {
			return nil, schema.AsError(err).WithCall(s.ID)
		}
		if len(body) == 0 {
			body = []byte(`{"content":[]}`)
		}
		return &schema.Result{Body: body, ToolError: s.ToolError, Worker: s.Worker}, nil
	case !s.State.Ended():
		return nil, ErrInProgress(s.ID)
	case s.State == schema.StateExpired:
		return nil, schema.Errorf(schema.KindExpired, "The call was not confirmed in time; it did not run.").WithCall(s.ID)
	case s.approval != nil:
		return nil, schema.Errorf(schema.KindForbidden, "The call was %s; it did not run.", s.approval.State).WithCall(s.ID)
	}
	return nil, schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", s.State).WithCall(s.ID)
}
