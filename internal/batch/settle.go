package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Verdict is a person's word about a call whose fate the fabric cannot tell, or
// that was given up.
type Verdict struct {
	// Again orders another run. Without it Outcome holds from now on.
	Again   bool
	Outcome journal.Outcome
	Reason  string
}

// Settle takes a person's word about a call that is unknown or dead. Errors:
// KindNotFound; KindConflict for a call in another state, or when another front
// door has its journal at the moment; KindInvalidRequest without a reason.
func (r *Runner) Settle(ctx context.Context, id string, who schema.Principal, v Verdict) (*Status, error) {
	if v.Reason == "" {
		return nil, schema.Errorf(schema.KindInvalidRequest, "Say why: a reason is kept with the word.")
	}
	s, err := r.Status(ctx, id, who, 0)
	if err != nil {
		return nil, err
	}
	if s.Head != id {
		return r.Settle(ctx, s.Head, who, v) // the round whose outcome nobody knows
	}
	if s.Result == nil || s.Result.Outcome != journal.Unknown && s.Result.Outcome != journal.Dead {
		return nil, schema.Errorf(schema.KindConflict, "Call %s is %s; only a call whose outcome is unknown, or that was given up, can be settled.", id, s.State).WithCall(id)
	}
	journalID := journalOf(s)
	if j := r.job(journalID); j != nil {
		return r.settleHere(ctx, j, s, who, v)
	}
	owned, err := r.o.Store.Claim(ctx, journalID, r.o.ID)
	if err != nil {
		return nil, err
	}
	if err := owned.Results(ctx, word(s, who, v)); err != nil {
		owned.Close()
		return nil, err
	}
	if v.Again {
		if _, err := owned.SetState(ctx, func(m *journal.Manifest) error {
			m.State, m.Ending, m.Reason = journal.Running, "", ""
			return nil
		}); err != nil {
			owned.Close()
			return nil, err
		}
		r.start(owned, false)
	} else if err := owned.Release(ctx); err != nil {
		r.o.Log.Debug("giving a journal back", "journal", journalID, "error", err)
	}
	return r.Status(ctx, id, who, 0)
}

// settleHere settles a call of a journal that runs here.
func (r *Runner) settleHere(ctx context.Context, j *job, s *Status, who schema.Principal, v Verdict) (*Status, error) {
	if err := j.o.Results(ctx, word(s, who, v)); err != nil {
		return nil, err
	}
	if v.Again {
		j.handOver(j.item(s.Call, s.Result.Attempt))
	}
	return r.Status(ctx, s.CallID, who, 0)
}

func word(s *Status, who schema.Principal, v Verdict) journal.ResultRecord {
	rec := journal.ResultRecord{
		Index: s.Index, CallID: s.CallID, CustomID: s.Result.CustomID, Attempt: s.Result.Attempt, Ended: time.Now(), Settle: journal.SettleDone, Outcome: v.Outcome,
		By: who.Name, Reason: v.Reason,
	}
	if v.Again {
		rec.Settle, rec.Outcome = journal.SettleAgain, s.Result.Outcome
	}
	return rec
}
