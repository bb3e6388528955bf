package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// Runner submits calls for every operation that creates one, and answers with the outcome: the
// result, an event stream, a confirmation request, or the state of the call. It is safe for
// concurrent use.
type Runner struct {
	calls       *calls.Calls
	limits      calls.Limits
	problems    *httpapi.Problems
	log         *slog.Logger
	heartbeat   time.Duration
	approverURL string
}

// Options are the dependencies and settings of a runner. Calls, Problems and Log are required.
type Options struct {
	Calls    *calls.Calls
	Problems *httpapi.Problems
	Log      *slog.Logger
	// Heartbeat is the interval at which a comment is sent on an idle event stream.
	Heartbeat time.Duration
	// ApproverURL is the URL of the approver's pages, or "" if there are none.
	ApproverURL string
}

// New returns a runner, and adds the schemas of its answers to the document.
func New(d *httpapi.Document, o Options) *Runner {
	describe(d)
	return &Runner{calls: o.Calls, limits: o.Calls.Limits(), problems: o.Problems, log: o.Log, heartbeat: o.Heartbeat, approverURL: o.ApproverURL}
}

// Run submits the call and answers with its outcome. It answers with an event stream if the caller
// requested one and does not want the call stored.
func (u *Runner) Run(x *httpapi.Exchange, r *http.Request, call *schema.Call, w DurableOptions) error {
	req := calls.Request{Call: call, Durable: w.preference.durable(), Key: w.Key, Fingerprint: w.Fingerprint, CallbackURL: w.Callback, Async: w.AtOnce()}
	note(x, call)
	ctx := x.Span.Carry(r.Context())
	if !w.durable() && WantsEvents(r.Header["Accept"]) {
		return u.stream(ctx, x, req)
	}
	out, err := u.calls.Submit(ctx, req)
	noteOutcome(x, &out, err)
	switch {
	case err != nil:
		return err
	case out.Held != nil:
		u.held(x, out.Held)
		return nil
	case out.Accepted != nil:
		return u.acceptedOr(ctx, x, r, out.Accepted, w)
	}
	x.Set("Callyard-Call-Id", string(call.ID))
	SendResult(x, out.Result, w.TellOutcome)
	return nil
}

// acceptedOr answers a call that was stored: with its outcome, or with its status if the caller
// does not wait that long.
func (u *Runner) acceptedOr(ctx context.Context, x *httpapi.Exchange, r *http.Request, c *calls.Accepted, w DurableOptions) error {
	x.Set("Callyard-Call-Id", string(c.CallID))
	if c.Replayed {
		x.Set("Idempotency-Replayed", "true")
	}
	if w.preference.durable() {
		x.Set("Preference-Applied", w.Applied())
	}
	if w.AtOnce() {
		return u.accepted(x, r, c.CallID)
	}
	var s *calls.Status
	var err error
	if c.Replayed {
		s, err = u.calls.Wait(ctx, c.CallID, x.Principal, min(w.wait, MaxWait))
	} else {
		if w.waits {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, min(w.wait, MaxWait))
			defer cancel()
		}
		s, err = u.calls.Await(ctx, c, x.Principal)
	}
	switch {
	case r.Context().Err() != nil && (err != nil || !s.State.Ended()):
		return schema.Errorf(schema.KindCanceled, "The caller disconnected; the call continues, and GET /calls/%s returns its outcome.", c.CallID).WithCall(c.CallID)
	case errors.Is(err, context.DeadlineExceeded):
		return u.accepted(x, r, c.CallID)
	case err != nil:
		return schema.AsError(err).WithCall(c.CallID)
	case !s.State.Ended() && w.preference.durable():
		return u.accepted(x, r, c.CallID)
	}
	res, err := u.calls.Result(r.Context(), s)
	if err != nil {
		return err
	}
	SendResult(x, res, w.TellOutcome)
	return nil
}

// MaxWait is the maximum of Prefer: wait. Intermediaries close connections that wait longer.
const MaxWait = 10 * time.Minute

// accepted answers that the call is stored and continues without the caller.
func (u *Runner) accepted(x *httpapi.Exchange, r *http.Request, id schema.CallID) error {
	s, err := u.calls.Get(r.Context(), id, x.Principal)
	if err != nil {
		return err
	}
	body, err := u.Body(r.Context(), s)
	if err != nil {
		return err
	}
	x.Set("Location", "/calls/"+string(id))
	x.SendJSON(http.StatusAccepted, withOutcome(body, OutcomeAccepted))
	return nil
}

// Confirmation returns the description of a call that waits for an approval.
func (u *Runner) Confirmation(h *calls.Held) ConfirmationRequest {
	_, riskWords, _ := httpapi.Risk(h.Level, nil)
	body := ConfirmationRequest{
		Outcome: OutcomeHeld, RequiresConfirmation: true, ConfirmationID: h.Token, CallID: h.CallID, ApprovalID: h.ApprovalID,
		RiskLevel: h.Level, RiskDescription: riskWords, Reasons: h.Reasons,
		ServerID: h.Server, Method: schema.MethodCallTool, ToolName: h.Tool, ExpiresAt: h.Expires,
	}
	if u.approverURL != "" && h.Token == "" {
		body.ApprovalURL = u.approverURL + "/a/" + url.PathEscape(string(h.ApprovalID))
	}
	return body
}

// held answers a call that waits for an approval.
func (u *Runner) held(x *httpapi.Exchange, h *calls.Held) {
	x.Set("Location", "/calls/"+string(h.CallID))
	x.Set("Callyard-Call-Id", string(h.CallID))
	if h.Replayed {
		x.Set("Idempotency-Replayed", "true")
	}
	x.SendJSON(http.StatusAccepted, httpapi.Encode(u.Confirmation(h)))
}

// Body returns the CallState of a call as JSON. The server's result is included byte for byte, so
// it is not encoded again.
func (u *Runner) Body(ctx context.Context, s *calls.Status) ([]byte, error) {
	body, result, err := u.View(ctx, s)
	if err != nil || len(result) == 0 {
		return body, err
	}
	return rawjson.With(body, "result", result), nil
}

// View returns the CallState of a call as JSON without its result, and the result.
func (u *Runner) View(ctx context.Context, s *calls.Status) (view, result []byte, err error) {
	c := &CallState{
		ID: s.ID, State: string(s.State), Server: s.Server, Tool: s.Tool, BatchID: s.Batch, CustomID: s.CustomID, ApprovalID: s.ApprovalID, Edited: s.Edited,
		Created: s.Created, ExpiresAt: s.Expires, Ended: s.Ended, Worker: s.Worker, Attempt: s.Attempt, ToolError: s.ToolError, GivenUp: s.GivenUp,
		Settled: s.Settled, Decisions: s.Decisions, ReplayOf: s.ReplayOf, TraceID: calls.TraceID(ctx, u.calls, s),
	}
	if s.State == schema.StateSuspended {
		c.State = string(schema.StateRunning) // a REST client cannot answer input requests
	}
	if s.Batch != "" {
		c.Index = &s.Index
	}
	if s.Held != nil {
		c.Reasons = s.Held.Reasons
	}
	if s.Error != nil {
		p := u.problems.Of(s.Error)
		c.Problem, c.CancelRequested = p.Encode(), s.Error.CancelRequested
	}
	if view, err = json.Marshal(c); err != nil {
		return nil, nil, fmt.Errorf("encoding the state of a call: %w", err)
	}
	result, err = u.calls.Body(ctx, s)
	return view, result, err
}
