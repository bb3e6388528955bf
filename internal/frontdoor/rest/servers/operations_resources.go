package servers

import (
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
)

// Names of schemas of data that MCP servers send.
const (
	schemaTool       = "ToolDefinition"
	schemaToolsOf    = "ServerTools"
	schemaResources  = "ServerResources"
	schemaTemplates  = "ServerResourceTemplates"
	schemaPrompts    = "ServerPrompts"
	schemaReadAnswer = "ReadResourceResult"
	schemaPrompt     = "GetPromptResult"
)

// describe adds the schemas to the document that no Go type describes, because their bytes are
// forwarded.
func (h *resourceHandlers) describe(d *httpapi.Document) {
	all, anything := d.Schemas(), openapi.Object("")
	all[schemaTool] = openapi.OpenObject("A tool, exactly as the server sent it.", map[string]*huma.Schema{
		"name": openapi.Text("The name of the tool."), "title": openapi.Text("The display name."), "description": openapi.Text("The description of the tool."),
		"inputSchema": openapi.Object("The JSON Schema of the arguments."), "outputSchema": openapi.Object("The JSON Schema of structuredContent in results; absent if the tool has none."),
		"annotations": openapi.Object("Hints of the server, such as readOnlyHint."),
	}, "name")
	all[schemaToolsOf] = openapi.ListOf("tools", openapi.Ref(schemaTool), "The tools of one server, each exactly as the server sent it.")
	all[schemaResources] = openapi.ListOf("resources", anything, "The resources of one server, each exactly as the server sent it.")
	all[schemaTemplates] = openapi.ListOf("resourceTemplates", anything, "The resource templates of one server, each exactly as the server sent it.")
	all[schemaPrompts] = openapi.ListOf("prompts", anything, "The prompts of one server, each exactly as the server sent it.")
	all[schemaReadAnswer] = openapi.ListOf("contents", anything, "The content of the resource, exactly as the server sent it.")
	all[schemaPrompt] = openapi.OpenObject("The prompt, exactly as the server sent it.", map[string]*huma.Schema{
		"description": openapi.Text("The description of the prompt."), "messages": {Type: huma.TypeArray, Items: anything, Description: "The messages of the prompt, in order."},
	}, "messages")
}

func opServerTools() huma.Operation {
	return listOperation("/servers/{id}/tools", "list-server-tools", "List the tools of a server", schemaToolsOf, "The tools.",
		map[string]any{"tools": []any{map[string]any{"name": "echo", "description": "Echoes back the input", "inputSchema": map[string]any{"type": "object"}}}})
}

func opServerDocument() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/servers/{id}/openapi.json", "get-server-openapi", openapi.TagServers, "Get the tools of a server as an OpenAPI document",
		"An OpenAPI 3.1 document in which each tool of the server is an operation, with its input schema as the body and its output schema in the answer. Generated clients have a method for each tool. It changes when the tools change.", http.StatusNotFound)
	op.Parameters = []*huma.Param{openapi.ServerParam()}
	op.Responses["200"] = &huma.Response{Description: "The document.", Content: map[string]*huma.MediaType{"application/openapi+json": {Schema: openapi.Object("An OpenAPI 3.1 document.")}}}
	return op
}

func opSetDocument() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/sets/{name}/openapi.json", "get-set-openapi", openapi.TagSets, "Get the tools of a set as an OpenAPI document",
		"The same document as for a server, with the current tools of the set under their names in the set. Each call goes to the server of its tool.", http.StatusNotFound, http.StatusConflict)
	op.Parameters = []*huma.Param{openapi.PathParam("name", "The name of a set.", "research")}
	op.Responses["200"] = &huma.Response{Description: "The document.", Content: map[string]*huma.MediaType{"application/openapi+json": {Schema: openapi.Object("An OpenAPI 3.1 document.")}}}
	return op
}

func (h *resourceHandlers) opListResources() huma.Operation {
	op := listOperation("/servers/{id}/resources", "list-server-resources", "List the resources of a server", schemaResources, "The resources or, with uri, the content of that resource.",
		map[string]any{"resources": []any{map[string]any{"uri": "demo://resource/1", "name": "Resource 1"}}})
	op.Parameters = append(op.Parameters, &huma.Param{Name: "uri", In: "query", Description: "Reads this resource instead of listing the resources.", Schema: &huma.Schema{Type: huma.TypeString}, Example: "demo://resource/1"}, h.runner.CallParams()[0])
	maps.Copy(op.Responses, openapi.Refusals(submit.ReadStatuses()...))
	op.Responses["200"].Content["application/json"].Schema = &huma.Schema{AnyOf: []*huma.Schema{openapi.Ref(schemaResources), openapi.Ref(schemaReadAnswer)}}
	return op
}

func opListTemplates() huma.Operation {
	return listOperation("/servers/{id}/resources/templates", "list-server-resource-templates", "List the resource templates of a server", schemaTemplates, "The templates.",
		map[string]any{"resourceTemplates": []any{map[string]any{"uriTemplate": "demo://resource/{id}", "name": "Resource"}}})
}

func (h *resourceHandlers) opReadResource() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/servers/{id}/resources/{uri}", "read-resource", openapi.TagServers, "Read a resource",
		"Reads the resource from the server and returns its answer. The URI is percent-encoded; GET /servers/{id}/resources?uri= accepts it as a parameter.", submit.ReadStatuses()...)
	op.Parameters = append([]*huma.Param{openapi.ServerParam(), openapi.PathParam("uri", "The URI of the resource, percent-encoded.", "demo%3A%2F%2Fresource%2F1")}, h.runner.CallParams()...)
	op.Responses["200"] = submit.Answered(schemaReadAnswer, "The content of the resource.", map[string]any{"contents": []any{map[string]any{"uri": "demo://resource/1", "text": "Resource 1"}}})
	return op
}

func opListPrompts() huma.Operation {
	return listOperation("/servers/{id}/prompts", "list-server-prompts", "List the prompts of a server", schemaPrompts, "The prompts.",
		map[string]any{"prompts": []any{map[string]any{"name": "simple-prompt", "description": "A prompt without arguments"}}})
}

func (h *resourceHandlers) opGetPrompt() huma.Operation {
	op := openapi.Operation(http.MethodPost, "/servers/{id}/prompts/{name}", "get-prompt", openapi.TagServers, "Get a prompt",
		"Gets the prompt from the server and returns its answer. The body is an object with the arguments of the prompt, which are all strings.", submit.CallStatuses()...)
	op.Parameters = append([]*huma.Param{openapi.ServerParam(), openapi.PathParam("name", "The name of the prompt.", "args-prompt")}, h.runner.CallParams()...)
	op.RequestBody = openapi.JSONBody(&huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}}, false, "The arguments of the prompt.", map[string]any{"city": "Oslo"})
	op.Responses["200"] = submit.Answered(schemaPrompt, "The prompt.", map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": "What is the weather in Oslo?"}}}})
	return op
}

// listOperation describes a list that is forwarded from the server verbatim.
func listOperation(path, id, summary, schemaName, what string, example any) huma.Operation {
	op := openapi.Operation(http.MethodGet, path, id, openapi.TagServers, summary, "Each entry is exactly as the server sent it.", http.StatusNotFound)
	op.Parameters = []*huma.Param{openapi.ServerParam()}
	op.Responses["200"] = openapi.JSONAnswer(schemaName, what, example)
	return op
}
