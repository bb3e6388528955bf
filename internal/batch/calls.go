package batch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Calls gives access to durable calls by id, both single calls and calls of batches. It is safe
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

// Wait waits for the end of a call of the tenant and returns its result. If ctx ends first, Wait
// returns its error, and the call continues.
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
	return c.finder.awaitResult(ctx, tenant, t.CallID) // another front door owns it now
}

// Status returns the state of a durable call of the principal. It waits up to the given time, or
// until ctx ends, for the call to end. It returns KindNotFound if the call does not exist, is no
// longer kept, or belongs to another principal.
func (c *Calls) Status(ctx context.Context, id schema.CallID, who schema.Principal, wait time.Duration) (*Status, error) {
	s, err := c.finder.standing(ctx, id, who, wait)
	if err != nil || s.Result == nil || !s.Result.Input {
		return s, err
	}
	return c.conversations.follow(ctx, s, who, wait)
}

// ResultBody returns the result bytes of the tenant's call with the id, from the log or from the
// object store.
func (c *Calls) ResultBody(ctx context.Context, tenant schema.TenantID, id schema.CallID, rec *journal.ResultRecord) ([]byte, error) {
	journalID, _, _ := ParseCallID(id)
	return resultBody(ctx, c.o.Store, tenant, journalID, rec)
}

// Cancel cancels a durable call that has not been sent, whether it waits for its turn, its
// server, its quota or an approval. It asks the worker to stop a call that runs.
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
			return c.Cancel(ctx, id, who) // it was answered in the meantime
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

// cancelWait limits the wait for the end of a canceled call.
const cancelWait = 2 * time.Second

// Confirm stores the caller's own approval or denial of its held call, if no confirmation token
// was issued for it; see [approval.Desk.ConfirmOwn]. It returns KindForbidden for a call that was
// held while its caller waited: that one is confirmed with its token.
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

// Answer passes the caller's answers to the input requests of a round, keyed by the server's ids,
// to the server of a stored call. Answers to requests that are not open change nothing. While
// requests remain open, the call keeps waiting; otherwise the next round runs. Errors:
// KindNotFound as for [Calls.Status]; KindTooLarge; and those of [admission.Gate.Check], after
// which the request is still open.
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

// answerTries limits the retries after a concurrent request answered first.
const answerTries = 8

// resultBody reads the result bytes of a call of a journal.
func resultBody(ctx context.Context, store *journal.Store, tenant schema.TenantID, journalID schema.BatchID, rec *journal.ResultRecord) ([]byte, error) {
	if rec.BodyObject.Name != "" {
		if own, _, ok := ParseCallID(rec.CallID); ok {
			journalID = own // a conversation may have continued in another journal
		}
	}
	return store.ResultBody(ctx, tenant, journalID, rec)
}
