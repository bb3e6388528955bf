package submit

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// Names of the schemas of answers to a call.
const (
	schemaCompleted = "CompletedCall"
	schemaHeld      = "ConfirmationRequest"
	schemaAccepted  = "AcceptedCall"
	SchemaAnswer    = "CallAnswer"
)

// ConfirmationRequest is the answer to a call that is held. The JSON is that of MCP Bridge with
// additional members.
type ConfirmationRequest struct {
	Outcome              string            `json:"outcome" enum:"held" doc:"Always held: the call has not run."`
	RequiresConfirmation bool              `json:"requires_confirmation" doc:"Always true."`
	ConfirmationID       string            `json:"confirmation_id,omitempty" doc:"The single-use token; absent if somebody else must approve."`
	CallID               schema.CallID     `json:"call_id" doc:"The id of the call; GET /calls/{id} returns its state and then its result."`
	ApprovalID           schema.ApprovalID `json:"approval_id" doc:"The id of the approval, for approvers."`
	ApprovalURL          string            `json:"approval_url,omitempty" doc:"The page on which approvers decide; absent if the front door does not know the address of the approver."`
	RiskLevel            int               `json:"risk_level" doc:"The risk level of the call: 1 is low, 3 is high."`
	RiskDescription      string            `json:"risk_description" doc:"The risk level in words."`
	Reasons              []string          `json:"reasons,omitempty" doc:"The reasons for which it is held."`
	ServerID             schema.ServerID   `json:"server_id" doc:"The id of the server."`
	Method               string            `json:"method" doc:"The MCP method of the request; tools/call for a tool call."`
	ToolName             string            `json:"tool_name" doc:"The name of the tool."`
	ExpiresAt            time.Time         `json:"expires_at" doc:"When the approval expires. The call then ends as expired and never runs."`
}

// CallState is the state of a call that was held or stored.
type CallState struct {
	ID              schema.CallID     `json:"id" doc:"The id of the call."`
	State           string            `json:"state" enum:"held,queued,running,succeeded,failed,denied,expired,canceled,unknown" doc:"The state of the call."`
	Server          schema.ServerID   `json:"server" doc:"The id of the server."`
	Tool            string            `json:"tool" doc:"The name of the tool."`
	BatchID         schema.BatchID    `json:"batch_id,omitempty" doc:"The batch of the call; absent if it is in none."`
	Index           *uint64           `json:"index,omitempty" doc:"Its position in the batch, from 0; absent if it is in none."`
	CustomID        string            `json:"custom_id,omitempty" doc:"The caller's own id for the call, if it has one."`
	ApprovalID      schema.ApprovalID `json:"approval_id,omitempty" doc:"The approval that the call requires or required; absent if it was never held."`
	Reasons         []string          `json:"reasons,omitempty" doc:"The reasons for which it was held."`
	Edited          bool              `json:"edited,omitempty" doc:"Whether an approver edited the arguments."`
	Created         time.Time         `json:"created" doc:"When the call was admitted."`
	ExpiresAt       time.Time         `json:"expires_at,omitzero" doc:"The time until which it can be approved or sent; absent if there is no limit."`
	Ended           time.Time         `json:"ended,omitzero" doc:"When the call ended; absent until then."`
	Worker          schema.WorkerID   `json:"worker,omitempty" doc:"The worker of the last attempt; absent if the call was sent to none."`
	Attempt         int               `json:"attempt,omitempty" doc:"The number of attempts; absent before the first."`
	ToolError       bool              `json:"tool_error,omitempty" doc:"Whether the tool's result is an error."`
	GivenUp         bool              `json:"given_up,omitempty" doc:"Whether every attempt failed; POST /calls/{id}/settle can start another."`
	CancelRequested bool              `json:"cancel_requested,omitempty" doc:"With state unknown: the call was asked to stop while it ran. A call in state canceled never ran."`
	Settled         string            `json:"settled,omitempty" doc:"The person who settled a call with unknown outcome, and the reason; absent if nobody did."`
	Decisions       []calls.Decision  `json:"decisions,omitempty" doc:"The decisions of people on the call, oldest first."`
	ReplayOf        schema.CallID     `json:"replay_of,omitempty" doc:"The call that this one repeats with the same arguments; absent if it repeats none."`
	TraceID         string            `json:"trace_id,omitempty" doc:"The trace that has the spans of the call: 32 hex digits. Absent if the call was not traced or not sampled. For a call of a batch, GET /calls has it."`
	Arguments       json.RawMessage   `json:"arguments,omitempty" doc:"The arguments as the caller sent them, if the request asks for them and they are stored."`
	Result          json.RawMessage   `json:"result,omitempty" doc:"The result of the tool; absent until the call has succeeded."`
	Problem         json.RawMessage   `json:"problem,omitempty" doc:"The reason that it did not succeed; absent if it succeeded or has not ended."`
}

