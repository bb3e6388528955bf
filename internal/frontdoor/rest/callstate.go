package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/pkg/schema"
)

func (a *API) registerDurable() {
	if a.o.Desk == nil {
		return
	}
	a.raw(a.opCancelCall(), "/calls/{id}/cancel", a.cancelCall)
	if a.o.Batches != nil {
		a.raw(a.opSettle(), "/calls/{id}/settle", a.settleCall)
	}
}

// callBody returns the CallState of a call of the principal's as JSON, once it has
// ended or wait is over.
func (a *API) callBody(ctx context.Context, id string, who schema.Principal, wait time.Duration) ([]byte, error) {
	if _, _, ok := batch.ParseCallID(id); !ok || a.o.Batches == nil {
		p, err := a.awaitEnd(ctx, id, who, wait)
		if schema.KindOf(err) == schema.KindNotFound && a.o.LostApproval != nil && a.o.LostApproval(id) {
			err = a.neverHeld(ctx, id, who)
		}
		if schema.KindOf(err) == schema.KindNotFound && a.o.Records != nil {
			return a.recordOf(ctx, id, who, err)
		}
		if err != nil {
			return nil, err
		}
		return a.stateOf(ctx, p)
	}
	s, err := a.answeredStatus(ctx, id, who, wait)
	if err != nil {
		return nil, err
	}
	return a.durableState(ctx, s)
}

// askedEvery is how often a call is looked at whose server waits for an answer, which
// comes over MCP.
const askedEvery = 500 * time.Millisecond

// answeredStatus is the status of a durable call once it has ended or wait is over. That
// its server waits for an answer is no end.
func (a *API) answeredStatus(ctx context.Context, id string, who schema.Principal, wait time.Duration) (*batch.Status, error) {
	until := time.Now().Add(wait)
	for {
		s, err := a.o.Batches.Status(ctx, id, who, max(time.Until(until), 0))
		if err != nil || s.State != batch.StateInputRequired || time.Until(until) <= 0 {
			return s, err
		}
		again := time.NewTimer(min(askedEvery, time.Until(until)))
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return s, nil
		}
	}
}

// neverHeld returns KindNotFound for a call that the execution log proves was not held,
// and that its record was lost for all others: it is for calls from before a loss of
// approvals.
func (a *API) neverHeld(ctx context.Context, id string, who schema.Principal) error {
	if a.o.Records != nil {
		rec, err := a.o.Records.Get(ctx, id)
		if err == nil && (rec.Principal != who.Name || rec.State != record.Held && rec.Approval == "") {
			return schema.Errorf(schema.KindNotFound, "There is no call %q that was held or stored and is yours.", id)
		}
		if err != nil && schema.KindOf(err) != schema.KindNotFound {
			return err
		}
	}
	return journal.LostCall(id)
}

// recordOf returns what the execution log has of a call that nothing else knows, or
// the error none.
func (a *API) recordOf(ctx context.Context, id string, who schema.Principal, none error) ([]byte, error) {
	rec, err := a.o.Records.Get(ctx, id)
	switch {
	case schema.KindOf(err) == schema.KindNotFound, err == nil && rec.Principal != who.Name:
		return nil, none
	case err != nil:
		return nil, err
	}
	c := &CallState{
		ID: rec.ID, State: string(rec.State), Server: rec.Server, Tool: rec.Tool, ApprovalID: rec.Approval, Created: time.Unix(0, rec.Admitted).UTC(), Worker: rec.Worker,
		Attempt: rec.Attempt, ToolError: rec.ToolError,
	}
	if rec.Ended != 0 {
		c.Ended = time.Unix(0, rec.Ended).UTC()
	}
	if rec.Error != "" {
		c.CancelRequested = rec.CancelRequested
		c.Problem = a.problem(&schema.Error{Kind: rec.Error, Detail: rec.Detail, CallID: rec.ID, CancelRequested: rec.CancelRequested}).encode()
	}
	return json.Marshal(c)
}

