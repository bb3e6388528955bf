package batch

import (
	"errors"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// withdrawing is how many held calls are taken back at once.
const withdrawing = 32

// cut ends the calls that have not left, because the batch was canceled or its
// time is over. Held calls are taken back; of those that run by an approval the end
// is waited for.
func (j *job) cut(cause error) error {
	if err := j.withdrawAll(); err != nil {
		return err
	}
	if err := j.closeIntake(); err != nil {
		return err
	}
	if err := j.endRest(cause); err != nil {
		return err
	}
	return j.awaitHeld(j.leaving)
}

// endRest stores an end for each call that has none and is not held.
func (j *job) endRest(cause error) error {
	outcome := journal.Canceled
	if errors.Is(cause, errExpired) {
		outcome = journal.Expired
	}
	progress := j.o.Progress()
	for next := progress.Next(0); ; {
		calls, err := j.o.Read(j.gone, next, 1000)
		if err != nil {
			if next, err = j.pass(err); err != nil {
				return err
			}
			continue
		}
		if len(calls) == 0 {
			return j.tail(j.o.Manifest(), next)
		}
		results := make([]journal.ResultRecord, 0, len(calls))
		now := time.Now()
		for i := range calls {
			c := &calls[i]
			next = c.Index + 1
			if j.isHeld(c.Index) || progress.Ended(c.Index) { // in this order: one that is held no more has ended
				continue
			}
			if c.Method == methodRefused {
				results = append(results, refusal(c.Index, c.CustomID, refusedLine(c.Arguments), now))
				continue
			}
			results = append(results, journal.ResultRecord{
				Index: c.Index, Outcome: outcome, CallID: j.id(c), CustomID: c.CustomID, Ended: now,
				Error: encodeError(schema.Errorf(stopKind(cause), "The call did not start: %v.", cause)),
			})
		}
		ctx, cancel := bound(j.gone)
		err = j.o.Results(ctx, results...)
		cancel()
		if err != nil {
			return err
		}
	}
}

// withdrawAll takes back the calls that are held, here or since an earlier owner.
// Those that cannot be taken back any more, for they run or have ended, stay held
// and are watched.
func (j *job) withdrawAll() error {
	if err := j.findHeld(); err != nil {
		return err
	}
	j.mu.Lock()
	held := make([]*item, 0, len(j.held))
	for _, it := range j.held {
		held = append(held, it)
	}
	j.mu.Unlock()
	work := make(chan *item)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range min(withdrawing, len(held)) {
		all.Go(func() {
			for it := range work {
				if err := j.withdraw(it); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for _, it := range held {
		work <- it
	}
	close(work)
	all.Wait()
	return failed
}

// findHeld finds the calls of the journal that an earlier owner held: their
// approvals may run, or have run and nobody has copied their end.
func (j *job) findHeld() error {
	found := j.r.o.Ledger.Where(func(a *ledger.Approval) bool {
		id, _, ok := ParseCallID(a.CallID)
		return ok && id == j.o.ID()
	})
	for _, a := range found {
		_, index, _ := ParseCallID(a.CallID)
		if j.isHeld(index) || j.o.Progress().Ended(index) {
			continue
		}
		c, err := j.r.o.Store.FindCall(j.gone, j.o.ID(), index)
		if _, lost := gapOf(err); lost || schema.KindOf(err) == schema.KindNotFound {
			c, err = &journal.CallRecord{Index: index, Principal: schema.Principal{Name: a.Binding.Requester.Name}}, nil // its record is lost, its approval is not
		}
		if err != nil {
			return err
		}
		it := j.item(c, 0)
		it.forget()
		j.park(it)
	}
	return nil
}

// withdraw takes a held call back. It stays held where it runs or has ended. An
// error says that nobody knows.
func (j *job) withdraw(it *item) error {
	if !j.drop(it) {
		return nil // its end was copied
	}
	ctx, cancel := bound(j.gone)
	defer cancel()
	_, err := j.r.o.Desk.Cancel(ctx, it.call.ID, it.call.Principal)
	switch schema.KindOf(err) {
	case schema.KindConflict:
		j.park(it)
		j.watchEnd(it)
		return nil
	case schema.KindNotFound: // it was never held
		return nil
	}
	return err
}

// closeIntake lets no more calls in, so that cut sees the last of them: whoever
// sends them may still be at it.
func (j *job) closeIntake() error {
	ctx, cancel := bound(j.gone)
	defer cancel()
	_, err := j.o.SetState(ctx, func(m *journal.Manifest) error {
		m.State = journal.Canceling
		if m.Sealed.IsZero() && j.lacking.Load() {
			m.Calls = max(m.Calls, j.o.Progress().Accepted())
		}
		return nil
	})
	if err == nil {
		_, err = j.r.o.Store.Seal(ctx, j.o.ID())
	}
	return err
}

func stopKind(cause error) schema.Kind {
	if errors.Is(cause, errExpired) {
		return schema.KindExpired
	}
	return schema.KindCanceled
}
