package keys

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func opList() huma.Operation {
	return openapi.Operation(http.MethodGet, "/keys", "list-keys", openapi.TagKeys, "List the API keys", "All keys, sorted by name: those of the configuration and those that were created with POST /keys. The answer has no secrets.")
}

func opGet() huma.Operation {
	return openapi.Operation(http.MethodGet, "/keys/{id}", "get-key", openapi.TagKeys, "Show an API key", "The key without its secret, and when it was last used.", http.StatusNotFound)
}

func opCreate(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/keys", "create-key", openapi.TagKeys, "Create an API key",
		"The answer has the secret, which is shown only once. Every front door accepts the key within a second. It cannot have scopes, tools or groups that your own credential does not have. "+
			"Names are unique, so a request that is sent twice creates one key: if the first answer was lost, the second answer is 409, and POST /keys/{id}/rotate creates a new secret.", http.StatusConflict)
	op.DefaultStatus = http.StatusCreated
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[APIKeyRequest]()), true, "The key.", map[string]any{"name": "ci", "owner": "build team", "scopes": []string{"tools:read", "tools:call:files"}})
	op.Responses["201"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": tagHeader(), "Location": openapi.Header("The path of the key.", huma.TypeString, "/keys/4vQxWc0aZkPm")}}
	return op
}

func opUpdate(d *httpapi.Document) huma.Operation {
	op := changing(http.MethodPatch, "/keys/{id}", "update-key", "Change an API key", "Changes the members in the body; the others keep their values. The name and the secret cannot be changed here. Send the ETag of the key in If-Match: if somebody else has changed it since, the answer is 412 and nothing changes.")
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[APIKeyChange]()), true, "The members to change.", map[string]any{"note": "nightly builds"})
	return op
}

func opRotate(d *httpapi.Document) huma.Operation {
	op := changing(http.MethodPost, "/keys/{id}/rotate", "rotate-key", "Give an API key a new secret",
		"The answer has the new secret, which is shown only once. The key keeps its id, calls and limits. The previous secret is accepted during a grace period, so that you can update clients one by one.")
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[APIKeyRotation]()), false, "The grace period and the new expiry.", map[string]any{"grace_seconds": 86400})
	return op
}

func opRevoke() huma.Operation {
	op := openapi.Operation(http.MethodDelete, "/keys/{id}", "revoke-key", openapi.TagKeys, "Revoke an API key",
		"Within a second, no front door accepts the key any more, and its waiting calls are refused.", http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	op.Parameters = []*huma.Param{idParam(), openapi.MatchParam()}
	return op
}

func changing(method, path, id, summary, description string) huma.Operation {
	op := openapi.Operation(method, path, id, openapi.TagKeys, summary, description, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	op.Parameters = []*huma.Param{idParam(), openapi.MatchParam()}
	op.Responses["200"] = &huma.Response{Headers: map[string]*huma.Param{"ETag": tagHeader()}}
	return op
}

func tagHeader() *huma.Param {
	return openapi.Header("The new state of the key.", huma.TypeString, `"13"`)
}

func idParam() *huma.Param { return openapi.PathParam("id", "The id of an API key.", "4vQxWc0aZkPm") }

func exampleKey() map[string]any {
	return map[string]any{
		"id": "4vQxWc0aZkPm", "name": "ci", "owner": "build team", "scopes": []string{"tools:read", "tools:call:files"}, "origin": "api", "etag": `"13"`,
		"created_at": "2026-01-02T03:04:05Z", "created_by": "ops", "changed_at": "2026-01-02T03:04:05Z", "changed_by": "ops", "expires_at": "2026-04-02T03:04:05Z",
	}
}

func exampleNew() map[string]any {
	key := exampleKey()
	key["secret"] = "cyk_4vQxWc0aZkPm_2m0Zr8rY5QdW1bG7uKpXfT3nLcVh9sAe0y1iZk"
	return key
}
