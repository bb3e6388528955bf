package usage

import (
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/pkg/schema"
)

// handlers are the operations on usage.
type handlers struct{ calls *calls.Calls }

// Register registers the operation on usage.
func Register(d *httpapi.Document, c *calls.Calls) {
	httpapi.HandleValue(d, opUsage(), "The counts.", example(), (&handlers{c}).usage)
}

// usage serves GET /usage.
func (h *handlers) usage(x *httpapi.Exchange, r *http.Request) (answer UsageReport, err error) {
	answer.Rows = make([]UsageRow, 0)
	q := calls.UsageQuery{From: httpapi.Time(x.Query, "from"), To: httpapi.Time(x.Query, "to"), Interval: calls.UsageInterval(x.Query.Get("interval"))}
	for _, by := range x.Query["by"] {
		q.By = append(q.By, calls.UsageDimension(by))
	}
	limit(&q, &x.Principal, x.Query.Get("tenant"))
	report, err := h.calls.Usage(r.Context(), q)
	if err != nil {
		return answer, err
	}
	answer.From, answer.To, answer.Complete, answer.Total = report.From, report.To, report.Complete, countsOf(&report.Total)
	tenants := slices.Contains(x.Query["by"], "tenant") || slices.Contains(x.Query["by"], "key")
	for i := range report.Lines {
		line := &report.Lines[i]
		row := UsageRow{Key: line.Principal, Server: line.Server, Tool: line.Tool, UsageCounts: countsOf(&line.Counts)}
		if tenants {
			row.Tenant = line.Tenant.OrDefault()
		}
		if !line.Start.IsZero() {
			row.Start = &line.Start
		}
		answer.Rows = append(answer.Rows, row)
	}
	return answer, nil
}

// limit restricts the query to what the principal may see. tenant is the requested tenant, or ""
// for all.
func limit(q *calls.UsageQuery, who *schema.Principal, tenant string) {
	if !who.Has(scope.Admin, scope.AdminTenant, scope.ReadAllCalls) {
		q.Principal = who.Name
	}
	own := who.Tenant.OrDefault()
	all := own == schema.DefaultTenant && who.Has(scope.Admin, scope.ReadAllCalls)
	switch asked := schema.TenantID(tenant); {
	case all && tenant == "":
	case all:
		q.Tenant = &asked
	default:
		if q.Tenant = &own; tenant != "" && !asked.Is(own) {
			nobody := schema.TenantID("\x00") // no tenant has this name
			q.Tenant = &nobody
		}
	}
}

func opUsage() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/usage", "get-usage", openapi.TagUsage, "Show usage by tenant, key, server and tool",
		"Calls per hour, counted from the call records: the counts equal the records of GET /calls, even if processes were killed. Hours are kept for 90 days. "+
			"A call counts in the hour in which it was admitted. With the scope admin or calls:read:all you see your tenant, and all tenants if yours is the default one; with admin:tenant, your tenant; without them, your own calls.")
	op.Parameters = []*huma.Param{
		openapi.QueryParam("from", "The start, rounded down to the hour. The default is 24 hours before the end.", openapi.Time()),
		openapi.QueryParam("to", "The end, rounded up to the hour. The default is now.", openapi.Time()),
		openapi.QueryParam("by", "The grouping: each combination of these values has its own row. Without it there is one row for each interval.", &huma.Schema{Type: huma.TypeArray, Items: openapi.Words("tenant", "key", "server", "tool")}),
		openapi.QueryParam("interval", "The length of time that a row covers. The default is the whole time from start to end.", openapi.Words("hour", "day")),
		openapi.QueryParam("tenant", "Only this tenant.", openapi.String()),
	}
	return op
}

func example() map[string]any {
	counts := map[string]any{
		"calls": 3, "succeeded": 2, "failed": 0, "denied": 1, "expired": 0, "canceled": 0, "unknown": 0, "unfinished": 0, "tool_errors": 0, "held": 0,
		"took_ms": 12.5, "bytes_in": 57, "bytes_out": 1204,
	}
	row := map[string]any{"tenant": "default", "key": "ci"}
	maps.Copy(row, counts)
	return map[string]any{"from": "2026-01-02T03:00:00Z", "to": "2026-01-03T04:00:00Z", "complete": true, "total": counts, "rows": []any{row}}
}
