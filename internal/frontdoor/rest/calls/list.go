package calls

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// anyPrincipal selects the calls of all principals.
const anyPrincipal = "*"

// listFilter returns the filter of listed calls: these tenants and these principals, or all principals if
// nil. Auditors and administrators of a tenant see its calls. Those of the default tenant operate
// the installation and see the calls of all tenants. If tenant is not "", only its calls are
// listed, which are none if who may not see them.
func listFilter(who *schema.Principal, asked, tenant string) (of schema.Tenants, principals []string, err error) {
	if of, principals, err = seenBy(who, asked); err != nil || tenant == "" {
		return of, principals, err
	}
	if id := schema.TenantID(tenant); of.Include(id) {
		return schema.OnlyTenant(id), principals, nil
	}
	return schema.Tenants{}, principals, nil
}

// seenBy is listFilter without the filter by tenant.
func seenBy(who *schema.Principal, asked string) (of schema.Tenants, principals []string, err error) {
	of = schema.OnlyTenant(who.Tenant)
	if asked == "" || asked == who.Name {
		return of, []string{who.Name}, nil
	}
	if who.Grant == nil || !who.Has(scope.ReadAllCalls, scope.Admin, scope.AdminTenant) {
		return schema.Tenants{}, nil, schema.Errorf(schema.KindForbidden, "You can list only your own calls; omit principal. The calls of others need a key with the scope calls:read:all or with the role auditor, tenant-admin or platform-admin.")
	}
	if who.Tenant.Is(schema.DefaultTenant) && who.Has(scope.ReadAllCalls, scope.Admin) {
		of = schema.AllTenants()
	}
	if asked == anyPrincipal {
		return of, nil, nil
	}
	return of, []string{asked}, nil
}

// listCalls serves GET /calls: the records of the caller's own calls, or those of other
// principals; see [listFilter].
func (c *handlers) listCalls(x *httpapi.Exchange, r *http.Request) (page calls.Page, err error) {
	values := x.Query
	of, principals, err := listFilter(&x.Principal, values.Get("principal"), values.Get("tenant"))
	if err != nil {
		return page, err
	}
	f := calls.Filter{
		Principals: principals, Server: schema.ServerID(values.Get("server")), Tool: values.Get("tool"), Batch: schema.BatchID(values.Get("batch")),
		From: httpapi.Time(values, "since"), To: httpapi.Time(values, "until"),
	}
	for _, state := range values["state"] {
		f.States = append(f.States, schema.State(state))
	}
	return c.calls.List(r.Context(), of, f, values.Get("cursor"), httpapi.Number(values, "limit", httpapi.PageLimit))
}

func exampleCalls() map[string]any {
	return map[string]any{"next": "1767323045000-0", "calls": []any{map[string]any{
		"id": "call_06b2t8m3c0w3v2q5n7k9a1d4fz", "state": "succeeded", "principal": "ci", "server": "everything", "method": "tools/call", "tool": "echo", "decision": "allowed",
		"created": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:04:06Z", "attempt": 1, "worker": "worker-1-7f3k2a", "took_ms": 12.5, "arguments_bytes": 19, "result_bytes": 51,
	}}}
}

func opListCalls() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/calls", "list-calls", openapi.TagCalls, "List your calls",
		"The records of your calls, newest first: caller, tool, times and outcome, with digests of arguments and results. Call records are kept for 7 days, or as the operator configured. A page can be short or empty and still have a next cursor.")
	op.Parameters = []*huma.Param{
		openapi.QueryParam("server", "Only calls of this server.", openapi.String()), openapi.QueryParam("tool", "Only calls of this tool.", openapi.String()),
		openapi.QueryParam("state", "Only calls in these states.", &huma.Schema{Type: huma.TypeArray, Items: submit.CallStateWords()}),
		openapi.QueryParam("principal", "The principal whose calls are listed; the default is you. With the scope calls:read:all, admin or admin:tenant it can be another principal of your tenant, or * for all of them. In the default tenant, calls:read:all and admin cover the principals of all tenants.", openapi.String()),
		openapi.QueryParam("tenant", "Only calls of this tenant. For a tenant that you may not see, the list is empty.", openapi.String()),
		openapi.QueryParam("batch", "Only calls of this batch.", openapi.String()), openapi.QueryParam("since", "Only calls admitted at or after this time.", openapi.Time()),
		openapi.QueryParam("until", "Only calls admitted before this time.", openapi.Time()), openapi.QueryParam("limit", "The maximum number of calls on a page; the default is 100.", openapi.Integers(1, httpapi.MaxPageLimit)),
		openapi.QueryParam("cursor", "The member next of the previous page.", openapi.String()),
	}
	return op
}