// CallView returns what GET /calls/{id} shows of a durable call that ended, without
// its result, and the result beside it.
func (a *API) CallView(ctx context.Context, e batch.End) (view, result []byte, err error) {
	s := &batch.Status{CallID: e.CallID, State: batch.StateOf(e.Result.Outcome), Call: e.Call, Result: e.Result, Principal: e.Principal}
	if view, err = a.stateHead(s); err != nil || e.Result.Outcome != journal.Succeeded || len(e.Result.Error) > 0 {
		return view, nil, err
	}
	result, err = a.o.Batches.ResultBody(ctx, e.Journal, e.Result)
	return view, result, err
}

// BatchView returns what GET /batches/{id} shows.
func BatchView(m *journal.Manifest) []byte { return bytes.TrimSpace(encode(batchItem(m))) }

// stateHead returns the CallState of a durable call as JSON, without its result.
func (a *API) stateHead(s *batch.Status) ([]byte, error) {
	c := &CallState{ID: s.CallID, State: s.State, BatchID: s.Batch}
	if s.Batch != "" {
		c.Index = &s.Index
	}
	if rec := s.Call; rec != nil {
		c.Server, c.Tool, c.CustomID, c.Created, c.ExpiresAt = rec.Server, rec.Tool, rec.CustomID, rec.Accepted, rec.Expires
	}
	if s.State == batch.StateInputRequired {
		c.State = "running" // over REST nobody can answer
	}
	if s.State == "held" {
		c.ApprovalID = ledger.IDFor(s.CallID)
	}
	rec := s.Result
	if rec == nil {
		return json.Marshal(c)
	}
	c.Ended, c.Worker, c.Attempt, c.ToolError, c.GivenUp = rec.Ended, rec.Worker, rec.Attempt, rec.ToolError, rec.Outcome == journal.Dead
	if rec.By != "" {
		c.Settled = rec.By + ": " + rec.Reason
	}
	if len(rec.Error) > 0 {
		p := a.problem(recordError(s.CallID, rec))
		c.Problem, c.CancelRequested = p.encode(), p.CancelRequested
	}
	return json.Marshal(c)
}

// durableState returns the CallState of a durable call as JSON; the result stands
// in it as the bytes that the server sent.
func (a *API) durableState(ctx context.Context, s *batch.Status) ([]byte, error) {
	body, err := a.stateHead(s)
	rec := s.Result
	if err != nil || rec == nil || rec.Outcome != journal.Succeeded || len(rec.Error) > 0 {
		return body, err
	}
	journalID, _, _ := batch.ParseCallID(s.CallID)
	result, err := a.o.Batches.ResultBody(ctx, journalID, rec)
	if err != nil {
		return nil, err
	}
	if len(result) == 0 { // a person said that it is done
		return body, nil
	}
	body = append(body[:len(body)-1], `,"result":`...)
	return append(append(body, result...), '}'), nil
}

// cancelCall is POST /calls/{id}/cancel.
func (a *API) cancelCall(x *exchange, r *http.Request) error {
	id := r.PathValue("id")
	if _, _, ok := batch.ParseCallID(id); ok && a.o.Batches != nil {
		s, err := a.o.Batches.CancelCall(r.Context(), id, x.principal)
		if err != nil {
			return err
		}
		body, err := a.durableState(r.Context(), s)
		if err == nil {
			x.send(http.StatusOK, a.fixed.json, body)
		}
		return err
	}
	p, err := a.o.Desk.Cancel(r.Context(), id, x.principal)
	if err != nil {
		return err
	}
	body, err := a.stateOf(r.Context(), p)
	if err == nil {
		x.send(http.StatusOK, a.fixed.json, body)
	}
	return err
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
	v := batch.Verdict{Reason: printable(reason, 1000)}
	switch as {
	case "done":
		v.Outcome = journal.Succeeded
	case "failed":
		v.Outcome = journal.Failed
	case "run-again":
		v.Again = true
	default:
		return schema.Errorf(schema.KindInvalidRequest, "The member as must be done, failed or run-again.")
	}
	s, err := a.o.Batches.Settle(r.Context(), r.PathValue("id"), x.principal, v)
	if err != nil {
		return err
	}
	state, err := a.durableState(r.Context(), s)
	if err == nil {
		x.send(http.StatusOK, a.fixed.json, state)
	}
	return err
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
