package rest

import (
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

func (a *API) registerCallList() {
	if a.o.Calls.CanList() {
		a.raw(a.opListCalls(), "/calls", a.listCalls)
	}
}

// listCalls is GET /calls: the caller's own calls, as the execution log has them.
func (a *API) listCalls(x *exchange, r *http.Request) error {
	values := x.query
	if who := values.Get("principal"); who != "" && who != x.principal.Name {
		return schema.Errorf(schema.KindForbidden, "You see the calls that you asked for; leave principal out.")
	}
	f := calls.Filter{Server: values.Get("server"), Tool: values.Get("tool"), Batch: values.Get("batch")}
	for _, text := range []struct {
		name string
		into *time.Time
	}{{"since", &f.From}, {"until", &f.To}} {
		if at, err := time.Parse(time.RFC3339, values.Get(text.name)); err == nil {
			*text.into = at
		}
	}
	for _, state := range values["state"] {
		f.States = append(f.States, schema.State(state))
	}
	page, err := a.o.Calls.List(r.Context(), x.principal, f, values.Get("cursor"), number(values, "limit", pageLimit))
	if err != nil {
		return err
	}
	x.send(http.StatusOK, a.fixed.json, encode(page))
	return nil
}

func (a *API) opListCalls() huma.Operation {
	op := operation(http.MethodGet, "/calls", "list-calls", tagCalls, "Your calls",
		"What became of your calls, the newest first, as the execution log has them for some days: who, what, when and how, with digests of arguments and results. A page can be short, or empty, and still have a next.",
		http.StatusBadRequest, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{
		queryParam("server", "Only calls of this server.", aString()), queryParam("tool", "Only calls of this tool.", aString()),
		queryParam("state", "Only calls in these states.", &huma.Schema{Type: huma.TypeArray, Items: callStateWords()}),
		queryParam("principal", "Yourself; others' calls are not shown.", aString()),
		queryParam("batch", "Only those of this batch.", aString()), queryParam("since", "Only those from this time on.", aTime()),
		queryParam("until", "Only those before this time.", aTime()), queryParam("limit", "The most calls on one page; 100 without it.", integers(1, maxPageLimit)),
		queryParam("cursor", "The next of the page before.", aString()),
	}
	op.Responses["200"] = &huma.Response{Description: "A page of calls.", Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(reflect.TypeFor[calls.Page]())}}}
	return op
}
