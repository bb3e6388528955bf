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

// Decision is what somebody said about a held call.
type Decision = ledger.Decision

// Allow is the wish of an approver that calls like this one run without an approval.
type Allow = ledger.Allow

// Pattern says which arguments an Allow is for.
type Pattern = ledger.Pattern

// Value is one place in the arguments and its digest.
type Value = ledger.Value

// Status is what is known of a call, wherever it is stored. It does not change.
type Status struct {
	ID schema.CallID
	// Tenant is that of the principal; "" may stand for the default one.
	Tenant schema.TenantID
	State  schema.State
	// Server and Tool are empty where the record of the call is not kept any more.
	Server schema.ServerID
	Tool   string
	// Batch is the batch that the call is part of, at Index; "" for a single call.
	Batch    schema.BatchID
	Index    uint64
	CustomID string
	// ApprovalID names the approval that the call waits or ran under, "" for none.
	ApprovalID schema.ApprovalID
	// Held is what was asked of approvers, nil where the call was not held as a single
	// call.
	Held   *Held
	Edited bool // an approver changed the arguments
	// ReplayOf is the call whose arguments it repeats, "" for none.
	ReplayOf  schema.CallID
	Decisions []Decision

	// RecordOnly says that nothing but the execution record of the call is kept: its
	// result is not.
	RecordOnly bool

	Created time.Time
	Expires time.Time // until then it may be approved, or sent
	Ended   time.Time

	Worker    schema.WorkerID
	Attempt   int
	ToolError bool   // the tool answered with an error of its own
	GivenUp   bool   // every attempt failed
	Settled   string // who settled an unknown outcome, and why
	// Error is why a call that has ended has no result.
	Error *schema.Error

	// InputRequest is the result by which the server requested input at Asked, while the
	// call is suspended. Round counts the requests from 1.
	InputRequest []byte
	Asked        time.Time
	Round        int

	approval *ledger.Approval
	call     *journal.CallRecord
	result   *journal.ResultRecord
	trace    records.TraceID // of the record, with RecordOnly
}

// Held describes a call that was held for an approval.
type Held struct {
	CallID     schema.CallID
	ApprovalID schema.ApprovalID
	// Token is the single-use confirmation token of a call that was held just now, "" where
	// people decide. It is known here and to the caller, and to nobody else.
	Token  string
	Server schema.ServerID
	Tool   string
	// ByCaller says that the caller itself confirms the call; otherwise people decide, even
	// about a call with a token: the rule can change while the call is held.
	ByCaller bool
	// Level is the risk level, Reasons say why an approval is required.
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

// approvalStates maps the states of an approval to those of its call.
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

// OfEnd returns the status of a durable call that ended.
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

// ofResult returns the status of an accepted call that ended here.
func (c *Calls) ofResult(a *Accepted, r *journal.ResultRecord) *Status {
	s := &Status{ID: a.CallID, State: batch.StateOf(r.Outcome), Server: a.call.Server, Tool: a.call.Tool, Tenant: a.call.Principal.Tenant}
	s.end(r)
	return s
}

// end adds how a durable call ended; nil: it has not.
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

// ofRecord returns the status of a call of which only the execution record is kept.
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

// Same reports whether the call is of the same tool with the same argument bytes.
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

// Body returns the result of a call that succeeded, as the bytes that the tool
// answered; nil where it did not succeed, a person said that it did, or only its
// execution record is kept. Errors are of KindUnavailable, or KindNotFound for a result
// that is not kept any more.
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

// Result returns the result of a call that has ended, or the error why it has none. A
// call that a person declared done has a result without content.
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
	case s.State == schema.StateExpired:
		return nil, schema.Errorf(schema.KindExpired, "The call was not confirmed in time; it did not run.").WithCall(s.ID)
	case s.approval != nil:
		return nil, schema.Errorf(schema.KindForbidden, "The call was %s; it did not run.", s.approval.State).WithCall(s.ID)
	case s.State.Ended():
		return nil, schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", s.State).WithCall(s.ID)
	}
	return nil, UnderWay(s.ID)
}
