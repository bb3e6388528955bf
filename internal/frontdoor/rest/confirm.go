package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// ConfirmationRequest is the answer to a call that is held; the shape is that of
// MCP Bridge with ours added.
type ConfirmationRequest struct {
	Outcome              string    `json:"outcome" enum:"held" doc:"Always held: the call has not run."`
	RequiresConfirmation bool      `json:"requires_confirmation" doc:"Always true."`
	ConfirmationID       string    `json:"confirmation_id,omitempty" doc:"The single-use token; absent where somebody else must approve."`
	CallID               string    `json:"call_id"`
	ApprovalID           string    `json:"approval_id"`
	ApprovalURL          string    `json:"approval_url,omitempty" doc:"The page on which people decide."`
	RiskLevel            int       `json:"risk_level"`
	RiskDescription      string    `json:"risk_description"`
	Reasons              []string  `json:"reasons,omitempty"`
	ServerID             string    `json:"server_id"`
	Method               string    `json:"method"`
	ToolName             string    `json:"tool_name"`
	ExpiresAt            time.Time `json:"expires_at"`
}

// ConfirmRequest is the body of POST /confirmations/{id}.
type ConfirmRequest struct {
	Confirm bool `json:"confirm"`
}

// Rejected is the answer to a confirmation that was refused by the caller.
type Rejected struct {
	Status  string `json:"status" enum:"rejected"`
	Message string `json:"message"`
	CallID  string `json:"call_id"`
}

// CallState is what is known of a call that was held or stored.
type CallState struct {
	ID              string           `json:"id"`
	State           string           `json:"state" enum:"held,queued,running,succeeded,failed,denied,expired,canceled,unknown"`
	Server          string           `json:"server"`
	Tool            string           `json:"tool"`
	BatchID         string           `json:"batch_id,omitempty"`
	Index           *uint64          `json:"index,omitempty" doc:"Its place in the batch."`
	CustomID        string           `json:"custom_id,omitempty"`
	ApprovalID      string           `json:"approval_id,omitempty"`
	Reasons         []string         `json:"reasons,omitempty" doc:"Why it was held."`
	Edited          bool             `json:"edited,omitempty" doc:"An approver changed the arguments."`
	Created         time.Time        `json:"created"`
	ExpiresAt       time.Time        `json:"expires_at,omitzero" doc:"Until when it may be approved, or leave."`
	Ended           time.Time        `json:"ended,omitzero"`
	Worker          string           `json:"worker,omitempty"`
	Attempt         int              `json:"attempt,omitempty" doc:"How often it was tried."`
	ToolError       bool             `json:"tool_error,omitempty" doc:"The tool answered with its own error."`
	GivenUp         bool             `json:"given_up,omitempty" doc:"Every attempt failed; POST /calls/{id}/settle orders another."`
	CancelRequested bool             `json:"cancel_requested,omitempty" doc:"With state unknown: the call was asked to stop while it ran. A call that is canceled never ran."`
	Settled         string           `json:"settled,omitempty" doc:"Who settled a call whose outcome was unknown, and why."`
	Decisions       []calls.Decision `json:"decisions,omitempty"`
	Result          json.RawMessage  `json:"result,omitempty" doc:"The result of the tool, once it has answered."`
	Problem         json.RawMessage  `json:"problem,omitempty" doc:"Why it did not succeed."`
}

// maxLongPoll bounds GET /calls/{id}?wait=.
const maxLongPoll = 60 * time.Second

func (a *API) registerConfirmations() {
	if !a.o.Calls.CanHold() {
		return
	}
	a.raw(a.opConfirm(), "/confirmations/{id}", a.confirm)
	a.raw(a.opCallState(), "/calls/{id}", a.callState)
}

// confirmation is what a caller is told of a call that waits for an approval.
func (a *API) confirmation(h *calls.Held) ConfirmationRequest {
	body := ConfirmationRequest{
		Outcome: outcomeHeld, RequiresConfirmation: true, ConfirmationID: h.Token, CallID: h.CallID, ApprovalID: h.ApprovalID,
		RiskLevel: h.Level, RiskDescription: riskWords(h.Level), Reasons: h.Reasons,
		ServerID: h.Server, Method: schema.MethodCallTool, ToolName: h.Tool, ExpiresAt: h.Expires,
	}
	if a.o.ApproverURL != "" && h.Token == "" {
		body.ApprovalURL = a.o.ApproverURL + "/a/" + url.PathEscape(h.ApprovalID)
	}
	return body
}

