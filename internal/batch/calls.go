package batch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Calls are durable calls by their ids: the single ones, and those of batches. It is safe
// for concurrent use.
type Calls struct {
	o             *Options
	ids           *IDs
	jobs          *jobs
	backlog       *backlog
	finder        *finder
	acceptor      *acceptor
	conversations *conversations
}

// Wait returns how the call of the tenant ended. When ctx ends first its error is returned, and the call
// continues.
func (c *Calls) Wait(ctx context.Context, tenant schema.TenantID, t *Ticket) (*journal.ResultRecord, error) {
	if t.it == nil {
		return c.finder.awaitResult(ctx, tenant, t.CallID)
	}
	select {
	case <-t.it.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t.it.result != nil {
		return t.it.result, nil
	}
	return c.finder.awaitResult(ctx, tenant, t.CallID) // another front door has it now
}

// Status returns the state of a durable call of the principal. It waits for the call to end
// until ctx ends or the time wait has passed. KindNotFound: the call does not exist, is not
// kept any more, or belongs to another principal.
func (c *Calls) Status(ctx context.Context, id schema.CallID, who schema.Principal, wait time.Duration) (*Status, error) {
	s, err := c.finder.standing(ctx, id, who, wait)
	if err != nil || s.Result == nil || !s.Result.Input {
		return s, err
	}
	return c.conversations.follow(ctx, s, who, wait)
}

// ResultBody returns the bytes that the tool of the tenant's call with the id answered,
// wherever they lie.
func (c *Calls) ResultBody(ctx context.Context, tenant schema.TenantID, id schema.CallID, rec *journal.ResultRecord) ([]byte, error) {
	journalID, _, _ := ParseCallID(id)
	return resultBody(ctx, c.o.Store, tenant, journalID, rec)
}

// Cancel takes back a durable call that has not left, whether it waits for its
// turn, for its server, for its quota or for an approval; one that runs is asked to stop.
func (c *Calls) Cancel(ctx context.Context, id schema.CallID, who schema.Principal) (*Status, error) {
	s, err := c.Status(ctx, id, who, 0)
	if err != nil || s.Ended() {
		return s, err
	}
	switch s.State {
	case schema.StateHeld:
		if _, err := c.o.Desk.Cancel(ctx, s.Head, who); err != nil {
			return nil, err
		}
	case schema.StateSuspended:
		mine, err := c.conversations.withdraw(ctx, s, who)
		if err == nil && !mine {
			return c.Cancel(ctx, id, who) // it was answered just now
		}
		if err != nil {
			return nil, err
		}
	default:
		c.jobs.takeBack(s.Head)
		if err := c.o.Router.Cancel(s.Head); err != nil {
			return nil, err
		}
	}
	return c.Status(ctx, id, who, cancelWait)
}

// cancelWait is how long a call that was canceled is given to end.
const cancelWait = 2 * time.Second

// Confirm takes the caller's yes or no to a call of its own that is held, where no
// token for it was given to anybody; see [approval.Desk.ConfirmOwn]. A call that was
// held before its caller's eyes is confirmed with its token: KindForbidden.
func (c *Calls) Confirm(ctx context.Context, callID schema.CallID, approve bool, who schema.Principal) error {
	if _, _, ok := ParseCallID(callID); !ok {
		return schema.Errorf(schema.KindForbidden, "This call is not part of a batch; confirm it with the confirmation_id of its answer: POST /confirmations/{id}.").WithCall(callID)
	}
	if _, _, ok := c.ids.Find(callID, who.Name); !ok {
		return schema.Errorf(schema.KindNotFound, "You have no held call %q.", callID)
	}
	_, err := c.o.Desk.ConfirmOwn(ctx, callID, approve, who)
	return err
}

// Answer passes the caller's answers to the questions of a round, by the server's own ids,
// to the server of a stored call. Answers to questions that are not open change nothing.
// While questions are left, the call keeps waiting; otherwise the next round runs. Errors:
// KindNotFound as [Calls.Status]; KindTooLarge; and those of [admission.Gate.Check], after
// which the question is still open.
func (c *Calls) Answer(ctx context.Context, id schema.CallID, who schema.Principal, round int, answers map[string]json.RawMessage) error {
	for range answerTries {
		s, err := c.Status(ctx, id, who, 0)
		if err != nil || s.State != schema.StateSuspended || s.Round != round {
			return err
		}
		sub, rec, err := c.conversations.next(ctx, s, answers)
		if err != nil || sub == nil {
			return err
		}
		if mine, err := c.conversations.proceed(ctx, s, who, *sub, *rec); mine || err != nil {
			return err
		}
	}
	return schema.Errorf(schema.KindConflict, "Several requests answer this call concurrently; check its state.").WithCall(id)
}

// answerTries is how often somebody else may be faster.
const answerTries = 8

// resultBody reads what a call of a journal was answered.
func resultBody(ctx context.Context, store *journal.Store, tenant schema.TenantID, journalID schema.BatchID, rec *journal.ResultRecord) ([]byte, error) {
	if rec.BodyObject.Name != "" {
		if own, _, ok := ParseCallID(rec.CallID); ok {
			journalID = own // a conversation may have gone on in another journal
		}
	}
	return store.ResultBody(ctx, tenant, journalID, rec)
}
