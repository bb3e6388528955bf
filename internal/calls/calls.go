package calls

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/calls/usage"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures [New]. Gate and Chain are required.
type Options struct {
	// Gate decides on calls. Chain runs the calls that may run immediately.
	Gate  *admission.Gate
	Chain *execution.Chain
	// Desk and Ledger hold calls that need an approval. Release runs a held call that FrontDoor
	// has claimed: if its context ends, it returns and the call continues. progress may be nil;
	// otherwise it receives progress as [schema.Call].Progress does. Without Desk and Ledger, no
	// call is held.
	Desk    *approval.Desk
	Ledger  *ledger.Ledger
	Release func(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error)
	// Durable runs durable calls. If nil, they are refused.
	Durable *batch.Runner
	// Records is the store of call records. If nil, calls are not listed.
	Records *records.Recorder
	// Traced reports whether this process records spans for calls.
	Traced bool
	// Usage counts the calls of the log by hour. If nil, usage is not counted.
	Usage *usage.Usage
	// CheckCallback returns an error if a callback URL of a caller of the tenant is not allowed. If
	// nil, callbacks are disabled.
	CheckCallback func(url string, tenant schema.TenantID) error
	// ApprovalLost reports whether the approval of a call may have been lost with a damaged data
	// folder. If nil, none was lost.
	ApprovalLost func(callID schema.CallID) bool
	// FrontDoor is the id of this front door.
	FrontDoor string
}

// Calls is the entry point for calls. It is safe for concurrent use.
type Calls struct {
	o Options
	// dryRun allows one dry run at a time, because each uses a CPU for seconds.
	dryRun sync.Mutex
}

// New returns the entry point for calls.
func New(o Options) *Calls { return &Calls{o: o} }

// Limits bounds one call.
type Limits = admission.Limits

// Limits returns the effective limits.
func (c *Calls) Limits() Limits { return c.o.Gate.Limits() }

// CanHold reports whether calls can be held for approval here.
func (c *Calls) CanHold() bool { return c.o.Desk != nil && c.o.Ledger != nil }

// CanStore reports whether durable calls are accepted here.
func (c *Calls) CanStore() bool { return c.o.Durable != nil }

// CanList reports whether calls can be listed here.
func (c *Calls) CanList() bool { return c.o.Records != nil }

// CheckMethod returns an error if a request other than tools/call must not run, and nil if it
// may. It runs nothing.
func (c *Calls) CheckMethod(call *schema.Call) error { return c.o.Gate.CheckMethod(call) }

// Request is a call and the options of its caller.
type Request struct {
	// Call is the call to run. Submit sets its ID, and may replace it when it stores the call.
	Call *schema.Call
	// Durable requests a call that outlives its caller: it is stored before it runs.
	Durable bool
	// Key is the caller's idempotency key, or "". Fingerprint is the digest of the request that
	// carries the key. A call with a key is durable.
	Key, Fingerprint string
	// CallbackURL is notified when the call ends. It may be "". A call with a callback is
	// durable.
	CallbackURL string
	// Async is set if the caller does not wait for the result of a durable call.
	Async bool
}

func (r *Request) durable() bool { return r.Durable || r.Key != "" || r.CallbackURL != "" }

// Outcome is the outcome of Submit. Exactly one field is set.
type Outcome struct {
	// Result is the tool's result.
	Result *schema.Result
	// Held is set if the call waits for an approval.
	Held *Held
	// Accepted is set if the call is stored and continues in the background.
	Accepted *Accepted
}

// Accepted is a call that was stored.
type Accepted struct {
	CallID schema.CallID
	// Replayed is set if the call was accepted earlier with the same idempotency key.
	Replayed bool

	ticket *batch.Ticket // nil if the call must be awaited by its id
	call   *schema.Call
}

// Submit admits the call once. The outcome is its result, a held call, or an accepted call if
// the caller or the policy requires a durable one. A call that a standing permission approves
// runs as if it had never been held.
//
// The error is a *schema.Error: a refusal, or the reason why the call has no result. Errors of
// durable calls: KindKeyReused for a key that another request used; KindInvalidRequest for a
// callback that is not allowed; KindQuota; KindUnavailable if the call cannot be stored.
func (c *Calls) Submit(ctx context.Context, r Request) (Outcome, error) {
	if r.durable() {
		return c.store(ctx, &r, nil)
	}
	a, err := c.o.Chain.Submit(ctx, r.Call)
	switch {
	case err != nil:
		return Outcome{}, err
	case a.Held != nil:
		return c.hold(ctx, &r, a.Held)
	case a.Durable != nil:
		return c.store(ctx, &r, a.Durable)
	}
	return Outcome{Result: a.Result}, nil
}

