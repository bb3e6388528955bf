package state

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func opGet() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/state", "get-state", openapi.TagFleet, "Export the state",
		"The sets, disabled tools, accepted definitions, policy and API keys (without secrets), as one file for PUT /state. It has no sets of the configuration, and lists the keys of the configuration only for comparison.")
	op.Responses["200"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": tagHeader()}}
	return op
}

func opPut(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPut, "/state", "put-state", openapi.TagFleet, "Import a state",
		"Changes the sets and disabled tools to those of the file, and accepts its definitions if the servers offer them. Policy and keys are only compared. Send dry_run=true first: the answer has the differences and the ETag for If-Match. "+
			"If somebody changes the state in between, the answer is 412 and nothing changes. An import is not atomic: a change that fails has an error, and the other changes are made.", http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	op.Parameters = []*huma.Param{
		openapi.QueryParam("dry_run", "Only return the differences; change nothing.", &huma.Schema{Type: huma.TypeBoolean}),
		{Name: "If-Match", In: "header", Description: "The ETag of the version that you change; * changes any version.", Schema: &huma.Schema{Type: huma.TypeString}, Example: `"sha256:71accd489c13"`},
	}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[FabricState]()), true, "The state.", map[string]any{"format": formatV1, "switches": []any{map[string]any{"server": "everything", "tool": "fail", "reason": "Not needed."}}})
	op.Responses["200"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": tagHeader()}}
	return op
}

func tagHeader() *huma.Param {
	return openapi.Header("The ETag of the state, for If-Match.", huma.TypeString, `"sha256:71accd489c13"`)
}

func exampleState() map[string]any {
	return map[string]any{"format": formatV1, "sets": []any{map[string]any{"name": "research", "include": []any{map[string]any{"server": "files"}}}}, "policy": map[string]any{"version": "default"}}
}

func exampleChanges() map[string]any {
	return map[string]any{"dry_run": true, "changes": []any{map[string]any{"part": partSets, "name": "research", "action": add, "done": false}}, "failed": 0, "etag": `"sha256:71accd489c13"`}
}
