// Command example calls a tool, confirms one that is held, and runs a batch.
package main

import (
	"context"
	"encoding/json"
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

	answer, err := client.CallToolWithResponse(ctx, "demo", "echo", nil, map[string]any{"message": "hello"})
	check(err)
	check(callyard.Check(answer.HTTPResponse, answer.Body))
	if answer.JSON202 != nil {
		held, err := answer.JSON202.AsConfirmationRequest()
		check(err)
		_, err = client.ConfirmCallWithResponse(ctx, *held.ConfirmationID, nil, callyard.ConfirmRequest{Confirm: true})
		check(err)
	} else {
		fmt.Println(*answer.JSON200.Content[0].Text)
	}

	stream := true
	arguments := json.RawMessage(`{"message":"hello"}`)
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
