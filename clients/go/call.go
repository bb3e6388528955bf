package callyard

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// oneWait is how long one request of [ClientWithResponses.Wait] waits, in seconds:
// shorter than what proxies bear.
const oneWait = 30

// HeldError says that a call is held until somebody approves it. It has not run. Once it
// is approved, [ClientWithResponses.Wait] returns its result.
type HeldError struct {
	// Request has the id of the call, why it is held, and until when. ConfirmationID is
	// the token with which the caller confirms, nil where somebody else must approve.
	Request ConfirmationRequest
}

// Error names the call, why it is held, and what has to be done.
func (e *HeldError) Error() string {
	r := &e.Request
	reasons := strings.Join(r.Reasons, "; ")
	if reasons == "" {
		reasons = r.RiskDescription
	}
	how := "somebody else must approve it"
	switch {
	case r.ConfirmationID != nil:
		how = "confirm it"
	case r.ApprovalURL != nil:
		how = "approve it at " + *r.ApprovalURL
	}
	return fmt.Sprintf("%s/%s is held and has not run: %s. Call %s: %s until %s", r.ServerID, r.ToolName, reasons, r.CallID, how, r.ExpiresAt.Format(time.RFC3339))
}

// CallError says that a stored call has ended without a result: failed, denied, expired,
// canceled, or unknown where nobody can tell whether it ran.
type CallError struct {
	Call Call
}

// Error names the call, its end and the reason.
func (e *CallError) Error() string {
	text := fmt.Sprintf("call %s of %s/%s ended as %s", e.Call.ID, e.Call.Server, e.Call.Tool, e.Call.State)
	if e.Call.Problem != nil {
		text += ": " + e.Call.Problem.Detail
	}
	return text
}

// Call calls a tool and returns its result. arguments is what encoding/json makes an
// object of; nil is an empty one. A tool that fails says so in its result: IsError is
// true. The error is a *[HeldError] where somebody must approve the call first, a
// *[CallError] where it was stored and ended without a result, and a *[ProblemError] for
// every refusal. Editors change the request; [WithIdempotencyKey] is one.
func (c *ClientWithResponses) Call(ctx context.Context, server, tool string, arguments any, editors ...RequestEditorFn) (*CallToolResult, error) {
	request := CallRequest{Server: server, Tool: tool}
	if arguments != nil {
		encoded, err := json.Marshal(arguments)
		if err != nil {
			return nil, fmt.Errorf("encoding the arguments of %s/%s: %w", server, tool, err)
		}
		request.Arguments = encoded
	}
	res, err := c.CreateCallWithResponse(ctx, nil, request, editors...)
	if err == nil {
		err = Check(res.HTTPResponse, res.Body)
	}
	if err != nil {
		return nil, err
	}
	answer := res.JSON200
	if answer == nil {
		answer = res.JSON202
	}
	if answer == nil {
		return nil, fmt.Errorf("%s/%s: the answer with status %d is unknown to this client", server, tool, res.StatusCode())
	}
	outcome, err := answer.ValueByDiscriminator()
	if err != nil {
		return nil, fmt.Errorf("decoding the answer to a call of %s/%s: %w", server, tool, err)
	}
	switch outcome := outcome.(type) {
	case ConfirmationRequest:
		return nil, &HeldError{Request: outcome}
	case AcceptedCall:
		return c.Wait(ctx, outcome.ID)
	}
	result := &CallToolResult{}
	if err := json.Unmarshal(res.Body, result); err != nil {
		return nil, fmt.Errorf("decoding the result of %s/%s: %w", server, tool, err)
	}
	return result, nil
}

// Wait waits until a stored or held call has ended, or ctx has, and returns its result. A
// held call ends when its approval expires. The error is a *[CallError] if the call ended
// without a result, and a *[ProblemError] for a refusal; when ctx ends, the call continues.
func (c *ClientWithResponses) Wait(ctx context.Context, id string) (*CallToolResult, error) {
	seconds := oneWait
	for {
		res, err := c.GetCallWithResponse(ctx, id, &GetCallParams{Wait: &seconds})
		if err == nil {
			err = Check(res.HTTPResponse, res.Body)
		}
		switch {
		case err != nil:
			return nil, err
		case res.JSON200 == nil:
			return nil, fmt.Errorf("call %s: the answer with status %d is unknown to this client", id, res.StatusCode())
		case res.JSON200.Result != nil:
			return res.JSON200.Result, nil
		}
		switch res.JSON200.State {
		case CallStateHeld, CallStateQueued, CallStateRunning:
		default:
			return nil, &CallError{Call: *res.JSON200}
		}
	}
}

// Text is the text of a result: its text blocks, one after the other on lines. It is
// empty for nil.
func Text(result *CallToolResult) string {
	if result == nil {
		return ""
	}
	var blocks []string
	for _, block := range result.Content {
		if block.Text != nil {
			blocks = append(blocks, *block.Text)
		}
	}
	return strings.Join(blocks, "\n")
}
