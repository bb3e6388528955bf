package rest

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// callStatuses are what a call can be refused with, beside what everything can.
func callStatuses() []int {
	return []int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
}

func exampleResult() any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: hello"}}}
}

func exampleCompleted() any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": "Echo: hello"}}, memberOutcome: outcomeCompleted}
}

func (a *API) opCallTool() huma.Operation {
	op := operation(http.MethodPost, "/servers/{id}/tools/{tool}", "call-tool", tagCalls, "Call a tool",
		"Runs the tool and waits for its result. The body is the arguments object, which reaches the tool as the bytes that were sent; without a body the tool gets an empty object. "+
			"A tool that fails says so in its result, with status 200 and isError true. Arguments may take "+byteSize(a.limits.ArgumentBytes)+".", callStatuses()...)
	op.Parameters = append([]*huma.Param{serverParam(), toolParam()}, a.storedCallParams()...)
	op.RequestBody = jsonBody(anyArguments("The arguments of the tool."), false, "The arguments of the tool.", map[string]any{"message": "hello"})
	op.Responses["200"] = answered(schemaResult, "The result of the tool.", exampleResult())
	a.mayHold(&op, oneOfAnswers("", outcomeHeld, outcomeAccepted))
	return op
}

func (a *API) opCall() huma.Operation {
	op := operation(http.MethodPost, "/calls", "create-call", tagCalls, "Call a tool that the body names",
		"The same as calling the tool by its path, in one shape for every tool. Every answer has the member outcome: completed with the result of the tool, held where somebody must approve the call first, accepted where it is stored and goes on. Generated clients should use this operation and look at outcome.", callStatuses()...)
	op.Parameters = a.storedCallParams()
	op.RequestBody = jsonBody(ref(schemaCall), true, "The call.", map[string]any{
		"server": "everything", "tool": "echo", "arguments": map[string]any{"message": "hello"}, "timeout_ms": 5000,
	})
	op.Responses["200"] = answered(schemaResult, "The result of the tool.", exampleResult())
	if a.o.Calls.CanHold() {
		// Many generators take the shape of the first answer for that of all.
		op.Responses["200"] = answered(schemaAnswer, "The result of the tool: a CompletedCall, outcome completed.", exampleCompleted())
	}
	a.mayHold(&op, ref(schemaAnswer))
	return op
}

func (a *API) opReadResource() huma.Operation {
	op := operation(http.MethodGet, "/servers/{id}/resources/{uri}", "read-resource", tagServers, "Read a resource",
		"Asks the server for the resource and answers as it does. The URI is percent-encoded; GET /servers/{id}/resources?uri= takes it as a parameter.", callStatuses()...)
	op.Parameters = append([]*huma.Param{serverParam(), pathParam("uri", "The URI of the resource, percent-encoded.", "demo%3A%2F%2Fresource%2F1")}, a.callParams()...)
	op.Responses["200"] = answered(schemaReadAnswer, "The content of the resource.", map[string]any{"contents": []any{map[string]any{"uri": "demo://resource/1", "text": "Resource 1"}}})
	return op
}

func (a *API) opGetPrompt() huma.Operation {
	op := operation(http.MethodPost, "/servers/{id}/prompts/{name}", "get-prompt", tagServers, "Get a prompt",
		"Asks the server for the prompt and answers as it does. The body is the object of its arguments, all of them strings.", callStatuses()...)
	op.Parameters = append([]*huma.Param{serverParam(), pathParam("name", "The name of the prompt.", "args-prompt")}, a.callParams()...)
	op.RequestBody = jsonBody(&huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}}, false, "The arguments of the prompt.", map[string]any{"city": "Oslo"})
	op.Responses["200"] = answered(schemaPrompt, "The prompt.", map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": "What is the weather in Oslo?"}}}})
	return op
}

// mayHold documents that a call may be held until it is confirmed.
func (a *API) mayHold(op *huma.Operation, held *huma.Schema) {
	if !a.o.Calls.CanHold() {
		return
	}
	a.schemaOf(reflect.TypeFor[ConfirmationRequest]())
	a.schemaOf(reflect.TypeFor[CallState]())
	op.Responses["202"] = &huma.Response{
		Description: "The tool has not answered. The call is held until it is confirmed or approved, and has not run: a ConfirmationRequest, outcome held. Or it is stored, as Prefer asked for, and goes on without the caller: an AcceptedCall, outcome accepted.",
		Headers:     map[string]*huma.Param{"Location": header("Where the state of the call is.", huma.TypeString, "/calls/call_06b2t8m3c0w3v2q5n7k9a1d4fz")},
		Content:     map[string]*huma.MediaType{"application/json": {Schema: held}},
	}
}

// storedCallParams are what a tool call takes beside its body: some of them have it
// stored before it runs.
func (a *API) storedCallParams() []*huma.Param {
	return append(a.callParams(),
		&huma.Param{Name: "Prefer", In: "header", Description: "respond-async: store the call and answer at once with 202 and its address; wait=SECONDS: do so when it takes longer (RFC 7240).", Schema: &huma.Schema{Type: huma.TypeString}, Example: "respond-async"},
		idempotencyParam(),
		&huma.Param{Name: headerCallback, In: "header", Description: "An address that is told of the end of the call, which is stored for it; only where the operator has switched callbacks on.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "https://example.com/hooks/callyard"},
	)
}
