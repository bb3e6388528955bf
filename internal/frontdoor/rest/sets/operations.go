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
	return openapi.Operation(http.MethodGet, "/sets", "list-sets", openapi.TagSets, "List the sets of tools", "All sets, sorted by name: those of the configuration and those that were created with PUT /sets/{name}. A tenant sees its own sets, and the sets of the installation whose tools all belong to servers that it sees.")
}

func opGet() huma.Operation {
	return openapi.Operation(http.MethodGet, "/sets/{name}", "get-set", openapi.TagSets, "Show a set of tools",
		"The definition of the set, and its current tools. MCP clients use it at /mcp/@name, others with GET /tools?set=name and POST /tool-calls?set=name.", http.StatusNotFound, http.StatusConflict)
}

func opPut(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPut, "/sets/{name}", "put-set", openapi.TagSets, "Create or change a set of tools",
		"The set is available at every front door within a second, and after restarts. It belongs to your tenant, and no other tenant sees it. A set of the default tenant belongs to the installation: other tenants can see it, and it requires the scope admin. To change a set, send its ETag in If-Match: if somebody else has changed it since, the answer is 412 and nothing changes.", http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	op.Parameters = []*huma.Param{setParam(), openapi.MatchParam(), {
		Name: "If-None-Match", In: "header", Description: "With *, the set is created only if no set has this name.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"*"}}, Example: "*",
	}}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[toolset.Set]()), true, "The definition of the set.", exampleDefinition())
	op.Responses["200"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": openapi.Header("The new state of the set.", huma.TypeString, `"13"`)}}
	return op
}

func opRemove() huma.Operation {
	op := openapi.Operation(http.MethodDelete, "/sets/{name}", "remove-set", openapi.TagSets, "Remove a set of tools",
		"A set that another set includes, or by which tools are disabled, cannot be removed.", http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	op.Parameters = []*huma.Param{setParam(), openapi.MatchParam()}
	return op
}

func exampleDefinition() map[string]any {
	return map[string]any{"description": "Find and read, change nothing.", "include": []any{map[string]any{"server": "files", "read_only": true}, map[string]any{"tool": "search_*"}}}
}

func exampleDetail() map[string]any {
	detail := exampleItem()
	detail["tools"] = []any{map[string]any{"name": "files__read_text", "server": "files", "tool": "read_text", "enabled": true}}
	return detail
}

func exampleItem() map[string]any {
	return map[string]any{"name": "research", "tenant": "default", "origin": "api", "etag": `"13"`, "by": "ops", "at": "2026-01-02T03:04:05Z", "definition": exampleDefinition()}
}
