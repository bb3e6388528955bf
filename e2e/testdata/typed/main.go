// Command story calls tools through a client that was generated from the document of a set. The
// function calls, in another file, calls each tool once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"tools.test/tools"
)

func main() {
	ctx := context.Background()
	c, err := tools.NewClientWithResponses(os.Getenv("CALLYARD_URL"))
	check(err)

	// Typical user code: arguments and results have types.
	at := tools.EverythingGetStructuredContentInput{Location: tools.EverythingGetStructuredContentInputLocationNewYork}
	r, err := c.EverythingGetStructuredContentWithResponse(ctx, nil, at)
	check(err)
	var temperature float32 = r.JSON200.StructuredContent.Temperature
	fmt.Println(temperature, r.JSON200.StructuredContent.Conditions)

	calls(ctx, c)
}

// into decodes arguments into the client's type.
func into[T any](arguments string, body *T) T {
	d := json.NewDecoder(bytes.NewBufferString(arguments))
	d.DisallowUnknownFields()
	check(d.Decode(body))
	return *body
}

// said prints the client's view of a response: a typed result, or the body.
func said(h *http.Response, result any, body []byte) {
	answer, err := json.Marshal(result)
	check(err)
	if string(answer) == "null" {
		answer = body
	}
	line, err := json.Marshal(map[string]any{"status": h.StatusCode, "answer": json.RawMessage(answer)})
	check(err)
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
