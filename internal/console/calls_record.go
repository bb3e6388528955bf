package console

import (
	"context"
	"net/http"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

// callAddress returns the address of the page of a call that another principal may have made. Its
// record is found by its admission time.
func callAddress(id string, admitted time.Time) string {
	return at(Root+"/call", "id", id, "at", admitted.UTC().Format(time.RFC3339))
}

// callOfOther serves the page of a call that another principal made. It shows the record of the call:
// only its caller may see its arguments and results. Administrators of its tenant can settle it.
// Without the admission time of the call it redirects to the audit records of the call; links of audit
// records lead here. none is the error for a call that the user may not see.
func (c callPages) callOfOther(w http.ResponseWriter, r *http.Request, v Visit, id string, none error) error {
	page := callPage{Token: v.Token(Root + "/call"), Done: doneOf(r, v), Other: true, At: r.URL.Query().Get("at")}
	if admitted, ok := timeOf(page.At); ok {
		everyone := "*"
		record, err := c.record(r.Context(), v, id, admitted, &callyard.ListCallsParams{Principal: &everyone})
		if err != nil {
			return err
		}
		page.R = record
	}
	switch {
	case page.R != nil:
	case c.isAudited(r.Context(), v, id):
		http.Redirect(w, r, at(auditPath, "call", id), http.StatusSeeOther)
		return nil
	default:
		return none
	}
	rec := page.R
	page.C = callyard.Call{
		ID: rec.ID, State: rec.State, Server: rec.Server, Tool: text(rec.Tool), ToolError: rec.ToolError, Created: rec.Created, Ended: rec.Ended,
		Worker: rec.Worker, BatchID: rec.BatchID, CustomID: rec.CustomID, ReplayOf: rec.ReplayOf, ApprovalID: rec.ApprovalID,
	}
	if rec.Attempt > 0 {
		page.C.Attempt = &rec.Attempt
	}
	page.Again = wasGivenUp(rec)
	page.Settle = rec.State == "unknown" && isDurable(rec) || page.Again
	page.NoSettle = page.Settle && !c.maySettle(r.Context(), v)
	live := page.Settle || isOpen(rec.State) // a settled call can run again
	page.Events = timeLine(&page.C, rec)
	page.Trace, page.TraceURL = c.traceOf(&page.C, rec)
	if rec.Error != nil {
		page.Detail, page.Kind = rec.Error.Detail, rec.Error.Kind
	}
	return c.render(w, v, http.StatusOK, "call", view{Title: page.C.Tool + " on " + page.C.Server, Here: Root + "/calls", Live: live, Page: page})
}

// maySettle reports whether the user's key may settle calls. The front door requires the same scopes for
// that as for the list of API keys.
func (c callPages) maySettle(ctx context.Context, v Visit) bool {
	return schema.KindOf(c.managesKeys(ctx, v)) != schema.KindForbidden
}

// isDurable reports whether a call is stored. The outcome of any other call cannot be settled.
func isDurable(rec *callyard.CallRecord) bool { return rec.Durable != nil && *rec.Durable }

// wasGivenUp reports whether every attempt at the call failed, as far as its record shows it: a stored call
// that was attempted and did not start is tried again until it is given up, and so is one that is safe to
// repeat and has no known outcome.
func wasGivenUp(rec *callyard.CallRecord) bool {
	if rec.State != "failed" || !isDurable(rec) || rec.Attempt == 0 || rec.Error == nil {
		return false
	}
	switch schema.Kind(rec.Error.Kind) {
	case schema.KindUnavailable, schema.KindServerFailed, schema.KindQuota, schema.KindOutcomeUnknown:
		return true
	}
	return false
}

// isAudited reports whether the user may see audit records of a call.
func (c callPages) isAudited(ctx context.Context, v Visit, id string) bool {
	limit := 1
	list, err := get[callyard.AuditRecordList](ctx, c.Console, v, with(api.ListAudit, &callyard.ListAuditParams{Call: &id, Limit: &limit}))
	return err == nil && len(list.Records) > 0
}

// maxLogPages limits the search for one call among those of the same second.
const maxLogPages = 5

// record finds a call record by its admission time, among those that match of. Times in a query have
// whole seconds. It returns nil if the log does not have the call, if the call is not among the first
// of its second, or if the key may not see it.
func (c callPages) record(ctx context.Context, v Visit, id string, admitted time.Time, of *callyard.ListCallsParams) (*callyard.CallRecord, error) {
	since, limit, params := admitted.Truncate(time.Second), 500, *of
	until := since.Add(time.Second)
	params.Since, params.Until, params.Limit = &since, &until, &limit
	for range maxLogPages {
		list, err := get[callyard.CallList](ctx, c.Console, v, with(api.ListCalls, &params))
		if schema.KindOf(err) == schema.KindForbidden {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Calls {
			if list.Calls[i].ID == id {
				return &list.Calls[i], nil
			}
		}
		if params.Cursor = list.Next; params.Cursor == nil {
			break
		}
	}
	return nil, nil
}
