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
		"The body is the output of a model provider: its whole answer, the assistant message, the list of tool calls, or one of them. The calls run concurrently, each as with POST /calls, "+
			"and the answer has the provider's tool messages in order. The message of a call that cannot run gives the reason, and the message of a held call says that it is held; the other calls are not affected. "+
			"With {\"text\":\"…\"} calls are extracted from the plain text of a model, and {\"tool_call\":{\"server_id\":…,\"tool_name\":…,\"parameters\":{…}}} is read as such a text. "+
			"A name is matched without regard to letter case and separators if that is unambiguous.", http.StatusNotFound)
	op.Parameters = append([]*huma.Param{
		{Name: "format", In: "query", Description: "The provider of the tool calls; by default it is detected. For a text, it is the format of the messages in the answer.",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"mcp", "openai", "openai-responses", "anthropic", "gemini"}}, Example: "openai"},
		{Name: "set", In: "query", Description: "Only the tools of this set, under their names in the set. Other tools are not found.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "research"},
		{Name: "own", In: "query", Description: "The comma-separated names of tools that the caller runs itself. Their calls do not run here; own_calls lists them. If another tool has the same name, the caller's own tool takes precedence.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "ask_user,get_location"},
		{Name: "Prefer", In: "header", Description: "respond-async: store each call and answer at once with 202 and the paths of the calls; wait=SECONDS: do so for calls that take longer (RFC 7240).", Schema: &huma.Schema{Type: huma.TypeString}, Example: "respond-async"},
		{Name: "Idempotency-Key", In: "header", Description: "The same key and body return the same answers, and nothing runs twice. The calls become durable.", Schema: httpapi.IdempotencySchema(), Example: "8e03978e-40d5-43dd-bc93-6894a57f9324"},
	}, h.runner.CallParams()...)
	message := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_abc123", "type": "function", "function": map[string]any{"name": "everything__echo", "arguments": `{"message":"hello"}`},
	}}}
	op.RequestBody = openapi.JSONBody(&huma.Schema{Description: "The tool calls as the provider sent them, or {\"text\":\"…\"}."}, true, "The tool calls.", message)
	answer := d.SchemaOf(reflect.TypeFor[ToolCallsAnswer]())
	op.Responses["202"] = &huma.Response{
		Description: "Some calls are stored and continue without the caller, as Prefer requested: those in state accepted.",
		Headers:     map[string]*huma.Param{"Location": openapi.Header("The path of the call, if the message has one call only.", huma.TypeString, "/calls/call_06b2t8m3c0w3v2q5n7k9a1d4fz")},
		Content:     map[string]*huma.MediaType{"application/json": {Schema: answer}},
	}
	op.Responses["200"] = &huma.Response{Description: "The outcomes of the calls.", Content: map[string]*huma.MediaType{"text/event-stream": {
		Schema:  openapi.Text("With Accept: text/event-stream: an own_call event for each call of the caller's own tools, a call event for each other call as it ends, with its outcome and, in messages, the messages that answer this call alone, and then an end event with the answer as JSON has it. A request that is refused returns an ordinary problem."),
		Example: "event: call\ndata: {\"index\":0,\"id\":\"call_abc123\",\"name\":\"everything__echo\",\"state\":\"succeeded\",\"messages\":[…]}\n\nevent: end\ndata: {\"format\":\"openai\",\"messages\":[…],\"calls\":[…]}\n\n",
	}, "application/json": {
		Schema: answer,
		Example: map[string]any{
			"format": "openai", "messages": []any{map[string]any{"role": "tool", "tool_call_id": "call_abc123", "content": "Echo: hello"}},
			"calls": []any{map[string]any{"index": 0, "id": "call_abc123", "name": "everything__echo", "server": "everything", "tool": "echo", "call_id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "succeeded"}},
		},
	}}}
	return op
}

func opListTools() huma.Operation {
	return openapi.Operation(http.MethodGet, "/tools", "list-tools", openapi.TagServers, "List all tools",
		"All tools of all servers, sorted by server and name, in pages (a ToolList). With the format of a model provider, all callable tools in that provider's format, under names that it accepts (a ProviderToolList); POST /tool-calls runs the model's tool calls.", http.StatusNotFound)
}

func exampleTools() map[string]any {
	return map[string]any{"next_cursor": "ZXZlcnl0aGluZy9lY2hv", "tools": []any{map[string]any{
		"server": "everything", "name": "echo", "enabled": true, "definition": map[string]any{"name": "echo", "description": "Echoes back the input", "inputSchema": map[string]any{"type": "object"}},
	}}}
}

func opListSwitches() huma.Operation {
	return openapi.Operation(http.MethodGet, "/tools/switches", "list-switches", openapi.TagServers, "List what is disabled",
		"The disabled tools, and the patterns and sets that disable tools.")
}

func opSwitchTools(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPatch, "/tools", "switch-tools", openapi.TagServers, "Disable or enable tools by server, pattern or set",
		"Disables all matching tools, and matching tools that are added later, at every front door and after restarts. A tool is enabled when nothing disables it: to enable tools again, send the same server, tool and set with enabled true.", http.StatusNotFound)
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[WideSwitchRequest]()), true, "The tools, and their new state.", map[string]any{"server": "files", "tool": "delete_*", "enabled": false, "reason": "Read-only until Monday."})
	return op
}

func opSwitchTool(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPatch, "/servers/{id}/tools/{tool}", "switch-tool", openapi.TagServers, "Disable or enable a tool",
		"Calls of a disabled tool return 403 with the reason, at every front door and after restarts.", http.StatusNotFound)
	op.Parameters = []*huma.Param{openapi.ServerParam(), openapi.ToolParam()}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[SwitchRequest]()), true, "The new state of the tool.", map[string]any{"enabled": false, "reason": "Deletes files; use archive instead."})
	return op
}
