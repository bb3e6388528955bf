package callyard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	callyard "github.com/callyard/callyard/clients/go"
)

// frontDoor starts a fake front door that answers each path with a canned response.
func frontDoor(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case !ok:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			answer = `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"There is no server \"nowhere\"; GET /servers lists them.","retryable":false}`
		case answer[0] == '[':
			w.Header().Set("Content-Type", "application/x-ndjson")
			answer = answer[1 : len(answer)-1]
		default:
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, answer)
	}))
}

func Example() {
	door := frontDoor(map[string]string{"POST /calls": `{"outcome":"completed","content":[{"type":"text","text":"hello"}]}`})
	defer door.Close()

	client, err := callyard.New(door.URL, "the API key")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := client.Call(context.Background(), "demo", "echo", map[string]any{"message": "hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(callyard.Text(result))
	// Output: hello
}

// A call that needs an approval returns an error that holds its ID, never an empty result.
// Wait returns the result after the approval.
func ExampleHeldError() {
	door := frontDoor(map[string]string{
		"POST /calls": `{"outcome":"held","call_id":"call_1","approval_id":"appr_1","server_id":"bank","tool_name":"pay","method":"tools/call",
			"requires_confirmation":true,"risk_level":2,"risk_description":"medium","reasons":["The amount is over 1000."],"expires_at":"2027-01-01T00:00:00Z"}`,
		"GET /calls/call_1": `{"id":"call_1","server":"bank","tool":"pay","state":"succeeded","result":{"outcome":"completed","content":[{"type":"text","text":"paid"}]}}`,
	})
	defer door.Close()
	client, _ := callyard.New(door.URL, "the API key")

	ctx := context.Background()
	result, err := client.Call(ctx, "bank", "pay", map[string]any{"amount": 5000})
	if held := (*callyard.HeldError)(nil); errors.As(err, &held) {
		fmt.Println(held)
		result, err = client.Wait(ctx, held.Request.CallID)
	}
	fmt.Println(callyard.Text(result), err)
	// Output:
	// bank/pay is held and has not run: The amount is over 1000. Call call_1: somebody else must approve it until 2027-01-01T00:00:00Z
	// paid <nil>
}

// An error response of the front door is returned as a ProblemError. Its text says how to fix
// the request, and it holds the problem document.
func ExampleProblemError() {
	door := frontDoor(nil)
	defer door.Close()
	client, _ := callyard.New(door.URL, "the API key")

	_, err := client.Call(context.Background(), "nowhere", "echo", nil)
	if refused := (*callyard.ProblemError)(nil); errors.As(err, &refused) {
		fmt.Println(refused.Problem.Type, refused.Problem.Retryable)
		fmt.Println(refused)
	}
	// Output:
	// /problems/not-found false
	// There is no server "nowhere"; GET /servers lists them.
}

// Lines decodes a response with one JSON value per line while it arrives.
func ExampleLines() {
	door := frontDoor(map[string]string{"GET /batches/batch_1/results": `[{"index":0,"state":"succeeded"}
{"index":1,"state":"failed"}
]`})
	defer door.Close()
	client, _ := callyard.New(door.URL, "the API key")

	for result, err := range callyard.Lines[callyard.BatchResult](client.GetBatchResults(context.Background(), "batch_1", nil)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Index, result.State)
	}
	// Output:
	// 0 succeeded
	// 1 failed
}
