package calls

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// replayCall serves POST /calls/{id}/replay: a new call with the arguments of one of the caller's
// own. The gate, the quota and the policy judge it like any other.
func (c *handlers) replayCall(x *httpapi.Exchange, r *http.Request) error {
	call := &schema.Call{ID: schema.NewCallID(), Principal: x.Principal}
	call.Trace = x.Trace(r)
	submit.ReadFreshness(r, call)
	id := schema.CallID(r.PathValue("id"))
	var err error
	if call.Timeout, err = x.Timeout(r, c.limits.MaxTimeout); err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	w, err := submit.ReadDurableOptions(r, []byte(id)) // the idempotency key applies to the replay of this call
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	of, err := c.calls.Get(r.Context(), id, x.Principal)
	if err != nil {
		return err
	}
	if call.Arguments, err = c.calls.Arguments(r.Context(), of); err != nil {
		return err
	}
	call.Server, call.Tool, call.ReplayOf = of.Server, of.Tool, of.ID
	w.TellOutcome = true
	return c.runner.Run(x, r, call, w)
}

func (c *handlers) opReplay(d *httpapi.Document) huma.Operation {
	op := openapi.Operation(http.MethodPost, "/calls/{id}/replay", "replay-call", openapi.TagCalls, "Replay a call",
		"Makes a new call of the same tool with exactly the same arguments. It has an id of its own, with replay_of in its state and record, and goes through the policy, quotas and approvals like any other call. "+
			"Arguments are stored for durable calls, calls of batches and held calls; for other calls the answer is 409. An edit by an approver is not repeated.", append(submit.CallStatuses(), http.StatusRequestEntityTooLarge)...)
	op.Parameters = append([]*huma.Param{callIDParam()}, c.runner.StoredCallParams()...)
	op.Responses["200"] = submit.Answered(submit.SchemaAnswer, "The result of the tool: a CompletedCall, outcome completed.", exampleCompleted())
	c.runner.MayHold(d, &op, openapi.Ref(submit.SchemaAnswer))
	return op
}
