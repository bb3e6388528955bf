package batch

import (
	"errors"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// finisher ends the remaining calls of a journal that was canceled, has expired or is damaged.
type finisher struct {
	l      *lease
	losses *losses
	held   *heldCalls
}

// endAll ends the calls that have not been sent, because the batch was canceled, has expired or is
// damaged. It withdraws held calls, and waits for the end of approved calls that already run.
func (f *finisher) endAll(cause error) error {
	if err := f.held.withdrawAll(); err != nil {
		return err
	}
	if err := f.closeIntake(); err != nil {
		return err
	}
	if err := f.endRest(cause); err != nil {
		return err
	}
	return f.held.wait(f.l.life.leaving)
}

// endRest stores a result for each call that has none and is not held.
func (f *finisher) endRest(cause error) error {
	outcome := journal.Canceled
	if errors.Is(cause, errExpired) {
		outcome = journal.Expired
	}
	progress := f.l.owned.Progress()
	for next := progress.Next(0); ; {
		calls, err := f.l.owned.Read(f.l.life.gone, next, 1000)
		if err != nil {
			if next, err = f.losses.pass(err); err != nil {
				return err
			}
			continue
		}
		if len(calls) == 0 {
			return f.losses.tail(f.l.owned.Manifest(), next)
		}
		if err := f.held.withdrawFormer(calls); err != nil {
			return err
		}
		results := make([]journal.ResultRecord, 0, len(calls))
		now := time.Now()
		for i := range calls {
			c := &calls[i]
			next = c.Index + 1
			if f.l.calls.heldCall(c.Index) != nil || progress.Ended(c.Index) { // in this order: a call that is no longer held has ended
				continue
			}
			if c.Method == methodRefused {
				results = append(results, refusal(f.l.m, c, refusedLine(c.Arguments), now))
				continue
			}
			results = append(results, journal.ResultRecord{
				Index: c.Index, Outcome: outcome, CallID: f.l.id(c), Tenant: requester(f.l.m, c).Tenant, CustomID: c.CustomID, Ended: now,
				Error: encodeError(schema.Errorf(stopKind(cause), "The call did not start: %v.", cause)),
			})
		}
		ctx, cancel := bound(f.l.life.gone)
		err = f.l.owned.Results(ctx, results...)
		cancel()
		if err != nil {
			return err
		}
	}
}

// closeIntake seals the journal so that endAll sees the last call. A sender may still be adding
// calls.
func (f *finisher) closeIntake() error {
	ctx, cancel := bound(f.l.life.gone)
	defer cancel()
	_, err := f.l.owned.SetState(ctx, func(m *journal.Manifest) error {
		m.State = journal.Canceling
		if m.Sealed.IsZero() && f.losses.found.Load() {
			m.Calls = max(m.Calls, f.l.owned.Progress().Accepted())
		}
		return nil
	})
	if err == nil {
		_, err = f.l.o.Store.Seal(ctx, f.l.m.Principal.Tenant, f.l.owned.ID())
	}
	return err
}

func stopKind(cause error) schema.Kind {
	if errors.Is(cause, errExpired) {
		return schema.KindExpired
	}
	return schema.KindCanceled
}
