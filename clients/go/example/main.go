// Command example calls a tool, waits for a stored call, and runs a batch.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"

	callyard "github.com/callyard/callyard/clients/go"
)

func main() {
	ctx := context.Background()
	client, err := callyard.New(os.Getenv("CALLYARD_URL"), os.Getenv("CALLYARD_KEY"))
	check(err)

	result, err := client.Call(ctx, "demo", "echo", map[string]any{"message": "hello"})
	if held := (*callyard.HeldError)(nil); errors.As(err, &held) {
		fmt.Println(held)
		result, err = client.Wait(ctx, held.Request.CallID) // blocks until an approver decides
	}
	check(err)
	fmt.Println(callyard.Text(result))

	prefer := "respond-async"
	arguments := json.RawMessage(`{"message":"hello"}`)
	stored, err := client.CreateCallWithResponse(ctx, &callyard.CreateCallParams{Prefer: &prefer},
		callyard.CallRequest{Server: "demo", Tool: "echo", Arguments: arguments})
	check(err)
	check(callyard.Check(stored.HTTPResponse, stored.Body))
	accepted, err := stored.JSON202.AsAcceptedCall()
	check(err)
	result, err = client.Wait(ctx, accepted.ID)
	check(err)
	fmt.Println(callyard.Text(result))

	stream := true
	calls := []callyard.BatchCall{{Server: "demo", Tool: "echo", Arguments: arguments}, {Server: "demo", Tool: "echo", Arguments: arguments}}
	for result, err := range callyard.Lines[callyard.BatchResult](client.CreateBatchWithBody(ctx,
		&callyard.CreateBatchParams{Stream: &stream}, callyard.LinesType, callyard.LinesOf(slices.Values(calls)))) {
		check(err)
		fmt.Println(result.Index, result.State)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
