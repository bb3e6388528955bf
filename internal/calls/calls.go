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

// Options says what calls are built on. Gate and Chain are required.
type Options struct {
	// Gate decides on calls, and Chain runs those that may run at once.
	Gate  *admission.Gate
	Chain *execution.Chain
	// Desk and Ledger hold calls that need an approval, and Release runs one that
	// FrontDoor has claimed: when its context ends it returns, and the call continues.
	// progress, unless nil, takes its progress as [schema.Call].Progress does.
	// Without them nothing is held.
	Desk    *approval.Desk
	Ledger  *ledger.Ledger
	Release func(ctx context.Context, a *ledger.Approval, progress func(params []byte)) (*schema.Result, error)
	// Durable runs durable calls; nil: none are accepted.
	Durable *batch.Runner
	// Records is the execution log; nil: calls are not listed.
	Records *records.Recorder
	// Traced is whether calls have spans here.
	Traced bool
	// Usage counts the calls of the log by hour; nil: nobody does.
	Usage *usage.Usage
	// CheckCallback returns why an address cannot be called back; nil: callbacks are off.
	CheckCallback func(url string) error
	// ApprovalLost reports whether the approval of a call may have been lost with a
	// damaged data folder; nil: none was.
	ApprovalLost func(callID schema.CallID) bool
	// FrontDoor is the id of this front door.
	FrontDoor string
}

// Calls is the entry. It is safe for concurrent use.
type Calls struct {
	o Options
	// dryRun lets one dry run go at a time: it takes a processor for seconds.
	dryRun sync.Mutex
}

// New returns the entry for calls.
func New(o Options) *Calls { return &Calls{o: o} }

// Limits are the bounds of one call.
type Limits = admission.Limits

// Limits returns the limits in force.
func (c *Calls) Limits() Limits { return c.o.Gate.Limits() }

// CanHold reports whether calls can wait for an approval here.
func (c *Calls) CanHold() bool { return c.o.Desk != nil && c.o.Ledger != nil }

// CanStore reports whether durable calls are accepted here.
func (c *Calls) CanStore() bool { return c.o.Durable != nil }

// CanList reports whether calls are listed here.
func (c *Calls) CanList() bool { return c.o.Records != nil }

// CheckMethod returns why a request that is no call of a tool must not run, nil where it
// may. Nothing is run.
func (c *Calls) CheckMethod(call *schema.Call) error { return c.o.Gate.CheckMethod(call) }

// Request is a call with the wishes of its caller.
type Request struct {
	// Call is the call. Its ID is filled in, and may be replaced when it is stored.
	Call *schema.Call
	// Durable asks for a call that outlives its caller: it is stored before it runs.
	Durable bool
	// Key is the caller's idempotency key, "" for none, and Fingerprint the digest of the
	// request that carries it. A call with a key is durable.
	Key, Fingerprint string
	// CallbackURL is told when the call ends, "" for none. A call with one is durable.
	CallbackURL string
	// Async says that the caller does not wait for the result of a durable call.
	Async bool
}

func (r *Request) durable() bool { return r.Durable || r.Key != "" || r.CallbackURL != "" }

// Outcome is what came of a submitted call. Exactly one of its fields is set.
type Outcome struct {
	// Result is what the tool answered.
	Result *schema.Result
	// Held says that the call waits for an approval.
	Held *Held
	// Accepted says that the call is stored and continues by itself.
	Accepted *Accepted
}

// Accepted is a call that is stored.
type Accepted struct {
	CallID schema.CallID
	// Replayed says that it was accepted before, under the same idempotency key.
	Replayed bool

	ticket *batch.Ticket // nil where the call is not to be waited for by it
	call   *schema.Call
}

// Submit admits the call, once, and returns what came of it: its result; that it is
// held; or that it was accepted, because the caller or the policy wants it durable. A
// call that a standing permission approves runs as if it had never been held.
//
// The error is a *schema.Error: a refusal, or why the call has no result. Errors of
// durable calls: KindKeyReused for a key of another request; KindInvalidRequest for a
// callback that is not allowed; KindQuota; KindUnavailable when it cannot be stored.
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

// store accepts a durable call; verdict is that of the gate where it was asked already.
func (c *Calls) store(ctx context.Context, r *Request, verdict *admission.Verdict) (Outcome, error) {
	switch {
	case c.o.Durable == nil && verdict != nil:
		return Outcome{}, schema.Errorf(schema.KindUnavailable, "The policy requires a durable call, and durable calls are not available here.").WithCall(r.Call.ID)
	case c.o.Durable == nil:
		return Outcome{}, schema.Errorf(schema.KindUnavailable, "Durable calls are not available here; send the call without Prefer, Idempotency-Key and callback.")
	}
	if err := c.CheckCallback(r.CallbackURL); err != nil {
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
	return Outcome{Accepted: &Accepted{CallID: t.CallID, Replayed: t.Replayed, ticket: t, call: r.Call}}, nil
}

// CheckCallback returns why an address cannot be called back when a call or batch has
// ended, nil where it can or is empty.
func (c *Calls) CheckCallback(url string) error {
	switch {
	case url == "":
		return nil
	case c.o.CheckCallback == nil:
		return schema.Errorf(schema.KindInvalidRequest, "Callbacks are not enabled here; the operator enables them with webhooks.secrets_file. Omit callback_url and poll GET /calls/{id}.")
	}
	return c.o.CheckCallback(url)
}

// hold returns a held call to its caller, or runs one that is approved already.
func (c *Calls) hold(ctx context.Context, r *Request, h *approval.Held) (Outcome, error) {
	if !h.Run {
		held := heldOf(h.Approval)
		held.Token = h.Token
		return Outcome{Held: held}, nil
	}
	id := h.Approval.CallID
	if r.Async {
		c.runWithout(ctx, h.Approval)
		return Outcome{Accepted: &Accepted{CallID: id}}, nil
	}
	res, err := c.o.Release(ctx, h.Approval, r.Call.Progress)
	if err != nil {
		return Outcome{}, schema.AsError(err).WithCall(id)
	}
	return Outcome{Result: res}, nil
}

// runWithout has an approved call run without its caller.
func (c *Calls) runWithout(ctx context.Context, a *ledger.Approval) {
	gone, leave := context.WithCancel(ctx)
	leave()
	_, _ = c.o.Release(gone, a, nil) // its end is stored with the approval
}

// Await waits until an accepted call of the principal has ended or is suspended. When ctx
// ends first, its error is returned, and the call continues.
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

// noDeadline is a wait that its context ends.
const noDeadline = 24 * 365 * time.Hour

// UnderWay is the error for a request that came again with its idempotency key while its
// call has not ended.
func UnderWay(id schema.CallID) error {
	return schema.Errorf(schema.KindConflict, "The call with this Idempotency-Key is still running; GET /calls/%s returns its state, and the same request returns its answer once it has ended.", id).WithCall(id).RetryableAfter(time.Second)
}
