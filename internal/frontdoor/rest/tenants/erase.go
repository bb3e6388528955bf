package tenants

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// EraseFunc ends everything of a tenant and destroys its data key. It may be repeated. It returns
// what it did even if it returns an error.
type EraseFunc func(ctx context.Context, by *schema.Principal, tenant schema.TenantID) (TenantErasure, error)

// TenantErasure is the answer to DELETE /tenants/{tenant}.
type TenantErasure struct {
	ID schema.TenantID `json:"id" doc:"The id of the tenant." example:"billing"`
	// Found is false if the ID may be mistyped. Permissions that people granted are revoked in any
	// case.
	Found       bool `json:"found" doc:"Whether Callyard had data of a tenant with this id. If false, check the id."`
	Keys        int  `json:"keys" doc:"The API keys that were revoked." example:"3"`
	Held        int  `json:"held" doc:"The held calls that were withdrawn." example:"1"`
	Canceled    int  `json:"canceled" doc:"The single durable calls that were canceled." example:"0"`
	Batches     int  `json:"batches" doc:"The batches that were deleted." example:"2"`
	Sets        int  `json:"sets" doc:"The sets of tools that were removed." example:"1"`
	Permissions int  `json:"permissions" doc:"The standing permissions that were removed." example:"0"`
	Credentials int  `json:"credentials" doc:"The credentials of its people at MCP servers that were removed." example:"4"`
	// Encrypted reports whether the remaining data is unreadable.
	Encrypted bool `json:"encrypted" doc:"Whether the payloads of the tenant were encrypted, so that nobody can read them any more. Without encryption.key_file they are not encrypted, and are deleted when their retention ends."`
}

type eraseInput struct {
	ID      string `path:"tenant" doc:"The id of a tenant." example:"default"`
	Confirm string `query:"confirm" required:"true" minLength:"1" maxLength:"64" doc:"The id of the tenant, repeated as a confirmation." example:"billing"`
}

func opErase() huma.Operation {
	op := openapi.Operation(http.MethodDelete, "/tenants/{tenant}", "erase-tenant", openapi.TagTenants, "Erase a tenant",
		"Removes the data of a tenant and destroys its data key, so that nobody can read its stored arguments and results any more. Remove the tenant from the section tenants first, and its keys from the configuration. "+
			"Its API keys are revoked, its held calls withdrawn, its batches canceled and deleted, and its sets of tools, its standing permissions and the credentials of its people at MCP servers removed. Access that its people gave to programs at the authorization server ends when an approver runs. Records of calls without their payloads, usage and the audit record stay. It can be repeated. If calls still run, the answer is 409 and the data key stays.", http.StatusNotFound, http.StatusConflict)
	return openapi.Answers(op, "The number of removed items of each kind.", map[string]any{"id": "billing", "found": true, "keys": 3, "held": 1, "canceled": 0, "batches": 2, "sets": 1, "permissions": 0, "credentials": 4, "encrypted": true})
}

// erase serves DELETE /tenants/{tenant}.
func (h *handlers) erase(ctx context.Context, in *eraseInput) (TenantErasure, error) {
	x, id := httpapi.Of(ctx), schema.TenantID(in.ID)
	switch {
	case !id.Valid():
		return TenantErasure{}, schema.Errorf(schema.KindNotFound, "The id of a tenant has 1 to 64 letters, digits, - and _; correct the path.")
	case in.Confirm != in.ID:
		return TenantErasure{}, schema.Errorf(schema.KindConflict, "The query does not repeat the id of the tenant. Nothing was erased.")
	case id.Is(schema.DefaultTenant):
		return TenantErasure{}, schema.Errorf(schema.KindConflict, "The default tenant operates the installation and cannot be erased.")
	case h.o.Book.Configured(id):
		return TenantErasure{}, schema.Errorf(schema.KindConflict, "The tenant is still in the section tenants of the configuration. Remove it there, remove its keys from the configuration, restart the front doors, and repeat the request.")
	case h.o.Erase == nil:
		return TenantErasure{}, schema.Errorf(schema.KindUnavailable, "This front door cannot erase tenants.")
	}
	done, err := h.o.Erase(ctx, &x.Principal, id)
	if err != nil {
		return TenantErasure{}, err
	}
	x.Changes(done, nil)
	return done, nil
}