// finishAnswers adds the schemas of answers to a call to the document. Their discriminator lets
// generated clients determine the type of an answer.
func finishAnswers(all map[string]*huma.Schema) {
	if all[schemaHeld] == nil {
		return
	}
	add := func(name, of, outcome, description string) {
		s := *all[of]
		s.Properties = maps.Clone(s.Properties)
		s.Properties[MemberOutcome] = openapi.Described(openapi.Words(outcome), "Always "+outcome+"; other answers to a call have a different value.")
		s.Required = append(slices.Clone(s.Required), MemberOutcome)
		s.Description = description
		all[name] = &s
	}
	add(schemaCompleted, SchemaResult, OutcomeCompleted, "The result of the tool, exactly as the MCP server sent it, followed by outcome. A tool that failed has isError true.")
	add(schemaAccepted, schemaCall, OutcomeAccepted, "A call that is stored and continues without its caller; GET /calls/{id} returns its state.")
	all[SchemaAnswer] = OneOfAnswers("The answer to a call. Check outcome first: with held and accepted the tool has not answered, and with held it has not run.",
		OutcomeCompleted, OutcomeHeld, OutcomeAccepted)
}

// OneOfAnswers returns the schema of an answer with one of these outcomes, by which they differ.
func OneOfAnswers(description string, outcomes ...string) *huma.Schema {
	names := map[string]string{OutcomeCompleted: schemaCompleted, OutcomeHeld: schemaHeld, OutcomeAccepted: schemaAccepted}
	s := &huma.Schema{Description: description, Discriminator: &huma.Discriminator{PropertyName: MemberOutcome, Mapping: make(map[string]string)}}
	for _, outcome := range outcomes {
		s.OneOf = append(s.OneOf, openapi.Ref(names[outcome]))
		s.Discriminator.Mapping[outcome] = openapi.Ref(names[outcome]).Ref
	}
	return s
}

// CallStateWords returns the schema of the state of a call.
func CallStateWords() *huma.Schema {
	return openapi.Words("held", "queued", "running", "succeeded", "failed", "denied", "expired", "canceled", "unknown")
}

// describe names the schemas of calls in the document, and adds what their Go types cannot
// express.
func describe(d *httpapi.Document) {
	d.NameSchema(reflect.TypeFor[CallState](), schemaCall)
	addResult(d)
	d.AtLast(func(all map[string]*huma.Schema) {
		all[schemaCallState] = openapi.Described(CallStateWords(), "The state of a call. held: it waits for an approval. queued: no attempt was sent yet. running: it was admitted or sent, or waits for input. succeeded: the tool returned a result, which can be an error of the tool. failed: it was refused, or ended without a result. "+
			"denied, expired, canceled: it never ran. unknown: it was sent, and its outcome cannot be determined. The last six states are final, except that a late answer or POST /calls/{id}/settle can change unknown, and settle also failed if given_up is true.")
		DescribeCall(all, schemaCall)
		finishAnswers(all)
	})
}

// DescribeCall describes the state, the result and the problem of a call in the schema with this
// name.
func DescribeCall(all map[string]*huma.Schema, name string) {
	openapi.DescribeMember(all, name, "state", openapi.Ref(schemaCallState))
	openapi.DescribeMember(all, name, "result", openapi.Ref(SchemaResult))
	if name == schemaCall {
		openapi.DescribeMember(all, name, "arguments", openapi.Object("The arguments as the caller sent them, if the request asks for them and they are stored."))
	}
	openapi.DescribeMember(all, name, "problem", openapi.Ref(openapi.SchemaProblem))
}
