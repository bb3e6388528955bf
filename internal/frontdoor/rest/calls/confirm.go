package calls

import (
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/schema"
)

// ConfirmRequest is the body of POST /confirmations/{id}.
type ConfirmRequest struct {
	Confirm bool `json:"confirm" doc:"true confirms the call, which then runs; false rejects it."`
}

// Rejected is the answer to a confirmation with which the caller rejected the call.
type Rejected struct {
	Status  string        `json:"status" enum:"rejected" doc:"Always rejected."`
	Message string        `json:"message" doc:"The outcome, in words."`
	CallID  schema.CallID `json:"call_id" doc:"The id of the call."`
}

// maxLongPoll is the maximum of GET /calls/{id}?wait=.
const maxLongPoll = 60 * time.Second

// confirm serves POST /confirmations/{id}: the caller's own approval or denial.
func (c *handlers) confirm(x *httpapi.Exchange, r *http.Request) error {
	members, err := x.ReadMembers(r, 1<<10, 4, "confirm")
	if err != nil {
		return err
	}
	var approve bool
	if err := httpapi.ReadMember(members, "confirm", true, "true or false", &approve); err != nil {
		return err
	}
	// A retry with the same key is the same attempt and gets the same answer. Without a key,
	// every request is a separate attempt.
	attempt := x.ID
	key, err := httpapi.IdempotencyKey(r)
	if err != nil {
		return err
	}
	if key != "" {
		attempt = x.Principal.Name + "\x00" + key
	}
	done, err := c.calls.Confirm(x.Span.Carry(r.Context()), calls.Confirmation{Token: r.PathValue("id"), Confirm: approve, Principal: x.Principal, Attempt: attempt, Replay: key != ""})
	if done.CallID != "" {
		x.Set("Callyard-Call-Id", string(done.CallID))
		confirmed(x, &done, err)
	}
	if done.Replayed {
		x.Set("Idempotency-Replayed", "true")
	}
	switch {
	case err != nil:
		return err
	case done.Denied:
		x.SendJSON(http.StatusOK, httpapi.Encode(Rejected{Status: "rejected", Message: "The call was rejected and will not run.", CallID: done.CallID}))
	default:
		submit.SendResult(x, done.Result, false)
	}
	return nil
}

func opConfirm(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/confirmations/{id}", "confirm-call", openapi.TagCalls, "Confirm or reject a held call",
		"Uses up the single-use token of a confirmation request. With confirm true the call runs once, and the answer is its result.",
		append(submit.CallStatuses(), http.StatusGone)...)
	op.Parameters = append(op.Parameters, openapi.PathParam("id", "The confirmation_id of the confirmation request.", "cyt_2Jb0Z5nJk3m8q1r7s9t0u2v4w6x8y0z1a3b5c7d9e1f"))
	op.Parameters = append(op.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Description: "A retry with the same key runs nothing again and returns the same answer.", Schema: httpapi.IdempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"})
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[ConfirmRequest]()), true, "The answer.", map[string]any{"confirm": true})
	op.Responses["200"] = submit.Answered(submit.SchemaResult, "The result of the tool or, for confirm false, the rejection.", exampleResult())
	submit.MayReplay(op.Responses["200"])
	delete(op.Responses["200"].Content, "text/event-stream")
	op.Responses["200"].Content["application/json"].Schema = &huma.Schema{AnyOf: []*huma.Schema{d.SchemaOf(reflect.TypeFor[Rejected]()), openapi.Ref(submit.SchemaResult)}}
	return op
}

func opCallState(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodGet, "/calls/{id}", "get-call", openapi.TagCalls, "Get a call",
		"The state and, once it has run, the result of a held, durable or batch call. With wait the answer is sent when the call has ended, or after that number of seconds.",
		http.StatusNotFound)
	op.Parameters = append(op.Parameters, openapi.PathParam("id", "The id of a call, such as the call_id of a confirmation request.", "call_06b2t8m3c0w3v2q5n7k9a1d4fz"),
		openapi.QueryParam("wait", "The number of seconds to wait for the call to end, at most 60. Without it, or with 0, the answer is sent at once.", openapi.Integers(0, maxLongPoll.Seconds())),
		&huma.Param{Name: "include", In: "query", Description: "With the value arguments, the answer also has the arguments of the call, if they are stored.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"arguments"}}, Example: "arguments"})
	op.Responses["200"] = callStateAnswer(d)
	return op
}

// confirmed records the call that a confirmation ran, and its outcome.
func confirmed(x *httpapi.Exchange, c *calls.Confirmed, err error) {
	if c.Denied || c.Replayed {
		return
	}
	x.Span.Text(telemetry.KeyCall, string(c.CallID))
	x.Span.Text(telemetry.KeyApproval, string(c.ApprovalID))
	x.Span.Outcome(c.Result, err)
}
