//go:build live

package callyard_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// These tests run against a front door with the demo server and a policy that holds
// the tool add. e2e/clients_test.go starts it and sets CALLYARD_URL. The front door at
// CALLYARD_LIMITED_URL allows one call per second.

func open(t *testing.T) *callyard.ClientWithResponses { return openAt(t, "CALLYARD_URL") }

func openAt(t *testing.T, variable string, options ...callyard.ClientOption) *callyard.ClientWithResponses {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Fatalf("%s is not set: go -C e2e test . -run TheClients starts a front door and these tests", variable)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := callyard.New(url, os.Getenv("CALLYARD_KEY"), append(options, callyard.WithHTTPClient(&http.Client{Transport: transport}))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(t *testing.T, result *callyard.CallToolResult) string {
	t.Helper()
	if result == nil || len(result.Content) == 0 || result.Content[0].Text == nil {
		t.Fatalf("the result has no text: %+v", result)
	}
	return *result.Content[0].Text
}

// heldAdd calls a tool that is held.
func heldAdd(t *testing.T, c *callyard.ClientWithResponses) callyard.ConfirmationRequest {
	t.Helper()
	result, err := c.Call(t.Context(), "demo", "add", map[string]int{"a": 2, "b": 3})
	var held *callyard.HeldError
	if !errors.As(err, &held) || result != nil || !strings.Contains(err.Error(), "demo/add is held and has not run: ") {
		t.Fatalf("%+v, %v", result, err)
	}
	return held.Request
}

func decide(t *testing.T, c *callyard.ClientWithResponses, held callyard.ConfirmationRequest, confirm bool) {
	t.Helper()
	b, err := c.ConfirmCallWithResponse(t.Context(), *held.ConfirmationID, nil, callyard.ConfirmRequest{Confirm: confirm})
	if err == nil {
		err = callyard.Check(b.HTTPResponse, b.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCallReturnsResultOrProblem(t *testing.T) {
	c := open(t)
	result, err := c.Call(t.Context(), "demo", "echo", map[string]string{"message": "hello"})
	if err != nil || callyard.Text(result) != "Echo: hello" {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = c.Call(t.Context(), "demo", "echo", json.RawMessage(`{"message":"k"}`), callyard.WithIdempotencyKey(rand.Text()))
	if err != nil || callyard.Text(result) != "Echo: k" {
		t.Errorf("%+v, %v", result, err)
	}
	_, err = c.Call(t.Context(), "demo", "sleep", map[string]int{"seconds": 300}, callyard.WithCallTimeout(time.Millisecond/2))
	if err == nil || !strings.Contains(err.Error(), "did not answer within 1ms") {
		t.Errorf("a call over its timeout: %v", err)
	}
	_, err = c.Call(t.Context(), "demo", "echo", map[string]int{"message": 5})
	var refusal *callyard.ProblemError
	if !errors.As(err, &refusal) || refusal.Problem.Status != 422 || refusal.RetryAfter != 0 {
		t.Errorf("%v", err)
	}
}

func TestWaitReturnsResultOfHeldCall(t *testing.T) {
	c := open(t)
	held := heldAdd(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, held.CallID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	decide(t, c, held, true)
	result, err := c.Wait(t.Context(), held.CallID)
	if err != nil || callyard.Text(result) != "5" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestACallThatWasDeniedEndsWithAnError(t *testing.T) {
	c := open(t)
	held := heldAdd(t, c)
	decide(t, c, held, false)
	_, err := c.Wait(t.Context(), held.CallID)
	var ended *callyard.CallError
	if !errors.As(err, &ended) || ended.Call.State != callyard.CallStateDenied && ended.Call.State != callyard.CallStateCanceled || !strings.Contains(err.Error(), held.CallID) {
		t.Errorf("%v", err)
	}
}

func TestWaitReturnsResultOfStoredCall(t *testing.T) {
	c := open(t)
	prefer := "respond-async"
	stored, err := c.CreateCallWithResponse(t.Context(), &callyard.CreateCallParams{Prefer: &prefer}, callyard.CallRequest{Server: "demo", Tool: "echo", Arguments: json.RawMessage(`{"message":"s"}`)})
	if err != nil || stored.JSON202 == nil {
		t.Fatalf("%v %+v", err, stored)
	}
	accepted, err := stored.JSON202.AsAcceptedCall()
	if err != nil {
		t.Fatal(err)
	}
	if result, err := c.Wait(t.Context(), accepted.ID); err != nil || callyard.Text(result) != "Echo: s" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestCallOverTheLimitIsRetried(t *testing.T) {
	patient, hasty := openAt(t, "CALLYARD_LIMITED_URL"), openAt(t, "CALLYARD_LIMITED_URL", callyard.WithRetries(0))
	for range 3 {
		if result, err := patient.Call(t.Context(), "demo", "echo", map[string]string{"message": "a"}); err != nil || callyard.Text(result) != "Echo: a" {
			t.Errorf("%+v, %v", result, err)
		}
	}
	var err error
	for tries := 0; err == nil && tries < 20; tries++ { // a call that takes a second is not refused
		_, err = hasty.Call(t.Context(), "demo", "echo", map[string]string{"message": "a"})
	}
	var refusal *callyard.ProblemError
	if !errors.As(err, &refusal) || refusal.Problem.Status != 503 || refusal.RetryAfter != time.Second {
		t.Errorf("%v", err)
	}
}

func TestACallHasATypedResult(t *testing.T) {
	c := open(t)
	a, err := c.CallToolWithResponse(t.Context(), "demo", "echo", nil, callyard.CallToolJSONRequestBody{"message": "hello"})
	if err == nil {
		err = callyard.Check(a.HTTPResponse, a.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, a.JSON200); got != "Echo: hello" {
		t.Errorf("the tool said %q", got)
	}
	b, err := c.CreateCallWithResponse(t.Context(), nil, callyard.CallRequest{Server: "demo", Tool: "echo", Arguments: json.RawMessage(`{"message":"again"}`)})
	if err != nil || b.JSON200 == nil {
		t.Fatalf("%v %+v", err, b)
	}
	done, err := b.JSON200.AsCompletedCall()
	if err != nil || done.Outcome != callyard.CompletedCallOutcomeCompleted || len(done.Content) != 1 || *done.Content[0].Text != "Echo: again" {
		t.Errorf("%v %s", err, b.Body)
	}
}

func TestInvalidArgumentsAreAProblemWithPointers(t *testing.T) {
	c := open(t)
	a, err := c.CallToolWithResponse(t.Context(), "demo", "echo", nil, callyard.CallToolJSONRequestBody{"message": 5})
	if err != nil {
		t.Fatal(err)
	}
	p := a.ApplicationProblemJSON422
	if p == nil || p.Type != "/problems/invalid-arguments" || len(p.Errors) != 1 || p.Retryable {
		t.Fatalf("%s %s", a.Status(), a.Body)
	}
	if fault := p.Errors[0]; fault.Pointer == nil || *fault.Pointer != "/message" || fault.Message == "" {
		t.Errorf("%+v", fault)
	}
	var refusal *callyard.ProblemError
	if err := callyard.Check(a.HTTPResponse, a.Body); !errors.As(err, &refusal) || refusal.Problem.Detail != p.Detail {
		t.Errorf("%v", err)
	}
}

func TestAHeldCallRunsOnceItIsConfirmed(t *testing.T) {
	c := open(t)
	a, err := c.CallToolWithResponse(t.Context(), "demo", "add", nil, callyard.CallToolJSONRequestBody{"a": 2, "b": 3})
	if err != nil || a.JSON202 == nil {
		t.Fatalf("the call is not held: %v %+v", err, a)
	}
	held, err := a.JSON202.AsConfirmationRequest()
	if err != nil || !held.RequiresConfirmation || held.ConfirmationID == nil || held.ToolName != "add" {
		t.Fatalf("%v %s", err, a.Body)
	}
	before, err := c.GetCallWithResponse(t.Context(), held.CallID, nil)
	if err != nil || before.JSON200 == nil || before.JSON200.State != callyard.CallStateHeld {
		t.Fatalf("before it is confirmed: %v %s", err, before.Body)
	}
	b, err := c.ConfirmCallWithResponse(t.Context(), *held.ConfirmationID, nil, callyard.ConfirmRequest{Confirm: true})
	if err == nil {
		err = callyard.Check(b.HTTPResponse, b.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	result, err := b.JSON200.AsCallToolResult()
	if err != nil || text(t, &result) != "5" {
		t.Errorf("%v %s", err, b.Body)
	}
	again, err := c.ConfirmCallWithResponse(t.Context(), *held.ConfirmationID, nil, callyard.ConfirmRequest{Confirm: true})
	if err != nil || again.StatusCode() != http.StatusNotFound {
		t.Errorf("a token worked twice: %v %s", err, again.Body)
	}
	after, err := c.GetCallWithResponse(t.Context(), held.CallID, nil)
	if err != nil || after.JSON200 == nil || after.JSON200.State != callyard.CallStateSucceeded {
		t.Errorf("after it ran: %v %s", err, after.Body)
	}
}

func TestBatchStreamsItsResults(t *testing.T) {
	c := open(t)
	const calls = 40
	body := callyard.LinesOf(func(yield func(callyard.BatchCall) bool) {
		for i := range calls {
			id := fmt.Sprint("line-", i)
			arguments := json.RawMessage(fmt.Sprintf(`{"message":"hello %d"}`, i))
			if !yield(callyard.BatchCall{CustomID: &id, Server: "demo", Tool: "echo", Arguments: arguments}) {
				return
			}
		}
	})
	stream := true
	said := map[string]string{}
	for result, err := range callyard.Lines[callyard.BatchResult](c.CreateBatchWithBody(t.Context(), &callyard.CreateBatchParams{Stream: &stream}, callyard.LinesType, body)) {
		if err != nil {
			t.Fatal(err)
		}
		if result.State != callyard.CallStateSucceeded || result.CustomID == nil || result.Cursor == "" {
			t.Fatalf("%+v", result)
		}
		said[*result.CustomID] = text(t, result.Result)
	}
	if len(said) != calls || said["line-7"] != "Echo: hello 7" {
		t.Errorf("%d results: %v", len(said), said)
	}
}

func TestResultsResumeFromACursor(t *testing.T) {
	c := open(t)
	list := []callyard.BatchCall{{Server: "demo", Tool: "echo", Arguments: json.RawMessage(`{"message":"a"}`)}, {Server: "demo", Tool: "echo", Arguments: json.RawMessage(`{"message":"b"}`)}}
	a, err := c.CreateBatchWithResponse(t.Context(), nil, callyard.BatchRequest{Calls: list})
	if err == nil {
		err = callyard.Check(a.HTTPResponse, a.Body)
	}
	if err != nil || a.JSON201 == nil {
		t.Fatal(err)
	}
	follow := true
	read := func(cursor *string) (cursors []string) {
		for result, err := range callyard.Lines[callyard.BatchResult](c.GetBatchResults(t.Context(), a.JSON201.ID, &callyard.GetBatchResultsParams{Follow: &follow, Cursor: cursor})) {
			if err != nil {
				t.Fatal(err)
			}
			cursors = append(cursors, result.Cursor)
		}
		return cursors
	}
	all := read(nil)
	if len(all) != 2 {
		t.Fatalf("%q", all)
	}
	if rest := read(&all[0]); len(rest) != 1 || rest[0] != all[1] {
		t.Errorf("after %q come %q", all[0], rest)
	}
}

func TestEventsBeginWithStateOfTheFleet(t *testing.T) {
	c := open(t)
	for event, err := range callyard.Events(c.GetEvents(t.Context(), nil)) {
		if err != nil {
			t.Fatal(err)
		}
		var fleet callyard.Fleet
		if err := json.Unmarshal(event.Data, &fleet); err != nil || event.Name != "fleet" || !slices.ContainsFunc(fleet.Servers, func(s callyard.ServerItem) bool { return s.ID == "demo" }) {
			t.Errorf("%v %+v", err, event)
		}
		break
	}
}
