package batches

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// heldAtOnce is the maximum number of held calls that are listed or confirmed at once. A batch
// never has more.
const heldAtOnce = 1000

// HeldCalls are the calls of a batch that wait for an approval.
type HeldCalls struct {
	Calls []HeldCall `json:"calls" nullable:"false" doc:"The held calls, in the order of the batch."`
}

// HeldCall is a call of a batch that waits for an approval.
type HeldCall struct {
	Index           uint64            `json:"index" doc:"Its position in the batch, from 0."`
	CustomID        string            `json:"custom_id,omitempty" doc:"The caller's own id for the call, if it has one."`
	CallID          schema.CallID     `json:"call_id" doc:"The id of the call."`
	ApprovalID      schema.ApprovalID `json:"approval_id" doc:"The id of the approval."`
	Server          schema.ServerID   `json:"server" doc:"The id of the server."`
	Tool            string            `json:"tool" doc:"The name of the tool."`
	ArgumentsDigest string            `json:"arguments_digest" doc:"SHA-256 of the arguments that would run."`
	RiskLevel       int               `json:"risk_level" doc:"The risk level of the call: 1 is low, 3 is high."`
	Reasons         []string          `json:"reasons,omitempty" doc:"The reasons for which it is held."`
	By              string            `json:"by" enum:"caller,people" doc:"Who must approve: caller means you, with POST /confirmations."`
	ExpiresAt       time.Time         `json:"expires_at" doc:"When the approval expires."`
}

// ConfirmCalls is the body of POST /confirmations.
type ConfirmCalls struct {
	Confirm bool     `json:"confirm" doc:"true confirms the calls, which then run; false rejects them."`
	Calls   []string `json:"calls" minItems:"1" maxItems:"1000" doc:"The ids of the calls to confirm or reject. Other calls are not affected."`
}

// ConfirmedCalls is the answer to POST /confirmations.
type ConfirmedCalls struct {
	Accepted int           `json:"accepted" doc:"The number of calls to which the answer was applied."`
	Refused  []RefusedCall `json:"refused" nullable:"false" doc:"The calls to which the answer was not applied."`
}

// RefusedCall is a call whose approval or denial was not accepted.
type RefusedCall struct {
	CallID  schema.CallID     `json:"call_id" doc:"The id of the call."`
	Problem *problem.Document `json:"problem" doc:"The reason that the answer was not applied."`
}

// heldCalls serves GET /batches/{id}/held.
func (b *handlers) heldCalls(ctx context.Context, in *batchInput) (list HeldCalls, err error) {
	held, err := b.calls.ListHeld(ctx, in.ID, httpapi.Of(ctx).Principal, heldAtOnce)
	if err != nil {
		return list, err
	}
	list = HeldCalls{Calls: make([]HeldCall, 0, len(held))}
	for i := range held {
		h := &held[i]
		by := "people"
		if h.ByCaller {
			by = "caller"
		}
		list.Calls = append(list.Calls, HeldCall{
			Index: h.Index, CustomID: h.CustomID, CallID: h.CallID, ApprovalID: h.ApprovalID, Server: h.Server, Tool: h.Tool, ArgumentsDigest: h.ArgumentsDigest,
			RiskLevel: h.Level, Reasons: h.Reasons, By: by, ExpiresAt: h.Expires,
		})
	}
	return list, nil
}

// confirmCalls serves POST /confirmations: the caller's own approval or denial of calls of its
// batches.
func (b *handlers) confirmCalls(x *httpapi.Exchange, r *http.Request) (done ConfirmedCalls, err error) {
	members, err := x.ReadMembers(r, 256<<10, 4, "confirm", "calls")
	if err != nil {
		return done, err
	}
	var approve bool
	var ids []schema.CallID
	if err := cmp.Or(
		httpapi.ReadMember(members, "confirm", true, "true or false", &approve),
		httpapi.ReadMember(members, "calls", true, "an array of call ids", &ids),
	); err != nil {
		return done, err
	}
	if len(ids) == 0 || len(ids) > heldAtOnce {
		return done, schema.Errorf(schema.KindInvalidRequest, "The member calls must list 1 to %d calls.", heldAtOnce)
	}
	done = ConfirmedCalls{Refused: []RefusedCall{}}
	for _, id := range ids {
		switch err := b.calls.ConfirmHeld(r.Context(), id, approve, x.Principal); {
		case err == nil:
			done.Accepted++
		case r.Context().Err() != nil:
			return done, err // the client disconnected
		default:
			done.Refused = append(done.Refused, RefusedCall{CallID: id, Problem: b.problems.Of(err)})
		}
	}
	return done, nil
}

func opHeldCalls() huma.Operation {
	return openapi.With(openapi.Operation(http.MethodGet, "/batches/{id}/held", "get-batch-held", openapi.TagBatches, "List the held calls of a batch",
		fmt.Sprintf("The calls of the batch that wait for approval, in their order, at most the first %d. Those with by: caller wait for you: review them, then POST /confirmations.", heldAtOnce), http.StatusNotFound), batchParam())
}

func opConfirmCalls(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/confirmations", "confirm-calls", openapi.TagBatches, "Confirm or reject held calls of batches",
		"Confirms or rejects exactly the listed calls, each as it was held. Confirmed calls run, and their results are part of the results of their batch. Calls that people must approve are refused.")
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[ConfirmCalls]()), true, "The answer.", map[string]any{"confirm": true, "calls": []any{"call_06b2t8m3c0w3v2q5n7k9a1d4fz-b0-3t9kq0vx7w2e"}})
	return op
}
