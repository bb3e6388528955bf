package rest

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

func (a *API) opToolCalls() huma.Operation {
	op := operation(http.MethodPost, "/tool-calls", "create-tool-calls", tagCalls, "Run the tool calls of a model",
		"The body is what a model provider sent: its whole answer, the assistant message, the list of tool calls, or one of them. The calls run side by side, each as POST /calls would run it, "+
			"and the answer has the provider's tool messages in order. A call that cannot run has a message that says why, and a call that is held one that says so; the others are not affected. "+
			"With {\"text\":\"…\"} calls are looked for in the plain text of a model.",
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Parameters = append([]*huma.Param{
		{Name: "format", In: "query", Description: "Whose tool calls these are; without it that is told by their form. For a text, the shape of the message that answers.",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"mcp", "openai", "openai-responses", "anthropic", "gemini"}}, Example: "openai"},
		{Name: "Idempotency-Key", In: "header", Description: "The same key and body get the same answers, and nothing runs twice; the calls are stored for that.", Schema: idempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"},
	}, a.callParams()...)
	message := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_abc123", "type": "function", "function": map[string]any{"name": "everything__echo", "arguments": `{"message":"hello"}`},
	}}}
	op.RequestBody = jsonBody(&huma.Schema{Description: "The tool calls as the provider sent them, or {\"text\":\"…\"}."}, true, "The tool calls.", message)
	op.Responses["200"] = &huma.Response{Description: "What came of the calls.", Content: map[string]*huma.MediaType{"application/json": {
		Schema: a.schemaOf(reflect.TypeFor[ToolCallsAnswer]()),
		Example: map[string]any{
			"format": "openai", "messages": []any{map[string]any{"role": "tool", "tool_call_id": "call_abc123", "content": "Echo: hello"}},
			"calls": []any{map[string]any{"index": 0, "id": "call_abc123", "name": "everything__echo", "server": "everything", "tool": "echo", "call_id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "succeeded"}},
		},
	}}}
	return op
}
