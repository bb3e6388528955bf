package rest

import (
	"bytes"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// The sections of the document.
const (
	tagCalls   = "Calls"
	tagServers = "Servers"
	tagFleet   = "Fleet"
)

// Names of schemas that describe what MCP servers make.
const (
	schemaResult     = "CallToolResult"
	schemaTool       = "ToolDefinition"
	schemaCall       = "CallRequest"
	schemaEntry      = "ServerEntry"
	schemaSwitch     = "SwitchRequest"
	schemaSwitched   = "ToolSwitch"
	schemaAdded      = "AddedServer"
	schemaRemoved    = "RemovedServer"
	schemaRestarted  = "RestartedServer"
	schemaFleet      = "Fleet"
	schemaToolsOf    = "ServerTools"
	schemaResources  = "ServerResources"
	schemaTemplates  = "ServerResourceTemplates"
	schemaPrompts    = "ServerPrompts"
	schemaReadAnswer = "ReadResourceResult"
	schemaPrompt     = "GetPromptResult"
)

func ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

func text(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: description}
}

func openObject(description string, properties map[string]*huma.Schema, required ...string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: description, Properties: properties, Required: required, AdditionalProperties: true}
}

func listOf(name string, item *huma.Schema, description string) *huma.Schema {
	return openObject(description, map[string]*huma.Schema{name: {Type: huma.TypeArray, Items: item}}, name)
}

// documentBodies puts the shapes into the document that no Go type of ours has,
// because their bytes are passed on.
func (a *API) documentBodies() {
	registry := a.huma.OpenAPI().Components.Schemas
	for _, t := range []reflect.Type{
		reflect.TypeFor[SwitchRequest](), reflect.TypeFor[ToolSwitch](), reflect.TypeFor[AddedServer](), reflect.TypeFor[RemovedServer](), reflect.TypeFor[RestartedServer](), reflect.TypeFor[Fleet](),
	} {
		registry.Schema(t, true, "")
	}
	all := registry.Map()
	anything := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	a.documentResult()
	all[schemaTool] = openObject("A tool as the server gave it.", map[string]*huma.Schema{
		"name": text("The name of the tool."), "title": text("The name for people."), "description": text("What it does."),
		"inputSchema": anything, "outputSchema": anything, "annotations": anything,
	}, "name")
	all[schemaToolsOf] = listOf("tools", ref(schemaTool), "The tools of one server, each exactly as the server gave it.")
	all[schemaResources] = listOf("resources", anything, "The resources of one server, each exactly as the server gave it.")
	all[schemaTemplates] = listOf("resourceTemplates", anything, "The resource templates of one server, each exactly as the server gave it.")
	all[schemaPrompts] = listOf("prompts", anything, "The prompts of one server, each exactly as the server gave it.")
	all[schemaReadAnswer] = listOf("contents", anything, "The content of the resource, as the server sent it.")
	all[schemaPrompt] = openObject("The prompt, as the server sent it.", map[string]*huma.Schema{
		"description": text("What the prompt is for."), "messages": {Type: huma.TypeArray, Items: anything},
	}, "messages")
	all[schemaCall] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"server", "tool"},
		Properties: map[string]*huma.Schema{
			"server":       text("The id of the server."),
			"tool":         text("The name of the tool."),
			"arguments":    anyArguments("The arguments; they reach the tool as they are. Without them the tool gets an empty object."),
			"timeout_ms":   a.timeoutSchema("How long the call may take. Without it the server's own time counts."),
			"callback_url": text("An address that is told of the end of the call, which is stored for it; only where the operator has switched callbacks on."),
		},
	}
	all[schemaEntry] = openObject("A server, as an entry of a servers file with its id.", map[string]*huma.Schema{
		"id": text("The id of the new server."), "command": text("The program of a stdio server."),
		"args": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}},
		"env":  {Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
		"url":  text("The address of a remote server."), "type": words("stdio", "http", "sse"),
		"headers":   {Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
		"riskLevel": {Type: huma.TypeInteger, Minimum: ptr(1.0), Maximum: ptr(3.0), Description: "1 low, 2 medium, 3 high."},
		"docker":    openObject("The container of a server of high risk.", map[string]*huma.Schema{"image": text("The image; needed at riskLevel 3."), "network": text("The network."), "volumes": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}}),
	}, "id")
}