// store accepts a durable call. verdict is the gate's verdict, or nil if the gate has not been
// asked yet.
func (c *Calls) store(ctx context.Context, r *Request, verdict *admission.Verdict) (Outcome, error) {
	switch {
	case c.o.Durable == nil && verdict != nil:
		return Outcome{}, schema.Errorf(schema.KindUnavailable, "The policy requires a durable call, and durable calls are not available here.").WithCall(r.Call.ID)
	case c.o.Durable == nil:
		return Outcome{}, schema.Errorf(schema.KindUnavailable, "Durable calls are not available here; send the call without Prefer, Idempotency-Key and callback.")
	}
	if err := c.CheckCallback(r.CallbackURL, r.Call.Principal.Tenant); err != nil {
		return Outcome{}, err
	}
	t, err := c.o.Durable.Calls.Submit(ctx, batch.Submission{
		Call: r.Call, CallbackURL: r.CallbackURL, Key: r.Key, Fingerprint: r.Fingerprint, Waited: !r.Async, Verdict: verdict,
	})
	switch {
	case err != nil:
		return Outcome{}, err
	case t.Held != nil:
		return c.hold(ctx, r, t.Held)
	}
	r.Call.ID = t.CallID
	if t.Replayed {
		if held, err := stillHeld(ctx, c, t.CallID, r.Call.Principal); held != nil || err != nil {
			return Outcome{Held: held}, err
		}
	}
	return Outcome{Accepted: &Accepted{CallID: t.CallID, Replayed: t.Replayed, ticket: t, call: r.Call}}, nil
}

// CheckCallback returns an error if a caller of the tenant cannot use the URL as callback now. It
// returns nil for an allowed or empty URL.
func (c *Calls) CheckCallback(url string, tenant schema.TenantID) error {
	switch {
	case url == "":
		return nil
	case c.o.CheckCallback == nil:
		return schema.Errorf(schema.KindInvalidRequest, "Callbacks are not enabled here; the operator enables them with webhooks.secrets_file. Omit callback_url and poll GET /calls/{id}.")
	}
	return c.o.CheckCallback(url, tenant)
}

// hold returns a held call to its caller, or runs it if it is already approved.
func (c *Calls) hold(ctx context.Context, r *Request, h *approval.Held) (Outcome, error) {
	if !h.Run {
		held := heldOf(h.Approval)
		held.Token = h.Token
		return Outcome{Held: held}, nil
	}
	id := h.Approval.CallID
	if r.Async {
		c.runDetached(ctx, h.Approval)
		return Outcome{Accepted: &Accepted{CallID: id}}, nil
	}
	res, err := c.o.Release(ctx, h.Approval, r.Call.Progress)
	if err != nil {
		return Outcome{}, schema.AsError(err).WithCall(id)
	}
	return Outcome{Result: res}, nil
}

// stillHeld returns the call of a repeated idempotency key, or nil if it is not held. The error tells a
// caller who confirms its own call what to do without the token, which only the first answer has.
func stillHeld(ctx context.Context, c *Calls, id schema.CallID, who schema.Principal) (*Held, error) {
	if c.stored(id) {
		return nil, nil // calls in a journal are held only as part of a batch
	}
	s, err := c.Get(ctx, id, who)
	switch {
	case err != nil:
		return nil, schema.AsError(err).WithCall(id)
	case s.State != schema.StateHeld || s.Held == nil:
		return nil, nil
	case s.Held.ByCaller:
		return nil, schema.Errorf(schema.KindConflict, "The call with this Idempotency-Key is held until you confirm it with the confirmation_id of the first answer. If you do not have it, cancel the call with POST /calls/%s/cancel, and send it with a new key.", id).WithCall(id)
	}
	s.Held.Replayed = true
	return s.Held, nil
}

// runDetached runs an approved call without waiting for it.
func (c *Calls) runDetached(ctx context.Context, a *ledger.Approval) {
	gone, leave := context.WithCancel(ctx)
	leave()
	_, _ = c.o.Release(gone, a, nil) // the outcome is stored with the approval
}

// Await waits until an accepted call of the principal has ended or is suspended. If ctx ends
// first, Await returns its error and the call continues.
func (c *Calls) Await(ctx context.Context, a *Accepted, who schema.Principal) (*Status, error) {
	if a.ticket == nil || a.Replayed {
		s, err := c.wait(ctx, a.CallID, who, noDeadline, true)
		if err == nil && !s.State.Ended() && s.State != schema.StateSuspended {
			err = ctx.Err()
		}
		return s, err
	}
	rec, err := c.o.Durable.Calls.Wait(ctx, who.Tenant, a.ticket)
	if err != nil {
		return nil, err
	}
	if rec.Input {
		return c.wait(ctx, a.CallID, who, noDeadline, true)
	}
	return c.ofResult(a, rec), nil
}

// noDeadline is a wait that only the context ends.
const noDeadline = 24 * 365 * time.Hour

// ErrInProgress is the error for a request that repeats an idempotency key before the original call
// has ended.
func ErrInProgress(id schema.CallID) error {
	return schema.Errorf(schema.KindConflict, "The call with this Idempotency-Key is still running; GET /calls/%s returns its state, and the same request returns its answer once it has ended.", id).WithCall(id).RetryableAfter(time.Second)
}
