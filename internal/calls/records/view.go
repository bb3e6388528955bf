package records

import (
	"cmp"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// View is the public form of a record: an item of GET /calls, and the response of GET /calls/{id} for
// a call of which only the record is left.
type View struct {
	ID              schema.CallID     `json:"id" doc:"The id of the call."`
	State           schema.State      `json:"state" enum:"held,queued,running,succeeded,failed,denied,expired,canceled,unknown" doc:"The state of the call."`
	Server          schema.ServerID   `json:"server" doc:"The id of the server."`
	Tool            string            `json:"tool,omitempty" doc:"The name of the tool; absent for a request that is not a tool call."`
	Method          string            `json:"method" doc:"The MCP method of the request."`
	Principal       string            `json:"principal" doc:"The principal that made the call."`
	Owner           string            `json:"owner,omitempty" doc:"The person or team behind the principal, if recorded."`
	Tenant          schema.TenantID   `json:"tenant,omitempty" doc:"The tenant of the principal; absent for the default one."`
	ToolError       bool              `json:"tool_error,omitempty" doc:"Whether the tool's result is an error."`
	Error           *ViewError        `json:"error,omitempty" doc:"The reason that there is no result."`
	ArgumentsDigest string            `json:"arguments_digest,omitempty" doc:"The SHA-256 digest of the arguments."`
	ArgumentBytes   int64             `json:"arguments_bytes" doc:"The size of the arguments in bytes."`
	ResultDigest    string            `json:"result_digest,omitempty" doc:"The SHA-256 digest of the result; absent if there is none."`
	ResultBytes     int64             `json:"result_bytes" doc:"The size of the result in bytes; 0 if there is none."`
	Created         time.Time         `json:"created" doc:"The time at which the call was admitted."`
	Started         *time.Time        `json:"started,omitempty" doc:"The time at which its last attempt was sent to the MCP server, if known."`
	Ended           *time.Time        `json:"ended,omitempty" doc:"The time at which the call ended; absent until then."`
	TookMs          float64           `json:"took_ms,omitempty" doc:"The time that the MCP server took, in milliseconds, measured by the worker; absent if it is not known."`
	Worker          schema.WorkerID   `json:"worker,omitempty" doc:"The worker of the last attempt; absent if the call was sent to none."`
	FrontDoor       string            `json:"front_door,omitempty" doc:"The front door that admitted the call."`
	Attempt         int               `json:"attempt" doc:"The number of attempts; 0 if the call was sent to no worker."`
	Durable         bool              `json:"durable,omitempty" doc:"Whether the call is stored and continues without its caller."`
	CancelRequested bool              `json:"cancel_requested,omitempty" doc:"With state unknown: the call was asked to stop while it ran. A call in state canceled never ran."`
	Replayed        bool              `json:"replayed,omitempty" doc:"Whether an idempotency key returned the result of an earlier request."`
	BatchID         schema.BatchID    `json:"batch_id,omitempty" doc:"The batch of the call; absent if it is in none."`
	Index           *int64            `json:"index,omitempty" doc:"Its position in the batch, from 0."`
	CustomID        string            `json:"custom_id,omitempty" doc:"The caller's own id for the call, if it has one."`
	ApprovalID      schema.ApprovalID `json:"approval_id,omitempty" doc:"The approval that the call required, if it was held."`
	Decision        risk.Decision     `json:"decision,omitempty" enum:"allowed,held,refused" doc:"What the policy decided. Absent if the call was refused before the policy was evaluated."`
	Rule            string            `json:"rule,omitempty" doc:"The rule of the policy that decided, if one did and its name was recorded."`
	ReplayOf        schema.CallID     `json:"replay_of,omitempty" doc:"The call that this one repeats with the same arguments."`
	TraceID         string            `json:"trace_id,omitempty" doc:"The trace that has the spans of the call: 32 hex digits. Absent if the call was not traced or not sampled."`
}

// ViewError is the reason why a call has no result.
type ViewError struct {
	Kind   schema.Kind `json:"kind" doc:"The kind of the error; the last segment of the type of its problem document."`
	Detail string      `json:"detail" doc:"The fault, in words. It never contains an argument."`
}

// Page is the response of GET /calls, newest call first. A page may be shorter than requested, or
// empty, and still have a next cursor.
type Page struct {
	Calls []View `json:"calls" doc:"The calls, newest first."`
	// Next is the cursor of the next page, or "" on the last page.
	Next string `json:"next,omitempty" doc:"The cursor of the next page; absent on the last page."`
}

// View returns the public form of the record.
func (r *Record) View() View {
	v := View{
		ID: cmp.Or(r.Known, r.ID), State: r.State, Server: r.Server, Tool: r.Tool, Method: cmp.Or(r.Method, schema.MethodCallTool), Principal: r.Principal, Owner: r.Owner, Tenant: r.Tenant,
		ToolError: r.ToolError, ArgumentsDigest: r.Arguments.String(), ArgumentBytes: r.ArgumentBytes,
		ResultDigest: r.Result.String(), ResultBytes: r.ResultBytes, Started: timeOf(r.Started), Ended: timeOf(r.Ended),
		TookMs: float64(r.Took/time.Microsecond) / 1000, Worker: r.Worker, FrontDoor: r.FrontDoor, Attempt: r.Attempt,
		Durable: r.Durable, Replayed: r.Replayed, CancelRequested: r.CancelRequested, BatchID: r.Batch, CustomID: r.CustomID, ApprovalID: r.Approval,
		Decision: r.Decision, Rule: r.Rule, ReplayOf: r.ReplayOf, TraceID: r.Trace.String(),
	}
	if at := timeOf(r.Admitted); at != nil {
		v.Created = *at
	}
	if r.Error != "" {
		v.Error = &ViewError{r.Error, r.Detail}
	}
	if r.Batch != "" {
		index := r.Index
		v.Index = &index
	}
	return v
}

func timeOf(ns int64) *time.Time {
	if ns == 0 {
		return nil
	}
	t := time.Unix(0, ns).UTC()
	return &t
}
