package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

func (a *API) registerDurable() {
	if !a.o.Calls.CanHold() {
		return
	}
	a.raw(a.opCancelCall(), "/calls/{id}/cancel", a.cancelCall)
	if a.o.Calls.CanStore() {
		a.raw(a.opSettle(), "/calls/{id}/settle", a.settleCall)
	}
}

// callState is GET /calls/{id}.
func (a *API) callState(x *exchange, r *http.Request) error {
	wait := time.Duration(number(x.query, "wait", 0)) * time.Second
	s, err := a.o.Calls.Wait(r.Context(), r.PathValue("id"), x.principal, wait)
	if err != nil {
		return err
	}
	return a.sendCall(x, r, s)
}

// sendCall answers with the status of a call.
func (a *API) sendCall(x *exchange, r *http.Request, s *calls.Status) error {
	body, err := a.callBody(r.Context(), s)
	if err == nil {
		x.send(http.StatusOK, a.fixed.json, body)
	}
	return err
}

// callBody returns the CallState of a call as JSON. The result stands in it byte for byte
// as the server sent it, so it is not encoded again.
func (a *API) callBody(ctx context.Context, s *calls.Status) ([]byte, error) {
	body, result, err := a.CallView(ctx, s)
	if err != nil || len(result) == 0 {
		return body, err
	}
	body = append(body[:len(body)-1], `,"result":`...)
	return append(append(body, result...), '}'), nil
}

// CallView returns the CallState of a call as JSON without its result, and the result.
func (a *API) CallView(ctx context.Context, s *calls.Status) (view, result []byte, err error) {
	c := &CallState{
		ID: s.ID, State: string(s.State), Server: s.Server, Tool: s.Tool, BatchID: s.Batch, CustomID: s.CustomID, ApprovalID: s.ApprovalID, Edited: s.Edited,
		Created: s.Created, ExpiresAt: s.Expires, Ended: s.Ended, Worker: s.Worker, Attempt: s.Attempt, ToolError: s.ToolError, GivenUp: s.GivenUp,
		Settled: s.Settled, Decisions: s.Decisions,
	}
	if s.State == schema.StateSuspended {
		c.State = string(schema.StateRunning) // over REST nobody can answer
	}
	if s.Batch != "" {
		c.Index = &s.Index
	}
	if s.Held != nil {
		c.Reasons = s.Held.Reasons
	}
	if s.Error != nil {
		p := a.problem(s.Error)
		c.Problem, c.CancelRequested = p.encode(), s.Error.CancelRequested
	}
	if view, err = json.Marshal(c); err != nil {
		return nil, nil, fmt.Errorf("encoding the state of a call: %w", err)
	}
	result, err = a.o.Calls.Body(ctx, s)
	return view, result, err
}

// BatchView returns what GET /batches/{id} shows.
func BatchView(m *batch.Manifest) []byte { return bytes.TrimSpace(encode(batchItem(m))) }

// cancelCall is POST /calls/{id}/cancel.
func (a *API) cancelCall(x *exchange, r *http.Request) error {
	s, err := a.o.Calls.Cancel(r.Context(), r.PathValue("id"), x.principal)
	if err != nil {
		return err
	}
	return a.sendCall(x, r, s)
}

// SettleRequest is the body of POST /calls/{id}/settle.
type SettleRequest struct {
	As     string `json:"as" enum:"done,failed,run-again" doc:"done: it has run. failed: it has not, and shall not. run-again: it shall run once more."`
	Reason string `json:"reason" doc:"Why; it is kept."`
}

// settleCall is POST /calls/{id}/settle: a person's word about a call whose outcome
// is unknown, or that was given up.
func (a *API) settleCall(x *exchange, r *http.Request) error {
	const most = 4 << 10
	body, err := a.readBody(x, r, most)
	if err != nil {
		return err
	}
	members, err := object(body, most, 4, "as", "reason")
	if err != nil {
		return err
	}
	var as, reason string
	if err := member(members, "as", true, "done, failed or run-again", &as); err != nil {
		return err
	}
	if err := member(members, "reason", true, "a sentence that says why", &reason); err != nil {
		return err
	}
	v := calls.Settlement{Reason: printable(reason, 1000)}
	switch as {
	case "done":
		v.As = schema.StateSucceeded
	case "failed":
		v.As = schema.StateFailed
	case "run-again":
		v.As = schema.StateQueued
	default:
		return schema.Errorf(schema.KindInvalidRequest, "The member as must be done, failed or run-again.")
	}
	s, err := a.o.Calls.Settle(r.Context(), r.PathValue("id"), x.principal, v)
	if err != nil {
		return err
	}
	return a.sendCall(x, r, s)
}

func (a *API) callStateAnswer(description string) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(reflect.TypeFor[CallState]())}}}
}

func callIDParam() *huma.Param {
	return pathParam("id", "The id of a call.", "call_06b2t8m3c0w3v2q5n7k9a1d4fz")
}

func (a *API) opCancelCall() huma.Operation {
	op := operation(http.MethodPost, "/calls/{id}/cancel", "cancel-call", tagCalls, "Cancel a call",
		"Takes back a call that is held or has not left: it ends as canceled and never runs. One that runs is asked to stop and ends as what it was, succeeded or failed, or as unknown with cancel_requested. One that has ended stays as it is.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{callIDParam()}
	op.Responses["200"] = a.callStateAnswer("The call.")
	return op
}

func (a *API) opSettle() huma.Operation {
	op := operation(http.MethodPost, "/calls/{id}/settle", "settle-call", tagCalls, "Settle a call whose outcome is unknown",
		"For a call that left and of which nobody can tell what became, or that was given up: say that it is done, that it failed, or that it shall run again.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{callIDParam()}
	op.RequestBody = jsonBody(a.schemaOf(reflect.TypeFor[SettleRequest]()), true, "The word.", map[string]any{"as": "done", "reason": "the invoice is in the books"})
	op.Responses["200"] = a.callStateAnswer("The call.")
	return op
}