func ptr[T any](v T) *T { return &v }

func containsText(in []byte, what string) bool { return bytes.Contains(in, []byte(what)) }

// operation begins the description of one; statuses are those it refuses with,
// beside 403 for a foreign web page and 401.
func operation(method, path, id, tag, summary, description string, statuses ...int) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary, Description: description,
		Responses: problems(append(statuses, http.StatusUnauthorized, http.StatusForbidden)...),
	}
}

// public takes the credential away from an operation.
func public(op huma.Operation) huma.Operation {
	delete(op.Responses, strconv.Itoa(http.StatusUnauthorized))
	op.Security = []map[string][]string{}
	return op
}

func pathParam(name, description, example string) *huma.Param {
	return &huma.Param{Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
}

func serverParam() *huma.Param { return pathParam("id", "The id of a server.", "everything") }

func toolParam() *huma.Param {
	return pathParam("tool", "The name of a tool, percent-encoded; a/b is a%2Fb.", "echo")
}

// callParams are what every call takes beside its body.
func (a *API) callParams() []*huma.Param {
	ms := &huma.Schema{Type: huma.TypeInteger, Minimum: ptr(1.0), Maximum: ptr(float64(a.limits.MaxTimeout.Milliseconds()))}
	return []*huma.Param{
		{Name: "timeout_ms", In: "query", Description: "How long the call may take, in milliseconds; it counts before the header.", Schema: ms, Example: 5000},
		{Name: "Callyard-Timeout-Ms", In: "header", Description: "The same in a header.", Schema: ms, Example: 5000},
		{Name: "Cache-Control", In: "header", Description: "no-cache asks for a result of the tool's own where one that was kept would do; no-store, that the result is not kept.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "no-cache"},
		{Name: "traceparent", In: "header", Description: "W3C trace context; it travels to the MCP server and is echoed.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{Name: "tracestate", In: "header", Description: "W3C trace state; it travels with traceparent.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "vendor=value"},
	}
}

// answered is a response of 200 that is JSON as the MCP server sent it, or a
// stream of events for callers that ask for one.
func answered(name, description string, example any) *huma.Response {
	return &huma.Response{
		Description: description,
		Headers: map[string]*huma.Param{
			"Callyard-Call-Id": header("The id of the call.", huma.TypeString, "call_06b2t8m3c0w3v2q5n7k9a1d4fz"),
			"Callyard-Worker":  header("The worker that ran it.", huma.TypeString, "worker-1-7f3k2a"),
			"Cache-Status":     header("Where the policy lets results of this call be kept: whether this is one that was kept (RFC 9211).", huma.TypeString, "callyard; hit; ttl=42"),
			"Age":              header("How old a result is that was kept, in seconds.", huma.TypeInteger, 18),
			"X-Request-Id":     header("The id of the request, for the operator's log.", huma.TypeString, "req_06b2t8m3c0w3v2q5n7k91"),
		},
		Content: map[string]*huma.MediaType{
			"application/json":  {Schema: ref(name), Example: example},
			"text/event-stream": {Schema: text("With Accept: text/event-stream: progress events with the params of each notification, then one result event with the result, or an error event with a problem document. A call that fails before the first event is an ordinary problem."), Example: "event: progress\ndata: {\"progressToken\":\"1\",\"progress\":1,\"total\":2}\n\nevent: result\ndata: {\"content\":[]}\n\n"},
		},
	}
}

func jsonAnswer(name, description string, example any) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: ref(name), Example: example}}}
}

func jsonBody(s *huma.Schema, required bool, description string, example any) *huma.RequestBody {
	return &huma.RequestBody{Description: description, Required: required, Content: map[string]*huma.MediaType{"application/json": {Schema: s, Example: example}}}
}
