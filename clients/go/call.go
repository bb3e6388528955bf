package callyard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// oneWait is the wait parameter of one request of [ClientWithResponses.Wait], in seconds.
// It is shorter than the timeouts of common proxies.
const oneWait = 30

// HeldError reports that a call is held for approval. The call has not run. Once it is
// approved, [ClientWithResponses.Wait] returns its result.
type HeldError struct {
	// Request holds the call's ID, the reasons for holding it, and the deadline of the
	// approval. ConfirmationID is the token with which the caller confirms the call. It is
	// nil if an approver must decide.
	Request ConfirmationRequest
}

// Error returns the call, the reasons for holding it, and the action that releases it.
func (e *HeldError) Error() string {
	r := &e.Request
	reasons := sentencesJoined(r.Reasons)
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

// sentencesJoined joins sentences to a part of one sentence.
func sentencesJoined(sentences []string) string {
	parts := make([]string, len(sentences))
	for i, sentence := range sentences {
		parts[i] = strings.TrimSuffix(sentence, ".")
	}
	return strings.Join(parts, "; ")
}

// CallError reports that a stored call ended without a result. Its state is failed, denied,
// expired or canceled, or unknown if it cannot be determined whether the tool ran.
type CallError struct {
	Call Call
}

// Error returns the call, its final state and the reason, if there is one.
func (e *CallError) Error() string {
	text := fmt.Sprintf("call %s of %s/%s ended as %s", e.Call.ID, e.Call.Server, e.Call.Tool, e.Call.State)
	if d := e.denial(); d != nil {
		text += " by " + d.By
		if d.Reason != nil && *d.Reason != "" {
			text += ": " + *d.Reason
		}
	} else if e.Call.Problem != nil {
		text += ": " + e.Call.Problem.Detail
	}
	return text
}

// denial returns the decision with which a person denied the call, or nil.
func (e *CallError) denial() *Decision {
	if e.Call.State != CallStateDenied {
		return nil
	}
	for i := range e.Call.Decisions {
		if d := &e.Call.Decisions[len(e.Call.Decisions)-1-i]; d.Kind == "deny" || d.Kind == "revoke" {
			return d
		}
	}
	return nil
}

// Call calls a tool and returns its result. It waits for a call that the front door stores.
// arguments must encode to a JSON object; nil, also as a map or pointer, means an empty object. If the tool itself fails,
// the error is nil and IsError of the result is true. The error is a *[HeldError] if the
// call needs an approval first, a *[CallError] if it was stored and ended without a result,
// and a *[ProblemError] if the front door refused the request. Editors change the request,
// for example [WithIdempotencyKey] and [WithCallTimeout].
func (c *ClientWithResponses) Call(ctx context.Context, server, tool string, arguments any, editors ...RequestEditorFn) (*CallToolResult, error) {
	request := CallRequest{Server: server, Tool: tool}
	if arguments != nil {
		encoded, err := json.Marshal(arguments)
		if err != nil {
			return nil, fmt.Errorf("encoding the arguments of %s/%s: %w", server, tool, err)
		}
		if string(encoded) != "null" { // a nil map or pointer
			request.Arguments = encoded
		}
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

// Wait waits until a stored or held call ends and returns its result. A held call that is not
// approved ends when its approval expires. The error is a *[CallError] if the call ended
// without a result, and a *[ProblemError] if the front door refused the request. If ctx ends
// first, Wait returns its error and the call continues. If the HTTP client has a Timeout, the
// requests of Wait are shorter than it.
func (c *ClientWithResponses) Wait(ctx context.Context, id string) (*CallToolResult, error) {
	seconds := c.waitSeconds()
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

// waitSeconds returns the wait parameter of one request. With a Timeout of the HTTP client it is at
// most half of it, so that the answer arrives in time, and at least a second.
func (c *ClientWithResponses) waitSeconds() int {
	raw, _ := c.ClientInterface.(*Client)
	if raw == nil {
		return oneWait
	}
	doer := raw.Client
	if r, ok := doer.(*retrier); ok {
		doer = r.next
	}
	if h, ok := doer.(*http.Client); ok && h.Timeout > 0 {
		return max(min(int(h.Timeout/(2*time.Second)), oneWait), 1)
	}
	return oneWait
}

// Text returns the text blocks of a result, joined by newlines. It returns "" if result is
// nil.
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
