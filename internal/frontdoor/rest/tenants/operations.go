package tenants

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

func opList() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/tenants", "list-tenants", openapi.TagTenants, "List the tenants",
		"The tenants of the configuration, each with its servers, limits and current use. With the scope admin or calls:read:all of the default tenant you see all tenants, otherwise your own. Without a section tenants in the configuration, the default tenant is the only one.")
	return openapi.Answers(op, "The tenants that you may see.", map[string]any{"tenants": []any{example()}})
}

func opGet() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/tenants/{tenant}", "get-tenant", openapi.TagTenants, "Show a tenant",
		"One tenant, as in GET /tenants. A tenant that you may not see returns the same answer as one that does not exist.", http.StatusNotFound)
	return openapi.Answers(op, "The tenant.", example())
}

func example() map[string]any {
	return map[string]any{
		"id": "billing", "servers": map[string]any{"patterns": []string{"ledger", "invoices-*"}, "seen": 4}, "sets": []string{"research"}, "policy": map[string]any{"own": true, "rules": 2}, "limits": map[string]any{"weight": 2}, "retention_seconds": 86400,
		"receivers": map[string]any{"hosts": []string{"hooks.example.com"}, "slack_channels": 0}, "keys": 3, "held": 1, "waiting": 0,
		"usage": map[string]any{"from": "2026-01-02T03:00:00Z", "to": "2026-01-03T04:00:00Z", "complete": true, "calls": 120, "failed": 2, "tool_errors": 1, "denied": 4, "expired": 0, "unknown": 0, "held": 5, "unfinished": 1},
	}
}
