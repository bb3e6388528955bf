package tools

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func (h *toolCallHandlers) opToolCalls(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/tool-calls", "create-tool-calls", openapi.TagCalls, "Run the tool calls of a model",
		"The body is what a model provider sent: its whole answer, the assistant message, the list of tool calls, or one of them. The calls run side by side, each as POST /calls would run it, "+
			"and the answer has the provider's tool messages in order. A call that cannot run has a message that says why, and a call that is held one that says so; the others are not affected. "+
			"With {\"text\":\"…\"} calls are looked for in the plain text of a model.",
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Parameters = append([]*huma.Param{
		{Name: "format", In: "query", Description: "Whose tool calls these are; without it that is told by their form. For a text, the shape of the message that answers.",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"mcp", "openai", "openai-responses", "anthropic", "gemini"}}, Example: "openai"},
		{Name: "Idempotency-Key", In: "header", Description: "The same key and body get the same answers, and nothing runs twice; the calls are stored for that.", Schema: httpapi.IdempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"},
	}, h.runner.CallParams()...)
	message := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_abc123", "type": "function", "function": map[string]any{"name": "everything__echo", "arguments": `{"message":"hello"}`},
	}}}
	op.RequestBody = openapi.JSONBody(&huma.Schema{Description: "The tool calls as the provider sent them, or {\"text\":\"…\"}."}, true, "The tool calls.", message)
	op.Responses["200"] = &huma.Response{Description: "What came of the calls.", Content: map[string]*huma.MediaType{"application/json": {
		Schema: d.SchemaOf(reflect.TypeFor[ToolCallsAnswer]()),
		Example: map[string]any{
			"format": "openai", "messages": []any{map[string]any{"role": "tool", "tool_call_id": "call_abc123", "content": "Echo: hello"}},
			"calls": []any{map[string]any{"index": 0, "id": "call_abc123", "name": "everything__echo", "server": "everything", "tool": "echo", "call_id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "succeeded"}},
		},
	}}}
	return op
}

func opListTools() huma.Operation {
	return openapi.Operation(http.MethodGet, "/tools", "list-tools", openapi.TagServers, "List all tools",
		"Every tool of every server, by server and name, in pages (a ToolList). With the format of a model provider, all tools that can be called as that provider takes them, under names that it takes (a ProviderToolList); POST /tool-calls runs what the model makes of them.", http.StatusBadRequest, http.StatusNotFound)
}

func opSwitchTool(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPatch, "/servers/{id}/tools/{tool}", "switch-tool", openapi.TagServers, "Switch a tool off or on",
		"A tool that is switched off answers 403 with the reason, at every front door and over restarts.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{openapi.ServerParam(), openapi.ToolParam()}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[SwitchRequest]()), true, "The switch.", map[string]any{"enabled": false, "reason": "Deletes files; use archive instead."})
	return op
}
