package calls

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Confirmation is a caller's decision on its own held call.
type Confirmation struct {
	// Token is the single-use token of the held call.
	Token string
	// Confirm runs the call. If false, the call is denied.
	Confirm   bool
	Principal schema.Principal
	// Attempt identifies the request. The same attempt may repeat the request if it is unknown
	// whether the token was spent. With Replay, an attempt that already spent the token gets its
	// answer again.
	Attempt string
	Replay  bool
	// Async is set if the caller does not wait for the result.
	Async bool
	// Progress receives the progress of the call while the caller waits, as [schema.Call].Progress
	// does. It may be nil.
	Progress func(params []byte)
}

// Confirmed is the outcome of a confirmation.
type Confirmed struct {
	CallID     schema.CallID
	ApprovalID schema.ApprovalID
	// Replayed is set if the same attempt had already spent the token.
	Replayed bool
	// Denied is set if the call was denied and never runs.
	Denied bool
	// Result is the tool's result. It is nil for a denial and with Async.
	Result *schema.Result
}

// replayWait is the maximum time that a repeated confirmation waits for its call.
const replayWait = 10 * time.Minute

// Confirm spends the token of a held call. Errors: KindNotFound for a token that is unknown,
// spent, or another principal's (the error names the call if the caller may know it);
// KindExpired; KindForbidden if another principal must approve; KindKeyReused for an attempt that
// made the opposite decision before; KindUnavailable; and the errors of the call itself. The
// outcome names the call even with an error, if it is known.
func (c *Calls) Confirm(ctx context.Context, q Confirmation) (Confirmed, error) {
	a, err := c.o.Desk.Confirm(ctx, q.Token, q.Confirm, q.Principal, q.Attempt, c.o.FrontDoor)
	if schema.KindOf(err) == schema.KindNotFound && q.Replay {
		return c.confirmedBefore(ctx, q, err)
	}
	if err != nil {
		return Confirmed{}, err
	}
	done := Confirmed{CallID: a.CallID, ApprovalID: a.ID, Denied: !q.Confirm}
	switch {
	case done.Denied:
		return done, nil
	case q.Async:
		c.runDetached(ctx, a)
		return done, nil
	}
	if done.Result, err = c.o.Release(ctx, a, q.Progress); err != nil {
		return done, schema.AsError(err).WithCall(a.CallID)
	}
	return done, nil
}

// confirmedBefore repeats the answer to a confirmation if the same attempt spent the token.
// Otherwise it returns refusal.
func (c *Calls) confirmedBefore(ctx context.Context, q Confirmation, refusal error) (Confirmed, error) {
	a, confirmed, err := c.o.Desk.Confirmed(ctx, q.Token, q.Principal, q.Attempt)
	switch {
	case err != nil:
		return Confirmed{}, err
	case a == nil:
		return Confirmed{}, refusal
	}
	done := Confirmed{CallID: a.CallID, ApprovalID: a.ID}
	if confirmed != q.Confirm {
		return done, schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for the opposite answer; nothing was changed. GET /calls/%s returns the outcome of the call.", a.CallID).WithCall(a.CallID)
	}
	if done.Replayed, done.Denied = true, !confirmed; done.Denied {
		return done, nil
	}
	s, err := c.Wait(ctx, a.CallID, q.Principal, replayWait)
	if err == nil {
		done.Result, err = c.Result(ctx, s)
	}
	return done, err
}

// ConfirmHeld confirms or denies a held call in a batch of the principal. Such a call has no
// token. Errors: those of [Calls.Confirm]; KindForbidden for a call that has a token.
func (c *Calls) ConfirmHeld(ctx context.Context, id schema.CallID, confirm bool, who schema.Principal) error {
	return c.o.Durable.Calls.Confirm(ctx, id, confirm, who)
}

// HeldCall is a call of a batch that waits for an approval. If ByCaller is set, the caller
// confirms it with [Calls.ConfirmHeld].
type HeldCall struct {
	Held

	Index           uint64
	CustomID        string
	ArgumentsDigest string
}

// ListHeld returns at most limit calls of the principal's batch that wait for an approval, in
// batch order.
func (c *Calls) ListHeld(ctx context.Context, batchID schema.BatchID, who schema.Principal, limit int) ([]HeldCall, error) {
	found, err := c.o.Durable.Batches.HeldCalls(ctx, batchID, who, limit)
	if err != nil {
		return nil, err
	}
	all := make([]HeldCall, len(found))
	for i, h := range found {
		held := heldOf(h.Approval)
		b := h.Approval.Bound()
		held.Server, held.Tool = b.Server, b.Tool
		all[i] = HeldCall{Held: *held, Index: h.Index, CustomID: h.CustomID, ArgumentsDigest: b.ArgumentsDigest}
	}
	return all, nil
}

// Cancel cancels a call of the principal. A call that is held or was not sent ends as canceled
// and never runs. A running call is asked to stop; it ends with its actual outcome, or as unknown.
// Errors: KindNotFound, also for a plain call; KindConflict for a held call that runs or has ended.
func (c *Calls) Cancel(ctx context.Context, id schema.CallID, who schema.Principal) (*Status, error) {
	if c.stored(id) {
		b, err := c.o.Durable.Calls.Cancel(ctx, id, who)
		if err != nil {
			return nil, err
		}
		return ofStored(b), nil
	}
	a, err := c.o.Desk.Cancel(ctx, id, who)
	switch {
	case schema.KindOf(err) == schema.KindNotFound:
		return nil, schema.Errorf(schema.KindNotFound, "You have no held or durable call %q. A call that is neither is canceled when its caller disconnects.", id)
	case err != nil:
		return nil, err
	}
	return OfApproval(a), nil
}

// Settlement is a person's decision on a call that has an unknown outcome or was given up.
type Settlement struct {
	// As is StateSucceeded, StateFailed, or StateQueued to run the call again.
	As     schema.State
	Reason string
}

// Settle records a person's settlement of a durable call of that person, or of anybody in these
// tenants. The call may have been made by a program that cannot settle it. Errors: KindNotFound;
// KindConflict for a call that is not in a state to be settled; KindInvalidRequest without a reason or
// for another target state.
func (c *Calls) Settle(ctx context.Context, id schema.CallID, by schema.Principal, of schema.Tenants, s Settlement) (*Status, error) {
	v := batch.Verdict{Reason: s.Reason}
	switch s.As {
	case schema.StateSucceeded:
		v.Outcome = journal.Succeeded
	case schema.StateFailed:
		v.Outcome = journal.Failed
	case schema.StateQueued:
		v.Again = true
	default:
		return nil, schema.Errorf(schema.KindInvalidRequest, "A call can be settled as succeeded, as failed, or to run again, but not as %s.", s.As)
	}
	b, err := c.o.Durable.Calls.Settle(ctx, id, by, of, v)
	if err != nil {
		return nil, err
	}
	return ofStored(b), nil
}

// Answer sends the caller's answers to the server of a suspended call, keyed by the server's
// question ids. round must be the current round; answers to other questions are ignored. Errors:
// KindNotFound; KindTooLarge; and refusals of the gate, after which the questions remain open.
func (c *Calls) Answer(ctx context.Context, id schema.CallID, who schema.Principal, round int, answers map[string]json.RawMessage) error {
	return c.o.Durable.Calls.Answer(ctx, id, who, round, answers)
}
