package rest

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/record"
	"github.com/callyard/callyard/pkg/schema"
)

func (a *API) registerCallList() {
	if a.o.Records != nil {
		a.raw(a.opListCalls(), "/calls", a.listCalls)
	}
}

// listCalls is GET /calls: the caller's own calls, as the execution log has them.
func (a *API) listCalls(x *exchange, r *http.Request) error {
	values, err := query(r, "server", "tool", "state", "principal", "batch", "since", "until", "limit", "cursor")
	if err != nil {
		return err
	}
	if who := values.Get("principal"); who != "" && who != x.principal.Name {
		return schema.Errorf(schema.KindForbidden, "You see the calls that you asked for; leave principal out.")
	}
	f := record.Filter{Principals: []string{x.principal.Name}, Server: values.Get("server"), Tool: values.Get("tool"), Batch: values.Get("batch")}
	for _, text := range []struct {
		name string
		into *time.Time
	}{{"since", &f.From}, {"until", &f.To}} {
		if v := values.Get(text.name); v != "" {
			if *text.into, err = time.Parse(time.RFC3339, v); err != nil {
				return schema.Errorf(schema.KindInvalidRequest, "The query parameter %s is a time like 2026-01-02T15:04:05Z.", text.name)
			}
		}
	}
	if v := values.Get("state"); v != "" {
		for state := range strings.SplitSeq(v, ",") {
			if !record.State(state).Known() {
				return schema.Errorf(schema.KindInvalidRequest, "The query parameter state takes held, queued, running, succeeded, failed, denied, expired, canceled and unknown, with commas between.")
			}
			f.States = append(f.States, record.State(state))
		}
	}
	limit, err := limitOf(values.Get("limit"), 100, 1000)
	if err != nil {
		return err
	}
	found, next, err := a.o.Records.List(r.Context(), f, values.Get("cursor"), limit)
	if err != nil {
		return err
	}
	page := record.Page{Calls: make([]record.View, 0, len(found)), Next: next}
	for i := range found {
		page.Calls = append(page.Calls, found[i].View())
	}
	x.send(http.StatusOK, a.fixed.json, encode(page))
	return nil
}

func (a *API) opListCalls() huma.Operation {
	op := operation(http.MethodGet, "/calls", "list-calls", tagCalls, "Your calls",
		"What became of your calls, the newest first, as the execution log has them for some days: who, what, when and how, with digests of arguments and results. A page can be short, or empty, and still have a next.",
		http.StatusBadRequest, http.StatusServiceUnavailable)
	op.Parameters = []*huma.Param{
		queryParam("server", "Only calls of this server.", huma.TypeString), queryParam("tool", "Only calls of this tool.", huma.TypeString),
		queryParam("state", "Only those in these states, with commas between.", huma.TypeString), queryParam("principal", "Yourself; others' calls are not shown.", huma.TypeString),
		queryParam("batch", "Only those of this batch.", huma.TypeString), queryParam("since", "Only those from this time on.", huma.TypeString),
		queryParam("until", "Only those before this time.", huma.TypeString), queryParam("limit", "At most so many.", huma.TypeInteger),
		queryParam("cursor", "The next of the page before.", huma.TypeString),
	}
	op.Responses["200"] = &huma.Response{Description: "A page of calls.", Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(reflect.TypeFor[record.Page]())}}}
	return op
}
