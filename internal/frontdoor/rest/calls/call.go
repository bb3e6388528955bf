package calls

import (
	"net/http"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/submit"
	"github.com/callyard/callyard/pkg/schema"
)

// Register registers the operations on single calls.
func Register(d *httpapi.Document, run *submit.Runner, c *calls.Calls) {
	(&handlers{runner: run, calls: c, limits: c.Limits()}).register(d)
}

// handlers are the operations on single calls.
type handlers struct {
	runner *submit.Runner
	calls  *calls.Calls
	limits calls.Limits
}

func (c *handlers) register(d *httpapi.Document) {
	c.describe(d)
	d.Handle(c.opCallTool(d), c.callTool)
	d.Handle(c.opCall(d), c.call)
	if c.calls.CanHold() {
		d.Handle(opConfirm(d), c.confirm)
		d.Handle(opCallState(d), c.callState)
		d.Handle(opCancelCall(d), c.cancelCall)
		if c.calls.CanStore() {
			d.Handle(opSettle(d), c.settleCall)
		}
		d.Handle(c.opReplay(d), c.replayCall)
	}
	httpapi.HandleValue(d, c.opTestPolicy(d), "The decision on the call.", exampleDecision(), c.testPolicy)
	if c.calls.CanList() {
		httpapi.HandleValue(d, opListCalls(), "A page of calls.", exampleCalls(), c.listCalls)
		httpapi.HandleValue(d, opDryRun(d), "The decisions of the draft, compared with the recorded ones.", nil, c.dryRunPolicy)
	}
}

// callTool serves POST /servers/{id}/tools/{tool}, the hot path. The body is the arguments, the
// answer is the result, both byte for byte.
func (c *handlers) callTool(x *httpapi.Exchange, r *http.Request) error {
	call := &schema.Call{ID: schema.NewCallID(), Server: schema.ServerID(r.PathValue("id")), Tool: r.PathValue("tool"), Principal: x.Principal}
	call.Trace = x.Trace(r)
	submit.ReadFreshness(r, call)
	arguments, err := x.ReadBody(r, c.limits.ArgumentBytes)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	if call.Arguments = arguments; len(arguments) == 0 {
		call.Arguments = []byte("{}")
	}
	if call.Timeout, err = x.Timeout(r, c.limits.MaxTimeout); err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	w, err := submit.ReadDurableOptions(r, arguments)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	return c.runner.Run(x, r, call, w)
}

// call serves POST /calls: the same call with all members in the body.
func (c *handlers) call(x *httpapi.Exchange, r *http.Request) error {
	call := &schema.Call{ID: schema.NewCallID(), Principal: x.Principal}
	call.Trace = x.Trace(r)
	submit.ReadFreshness(r, call)
	limit := c.limits.ArgumentBytes + submit.EnvelopeBytes
	body, err := x.ReadBody(r, limit)
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	w, err := submit.ReadDurableOptions(r, body)
	if err == nil {
		w.TellOutcome = true
		err = c.readCall(x, r, body, call, &w)
	}
	if err != nil {
		return schema.AsError(err).WithCall(call.ID)
	}
	return c.runner.Run(x, r, call, w)
}

func (c *handlers) readCall(x *httpapi.Exchange, r *http.Request, body []byte, call *schema.Call, w *submit.DurableOptions) error {
	limit := c.limits.ArgumentBytes + submit.EnvelopeBytes
	members, err := httpapi.ReadObject(body, limit, c.limits.ArgumentDepth+1, "server", "tool", "arguments", "timeout_ms", "callback_url")
	if err != nil {
		return err
	}
	if err := httpapi.ReadMember(members, "callback_url", false, "a string, an address", &w.Callback); err != nil {
		return err
	}
	if call.Timeout, err = x.Timeout(r, c.limits.MaxTimeout); err != nil {
		return err
	}
	return submit.ReadMembers(members, call, c.limits.MaxTimeout)
}
