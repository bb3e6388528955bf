package calls

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// callState serves GET /calls/{id}.
func (c *handlers) callState(x *httpapi.Exchange, r *http.Request) error {
	wait := time.Duration(httpapi.Number(x.Query, "wait", 0)) * time.Second
	if wait > 0 {
		done, err := x.Wait()
		if err != nil {
			return c.endedOr(x, r, err)
		}
		defer done()
	}
	s, err := c.calls.Wait(r.Context(), schema.CallID(r.PathValue("id")), x.Principal, wait)
	if err != nil {
		return err
	}
	return c.sendCallWith(x, r, s)
}

// sendCallWith answers with the status of a call, including its arguments if the request asks for
// them and they are stored.
func (c *handlers) sendCallWith(x *httpapi.Exchange, r *http.Request, s *calls.Status) error {
	if !slices.Contains(x.Query["include"], "arguments") {
		return c.sendCall(x, r, s)
	}
	args, err := c.calls.Arguments(r.Context(), s)
	if err != nil && schema.KindOf(err) != schema.KindConflict {
		return err
	}
	body, err := c.runner.Body(r.Context(), s)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		body = rawjson.With(body, "arguments", args)
	}
	x.SendJSON(http.StatusOK, body)
	return nil
}

// endedOr answers with the call if it has ended, so that no waiting is necessary. Otherwise it
// returns the error full.
func (c *handlers) endedOr(x *httpapi.Exchange, r *http.Request, full error) error {
	s, err := c.calls.Get(r.Context(), schema.CallID(r.PathValue("id")), x.Principal)
	switch {
	case err != nil:
		return err
	case !s.State.Ended():
		return full
	}
	return c.sendCallWith(x, r, s)
}

// sendCall answers with the status of a call.
func (c *handlers) sendCall(x *httpapi.Exchange, r *http.Request, s *calls.Status) error {
	body, err := c.runner.Body(r.Context(), s)
	if err == nil {
		x.SendJSON(http.StatusOK, body)
	}
	return err
}

// cancelCall serves POST /calls/{id}/cancel.
func (c *handlers) cancelCall(x *httpapi.Exchange, r *http.Request) error {
	s, err := c.calls.Cancel(r.Context(), schema.CallID(r.PathValue("id")), x.Principal)
	if err != nil {
		return err
	}
	return c.sendCall(x, r, s)
}

// SettleRequest is the body of POST /calls/{id}/settle.
type SettleRequest struct {
	As     string `json:"as" enum:"done,failed,run-again" doc:"done: it has run. failed: it has not run and will not run. run-again: run it once more."`
	Reason string `json:"reason" doc:"The reason. At most its first 1000 bytes are stored."`
}

// maxReason is the maximum size of a stored reason, in bytes.
const maxReason = 1000

// settleCall serves POST /calls/{id}/settle: a person states the outcome of a call whose outcome
// is unknown, or that was given up.
func (c *handlers) settleCall(x *httpapi.Exchange, r *http.Request) error {
	members, err := x.ReadMembers(r, 4<<10, 4, "as", "reason")
	if err != nil {
		return err
	}
	var as, reason string
	if err := cmp.Or(
		httpapi.ReadMember(members, "as", true, "done, failed or run-again", &as),
		httpapi.ReadMember(members, "reason", true, "a reason", &reason),
	); err != nil {
		return err
	}
	v := calls.Settlement{Reason: truncate.Head(reason, maxReason)}
	switch as {
	case "done":
		v.As = schema.StateSucceeded
	case "failed":
		v.As = schema.StateFailed
	case "run-again":
		v.As = schema.StateQueued
	default:
		return schema.Errorf(schema.KindInvalidRequest, "The member as must be done, failed or run-again.")
	}
	s, err := c.calls.Settle(r.Context(), schema.CallID(r.PathValue("id")), x.Principal, settledBy(&x.Principal), v)
	if err != nil {
		return err
	}
	return c.sendCall(x, r, s)
}

// settledBy returns the tenants whose calls the principal may settle, besides its own calls. Most calls
// are made by programs whose keys cannot settle them.
func settledBy(who *schema.Principal) schema.Tenants {
	switch {
	case who.Grant == nil: // a key of a file, which sees only its own calls
	case who.Tenant.Is(schema.DefaultTenant) && who.Has(scope.Admin):
		return schema.AllTenants()
	case who.Has(scope.Admin, scope.AdminTenant):
		return schema.OnlyTenant(who.Tenant)
	}
	return schema.Tenants{}
}

func callStateAnswer(d *httpapi.Document) *huma.Response {
	return &huma.Response{Description: "The call.", Content: map[string]*huma.MediaType{"application/json": {Schema: d.SchemaOf(reflect.TypeFor[submit.CallState]()), Example: submit.ExampleCall()}}}
}

func callIDParam() *huma.Param {
	return openapi.PathParam("id", "The id of a call.", "call_06b2t8m3c0w3v2q5n7k9a1d4fz")
}

func opCancelCall(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/calls/{id}/cancel", "cancel-call", openapi.TagCalls, "Cancel a call",
		"Cancels a call that is held or has not been sent: it ends as canceled and never runs. A running call is asked to stop, and ends as succeeded, as failed, or as unknown with cancel_requested. A call that has ended does not change.", http.StatusNotFound, http.StatusConflict)
	op.Parameters = []*huma.Param{callIDParam()}
	op.Responses["200"] = callStateAnswer(d)
	return op
}

func opSettle(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/calls/{id}/settle", "settle-call", openapi.TagCalls, "Settle a call whose outcome is unknown",
		"Records the outcome of a call that was sent and whose outcome is unknown, or that was given up: done, failed, or run-again, which runs it once more for its caller. You can settle your own calls and those of your tenant; with the scope admin in the default tenant, those of all tenants.", http.StatusNotFound, http.StatusConflict)
	op.Parameters = []*huma.Param{callIDParam()}
	op.RequestBody = openapi.JSONBody(d.SchemaOf(reflect.TypeFor[SettleRequest]()), true, "The outcome and the reason.", map[string]any{"as": "done", "reason": "the invoice is in the books"})
	op.Responses["200"] = callStateAnswer(d)
	return op
}