// held answers a call that waits for an approval.
func (a *API) held(x *exchange, h *calls.Held) {
	x.set("Location", "/calls/"+h.CallID)
	x.set("Callyard-Call-Id", h.CallID)
	a.json(x, http.StatusAccepted, a.confirmation(h))
}

func (a *API) json(x *exchange, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		a.fail(x, schema.Errorf(schema.KindInternal, "The answer cannot be written: %w", err))
		return
	}
	x.send(status, a.fixed.json, body)
}

// confirm is POST /confirmations/{id}: the caller's own yes or no.
func (a *API) confirm(x *exchange, r *http.Request) error {
	const most = 1 << 10
	body, err := a.readBody(x, r, most)
	if err != nil {
		return err
	}
	members, err := object(body, most, 4, "confirm")
	if err != nil {
		return err
	}
	var yes bool
	if err := member(members, "confirm", true, "true or false", &yes); err != nil {
		return err
	}
	// A retry that carries the same key is the same attempt and gets the same
	// answer; without one every request is an attempt of its own.
	attempt := x.id
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if key != "" {
		attempt = x.principal.Name + "\x00" + key
	}
	ctx := r.Context()
	if x.span != nil {
		ctx = x.span.Carry(ctx)
	}
	done, err := a.o.Calls.Confirm(ctx, calls.Confirmation{Token: r.PathValue("id"), Confirm: yes, Principal: x.principal, Attempt: attempt, Replay: key != ""})
	if done.CallID != "" {
		x.set("Callyard-Call-Id", done.CallID)
		x.confirmed(&done, err)
	}
	if done.Replayed {
		x.set("Idempotency-Replayed", "true")
	}
	switch {
	case err != nil:
		return err
	case done.Denied:
		a.json(x, http.StatusOK, Rejected{Status: "rejected", Message: "The call was rejected and will not run.", CallID: done.CallID})
	default:
		a.answer(x, done.Result)
	}
	return nil
}

func (a *API) opConfirm() huma.Operation {
	op := operation(http.MethodPost, "/confirmations/{id}", "confirm-call", tagCalls, "Confirm or reject a held call",
		"Spends the single-use token of a confirmation request. With confirm true the call runs once and its result is the answer.",
		append([]int{http.StatusForbidden, http.StatusGone}, callStatuses()...)...)
	op.Parameters = append(op.Parameters, pathParam("id", "The confirmation_id of the confirmation request.", "cyt_2Jb0Z5nJk3m8q1r7s9t0u2v4w6x8y0z1a3b5c7d9e1f"))
	op.Parameters = append(op.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Description: "A retry with the same key is the same attempt and gets the same answer.", Schema: idempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"})
	op.RequestBody = jsonBody(a.schemaOf(reflect.TypeFor[ConfirmRequest]()), true, "The answer.", map[string]any{"confirm": true})
	op.Responses["200"] = answered(schemaResult, "The result of the tool; or, for confirm false, that the call was rejected.", exampleResult())
	delete(op.Responses["200"].Content, "text/event-stream")
	op.Responses["200"].Content["application/json"].Schema = &huma.Schema{AnyOf: []*huma.Schema{a.schemaOf(reflect.TypeFor[Rejected]()), ref(schemaResult)}}
	return op
}

func (a *API) opCallState() huma.Operation {
	op := operation(http.MethodGet, "/calls/{id}", "get-call", tagCalls, "What came of a call",
		"State and, once it has run, result, of a call that was held or stored, or is part of a batch. wait makes the answer come when the call has ended, or when that many seconds are over.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusServiceUnavailable)
	op.Parameters = append(op.Parameters, pathParam("id", "The call_id of the confirmation request.", "call_06b2t8m3c0w3v2q5n7k9a1d4fz"),
		queryParam("wait", "Seconds to wait for the end, at most 60.", integers(0, maxLongPoll.Seconds())))
	op.Responses["200"] = &huma.Response{Description: "The call.", Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(reflect.TypeFor[CallState]())}}}
	return op
}

// schemaOf registers the type and returns the reference to it.
func (a *API) schemaOf(t reflect.Type) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(t, true, "")
}

// riskWords says a level as MCP Bridge does.
func riskWords(level int) string {
	_, words, _ := risk(level, nil)
	return words
}
