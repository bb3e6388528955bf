package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Verdict is the decision of a person about a call that is unknown or was given up.
type Verdict struct {
	// Again requests another run. If false, Outcome becomes the outcome of the call.
	Again   bool
	Outcome journal.Outcome
	Reason  string
	by      string
}

// Settle stores the decision of a person about a call that is unknown or dead. The call is one of the
// person, or of anybody in these tenants. Errors: KindNotFound; KindConflict for a call in another
// state, or if another front door currently owns its journal; KindInvalidRequest without a reason.
func (c *Calls) Settle(ctx context.Context, id schema.CallID, by schema.Principal, of schema.Tenants, v Verdict) (*Status, error) {
	if v.Reason == "" {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A reason is required; it is stored with the outcome.")
	}
	v.by = by.Name
	s, err := c.Status(ctx, id, by, 0)
	if schema.KindOf(err) == schema.KindNotFound && of != (schema.Tenants{}) {
		owner, none := c.finder.owner(ctx, of, id)
		switch {
		case none == nil:
			s, err = c.Status(ctx, id, owner, 0)
		case schema.KindOf(none) != schema.KindNotFound:
			err = none
		}
	}
	if err == nil && s.Head != id {
		s, err = c.Status(ctx, s.Head, s.Principal, 0) // the round with the unknown outcome
	}
	if err != nil {
		return nil, err
	}
	return c.settle(ctx, s, v)
}

// settle settles the call with the given state.
func (c *Calls) settle(ctx context.Context, s *Status, v Verdict) (*Status, error) {
	id, who := s.CallID, s.Principal
	if v.Again && s.Call == nil {
		return nil, schema.Errorf(schema.KindConflict, "The record of call %s was lost or has been deleted, so it cannot run again. Settle it as succeeded or failed.", id).WithCall(id)
	}
	if s.Result == nil || s.Result.Outcome != journal.Unknown && s.Result.Outcome != journal.Dead {
		return nil, schema.Errorf(schema.KindConflict, "Call %s is %s; only a call whose outcome is unknown, or that was given up, can be settled.", id, s.State).WithCall(id)
	}
	journalID := journalOf(s)
	if j := c.jobs.find(journalID); j != nil {
		return c.settleHere(ctx, j, s, v)
	}
	owned, err := c.o.Store.Claim(ctx, who.Tenant, journalID, c.o.ID)
	if err != nil {
		return nil, err
	}
	if v.Again {
		// This comes first: in an ended journal, nothing would run the call if this process died after it
		// stored the order. A journal that runs and has no call left just ends again.
		if _, err := owned.SetState(ctx, func(m *journal.Manifest) error {
			m.State, m.Ending, m.Reason = journal.Running, "", ""
			return nil
		}); err != nil {
			owned.Close()
			return nil, err
		}
	}
	if err := owned.Results(ctx, verdictRecord(s, v)); err != nil {
		owned.Close()
		return nil, err
	}
	if v.Again {
		j := newJob(c.o, c.ids, owned)
		j.reader.records = map[uint64]schema.CallID{s.Index: s.Result.Recorded}
		c.jobs.start(j)
		return c.Status(ctx, id, who, 0)
	}
	c.record(s, v)
	if err := owned.Release(ctx); err != nil {
		c.o.Log.Debug("releasing a journal failed", "journal", journalID, "error", err)
	}
	return c.Status(ctx, id, who, 0)
}

// settleHere settles a call of a journal that runs here.
func (c *Calls) settleHere(ctx context.Context, j *job, s *Status, v Verdict) (*Status, error) {
	if !j.l.calls.whileOpen(j.l.window.begin) {
		return nil, schema.Errorf(schema.KindConflict, "The journal of call %s is ending; settle the call again.", s.CallID).WithCall(s.CallID).RetryableAfter(time.Second)
	}
	defer j.l.window.end() // the journal does not end in the meantime
	if err := j.l.owned.Results(ctx, verdictRecord(s, v)); err != nil {
		return nil, err
	}
	if v.Again {
		it := j.l.item(s.Call, j.l.owned.Progress().Standing(s.Index).Attempt) // s may be from a replica that lags
		it.noted = s.Result.Recorded
		j.handOver(it)
	} else {
		c.record(s, v)
	}
	return c.Status(ctx, s.CallID, s.Principal, 0)
}

// record writes the verdict to the call records, so that lists no longer show the call as unknown.
func (c *Calls) record(s *Status, v Verdict) {
	if s.Call == nil || s.Result.Recorded == "" {
		return
	}
	call := &schema.Call{ID: s.CallID, Method: s.Call.Method, Server: s.Call.Server, Tool: s.Call.Tool, Principal: s.Principal, ReplayOf: s.Call.ReplayOf, Durable: true}
	rec := &records.Record{ID: s.Result.Recorded, Attempt: max(s.Result.Attempt, 1), Known: s.CallID, Batch: s.Batch, Index: int64(s.Index), CustomID: s.Result.CustomID, State: StateOf(v.Outcome)}
	c.o.Chain.Decided(call, rec)
}

func verdictRecord(s *Status, v Verdict) journal.ResultRecord {
	rec := journal.ResultRecord{
		Index: s.Index, CallID: s.CallID, Tenant: s.Principal.Tenant, CustomID: s.Result.CustomID, Attempt: s.Result.Attempt, Ended: time.Now(), Settle: journal.SettleDone, Outcome: v.Outcome,
		By: v.by, Reason: v.Reason, Recorded: s.Result.Recorded,
	}
	if v.Again {
		rec.Settle, rec.Outcome = journal.SettleAgain, s.Result.Outcome
	}
	return rec
}
