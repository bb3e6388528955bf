package calls

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// listCalls is GET /calls: the caller's own calls, as the execution log has them.
func (c *handlers) listCalls(x *httpapi.Exchange, r *http.Request) (page calls.Page, err error) {
	values := x.Query
	if who := values.Get("principal"); who != "" && who != x.Principal.Name {
		return page, schema.Errorf(schema.KindForbidden, "You can list only your own calls; omit principal.")
	}
	f := calls.Filter{
		Server: schema.ServerID(values.Get("server")), Tool: values.Get("tool"), Batch: schema.BatchID(values.Get("batch")),
		From: httpapi.Time(values, "since"), To: httpapi.Time(values, "until"),
	}
	for _, state := range values["state"] {
		f.States = append(f.States, schema.State(state))
	}
	return c.calls.List(r.Context(), x.Principal, f, values.Get("cursor"), httpapi.Number(values, "limit", httpapi.PageLimit))
}

func opListCalls() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/calls", "list-calls", openapi.TagCalls, "List your calls",
		"Your calls in the execution log, which keeps them for some days, newest first: caller, tool, times and outcome, with digests of arguments and results. A page can be short or empty and still have a next.",
		http.StatusBadRequest, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{
		openapi.QueryParam("server", "Only calls of this server.", openapi.String()), openapi.QueryParam("tool", "Only calls of this tool.", openapi.String()),
		openapi.QueryParam("state", "Only calls in these states.", &huma.Schema{Type: huma.TypeArray, Items: submit.CallStateWords()}),
		openapi.QueryParam("principal", "Your own name; calls of others are not shown.", openapi.String()),
		openapi.QueryParam("batch", "Only calls of this batch.", openapi.String()), openapi.QueryParam("since", "Only calls admitted at or after this time.", openapi.Time()),
		openapi.QueryParam("until", "Only calls admitted before this time.", openapi.Time()), openapi.QueryParam("limit", "The maximum number of calls on a page; the default is 100.", openapi.Integers(1, httpapi.MaxPageLimit)),
		openapi.QueryParam("cursor", "The next cursor of the previous page.", openapi.String()),
	}
	return op
}
