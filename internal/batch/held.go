package batch

import (
	"cmp"
	"context"
	"slices"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Held says how many calls of each of the batches wait for a yes, as of a moment
// ago. Batches of which none does are left out.
func (r *Runner) Held(batches ...string) map[string]int {
	if len(batches) == 0 {
		return nil
	}
	held := make(map[string]int, len(batches))
	r.o.Ledger.Where(func(a *ledger.Approval) bool {
		if a.State != ledger.Pending {
			return false
		}
		if id, _, ok := ParseCallID(a.CallID); ok && slices.Contains(batches, id) {
			held[id]++
		}
		return false // they are only counted
	})
	return held
}

// HeldSingly returns how many calls of the principal are held and in no batch.
func HeldSingly(book *ledger.Ledger, principal string) int {
	return book.Count(func(a *ledger.Approval) bool {
		if a.State != ledger.Pending || a.Binding.Requester.Name != principal {
			return false
		}
		_, _, stored := ParseCallID(a.CallID)
		return !stored
	})
}

// HeldCall is a call that waits for a yes.
type HeldCall struct {
	Index    uint64
	CustomID string
	Approval *ledger.Approval
	// ByCaller says that the caller itself says yes, with [Runner.Confirm].
	ByCaller bool
}

// HeldCalls returns calls of a batch of the principal's that wait for a yes, in
// order: at most so many.
func (r *Runner) HeldCalls(ctx context.Context, id string, who schema.Principal, most int) ([]HeldCall, error) {
	m, err := r.Batch(ctx, id, who)
	if err != nil || m.State == journal.Ended {
		return nil, err
	}
	found := r.o.Ledger.Where(func(a *ledger.Approval) bool {
		of, _, ok := ParseCallID(a.CallID)
		return ok && of == id && a.State == ledger.Pending
	})
	held := make([]HeldCall, 0, len(found))
	for _, a := range found {
		_, index, _ := ParseCallID(a.CallID)
		rule, err := approval.Rule(a)
		held = append(held, HeldCall{Index: index, Approval: a, ByCaller: err == nil && rule.By == risk.ByCaller})
	}
	slices.SortFunc(held, func(a, b HeldCall) int { return cmp.Compare(a.Index, b.Index) })
	held = held[:min(most, len(held))]
	j := r.job(id)
	for i := range held {
		if held[i].CustomID, err = r.customID(ctx, j, id, held[i].Index); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// customID is the caller's own name of a held call; the one who runs the batch has
// it at hand.
func (r *Runner) customID(ctx context.Context, j *job, id string, index uint64) (string, error) {
	if j != nil {
		j.mu.Lock()
		it := j.held[index]
		j.mu.Unlock()
		if it != nil {
			return it.rec.CustomID, nil
		}
	}
	c, err := r.o.Store.FindCall(ctx, id, index)
	if err != nil {
		return "", err
	}
	return c.CustomID, nil
}

// Confirm takes the caller's yes or no to a call of its own that is held, where no
// token for it was given to anybody; see [approval.Desk.ConfirmOwn]. A call that was
// held before its caller's eyes is confirmed with its token: KindForbidden.
func (r *Runner) Confirm(ctx context.Context, callID string, yes bool, who schema.Principal) error {
	if _, _, ok := ParseCallID(callID); !ok {
		return schema.Errorf(schema.KindForbidden, "This call is no part of a batch; it is confirmed with the confirmation_id of its answer: POST /confirmations/{id}.").WithCall(callID)
	}
	if _, _, ok := r.ids.Find(callID, who.Name); !ok {
		return schema.Errorf(schema.KindNotFound, "There is no call %q that is held and is yours.", callID)
	}
	_, err := r.o.Desk.ConfirmOwn(ctx, callID, yes, who)
	return err
}
