package sets

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/toolset"
)

func opList() huma.Operation {
	return openapi.Operation(http.MethodGet, "/sets", "list-sets", openapi.TagSets, "List the sets of tools", "Every set, by name: those of the configuration and those that were made with PUT /sets/{name}. A tenant sees its own sets and those of the installation that have no tool of a server which it does not see.", http.StatusBadRequest)
}

func opGet() huma.Operation {
	return openapi.Operation(http.MethodGet, "/sets/{name}", "get-set", openapi.TagSets, "Show a set of tools",
		"The definition of the set, and the tools that it has now. MCP clients use it at /mcp/@name, others with GET /tools?set=name and POST /tool-calls?set=name.", http.StatusBadRequest, http.StatusNotFound, http.StatusConflict)
}

func opPut(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPut, "/sets/{name}", "put-set", openapi.TagSets, "Make or change a set of tools",
		"The set counts at every front door within a second, and after restarts. It is of your tenant: in the default tenant, where it requires the scope admin, it is the installation's, in others the tenant's own, which no other tenant sees. To change a set, send its ETag in If-Match: if somebody else has changed it since, the answer is 412 and nothing changes.",
		http.StatusBadRequest, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusPreconditionRequired, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{setParam(), openapi.MatchParam(), {
		Name: "If-None-Match", In: "header", Description: "With *, the set is made only where there is none.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"*"}}, Example: "*",
	}}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[toolset.Set]()), true, "The definition of the set.", exampleDefinition())
	op.Responses["200"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": openapi.Header("The new state of the set.", huma.TypeString, `"13"`)}}
	return op
}

func opRemove() huma.Operation {
	op := openapi.Operation(http.MethodDelete, "/sets/{name}", "remove-set", openapi.TagSets, "Remove a set of tools",
		"A set that another set names, or by which tools are disabled, is not removed.",
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{setParam(), openapi.MatchParam()}
	return op
}

func exampleDefinition() map[string]any {
	return map[string]any{"description": "Find and read, change nothing.", "include": []any{map[string]any{"server": "files", "read_only": true}, map[string]any{"tool": "search_*"}}}
}

func exampleItem() map[string]any {
	return map[string]any{"name": "research", "tenant": "default", "origin": "api", "etag": `"13"`, "by": "ops", "at": "2026-01-02T03:04:05Z", "definition": exampleDefinition()}
}
