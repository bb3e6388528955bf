package batch

import (
	"slices"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// askAgain is the interval at which a worker is asked about a call that it still runs.
	askAgain = 250 * time.Millisecond
	// askFor limits the time that an unresponsive worker is asked.
	askFor = 15 * time.Second
	// clocksDiffer is the maximum clock difference of two machines.
	clocksDiffer = 30 * time.Second
)

// recovery resumes the calls that an earlier owner of the journal sent, or whose answer did not
// arrive. It asks their workers for the outcomes.
type recovery struct {
	l       *lease
	results *results
	losses  *losses
	// execute runs a call that may run again.
	execute func(*item)
}

// run settles the calls in open, which an earlier owner sent and which have no result. It asks
// their workers. Calls that never started run again, and so do calls that are safe to repeat;
// calls whose outcome cannot be determined become unknown. The calls of a batch that is canceled
// in the meantime are settled nevertheless, because they may have run.
func (r *recovery) run(open map[uint64]journal.OpenIntent) error {
	byWorker := make(map[schema.WorkerID][]*item)
	for index, was := range open {
		if r.l.owned.Progress().Ended(index) {
			continue
		}
		c, err := r.l.o.Store.FindCall(r.l.life.gone, schema.AllTenants(), r.l.owned.ID(), index)
		if schema.KindOf(err) == schema.KindNotFound { // the log is shorter than the journal's records imply
			err = &journal.GapError{Journal: r.l.owned.ID(), First: index, Next: index + 1}
		}
		if err != nil {
			if _, err = r.losses.pass(err); err != nil {
				return err
			}
			continue
		}
		it := r.l.item(c, was.Attempt)
		it.worker = was.Worker
		byWorker[was.Worker] = append(byWorker[was.Worker], it)
	}
	for worker, items := range byWorker {
		within := time.Duration(0)
		for _, it := range items {
			within = max(within, time.Since(open[it.rec.Index].At)+clocksDiffer)
		}
		if err := r.ask(worker, items, within); err != nil {
			return err
		}
	}
	return nil
}

// callbacks are the calls of a lane with a callback that ended under an earlier owner, by stored tenant
// and index.
type callbacks map[schema.TenantID]map[uint64]*journal.CallRecord

// endedBefore returns the calls whose callbacks an earlier owner may not have sent before it died.
func (r *recovery) endedBefore() (callbacks, error) {
	due := callbacks{}
	if r.l.m.Kind != journal.Lane {
		return due, nil
	}
	progress := r.l.owned.Progress()
	for next := uint64(0); next < progress.Accepted(); {
		calls, err := r.l.owned.Read(r.l.life.gone, next, readMost)
		if gap, lost := gapOf(err); lost {
			next = gap.Next
			continue
		}
		if err != nil || len(calls) == 0 {
			return due, err
		}
		for i := range calls {
			c := calls[i]
			next = c.Index + 1
			if c.CallbackURL == "" || !progress.Ended(c.Index) {
				continue
			}
			c.Arguments, c.Extra = nil, nil // no callback needs them
			of := c.Principal.Tenant.Stored()
			if due[of] == nil {
				due[of] = make(map[uint64]*journal.CallRecord)
			}
			due[of][c.Index] = &c
		}
	}
	return due, nil
}

// remind sends the callbacks again. Receivers detect duplicates by the call id. It runs next to the
// recovery, because it waits while the queue of callbacks is full, and workers remember outcomes only
// for a while.
func (r *recovery) remind(due callbacks) error {
	type position struct {
		sequence uint64
		within   uint32
	}
	for tenant, calls := range due {
		last := make(map[uint64]position, len(calls)) // of several results of a call, the last one counts
		if err := r.eachResult(tenant, func(rec *journal.ResultRecord) {
			if calls[rec.Index] != nil {
				last[rec.Index] = position{rec.Sequence, rec.Position}
			}
		}); err != nil {
			return err
		}
		if err := r.eachResult(tenant, func(rec *journal.ResultRecord) {
			c := calls[rec.Index]
			if c == nil || last[rec.Index] != (position{rec.Sequence, rec.Position}) || rec.Settle == journal.SettleAgain {
				return
			}
			kept := *rec
			r.l.callBack(r.l.id(c), c, &kept, c.Principal)
		}); err != nil {
			return err
		}
	}
	return nil
}

// eachResult calls f with the results of the tenant's calls, in stored order, until the job leaves the
// journal. f must not keep its argument.
func (r *recovery) eachResult(tenant schema.TenantID, f func(*journal.ResultRecord)) error {
	for after := (journal.Cursor{}); ; {
		page, next, err := r.l.o.Store.Results(r.l.life.gone, tenant, r.l.owned.ID(), after, readMost)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if r.l.life.leaving.Err() != nil {
				return nil // the next owner sends them
			}
			f(&page[i])
		}
		after = next
	}
}

// ask settles the calls that were sent to one worker.
func (r *recovery) ask(worker schema.WorkerID, items []*item, within time.Duration) error {
	ids := make([]schema.CallID, len(items))
	for i, it := range items {
		ids[i] = it.call.ID
	}
	outcomes, err := r.outcomes(worker, ids, within)
	if err != nil && r.l.life.leaving.Err() != nil {
		return nil
	}
	for i, it := range items {
		outcome := dispatch.Outcome{CallID: ids[i], State: dispatch.OutcomeForgotten}
		if err == nil {
			outcome = outcomes[i]
		}
		if !r.l.calls.enlist(it) {
			continue
		}
		if !r.l.window.enter(r.l.life.leaving, it.rec) {
			r.l.calls.delist(it)
			return nil
		}
		go func() {
			defer r.l.window.leave(r.l.window.weight(it.rec))
			defer r.l.calls.delist(it)
			r.resume(it, outcome, within)
		}()
	}
	return nil
}

// outcomes asks the worker until it answers or is known to be gone.
func (r *recovery) outcomes(worker schema.WorkerID, ids []schema.CallID, within time.Duration) ([]dispatch.Outcome, error) {
	for began := time.Now(); ; {
		ctx, cancel := bound(r.l.life.gone)
		outcomes, err := r.l.o.Router.Ask(ctx, worker, ids, within)
		cancel()
		if err == nil || worker == "" || time.Since(began) > askFor {
			return outcomes, err
		}
		if !r.alive(worker) && time.Since(began) > 2*time.Second {
			return nil, err
		}
		if !sleep.For(askAgain, r.l.life.leaving.Done()) {
			return nil, err
		}
	}
}

func (r *recovery) alive(worker schema.WorkerID) bool {
	return slices.ContainsFunc(r.l.o.Catalog.Workers(), func(w schema.Worker) bool { return w.ID == worker })
}

// resume continues a call whose outcome its worker has reported.
func (r *recovery) resume(it *item, outcome dispatch.Outcome, within time.Duration) {
	outcome, err := r.lastOutcome(it, outcome, within, askAgain)
	if err != nil && r.l.life.leaving.Err() != nil {
		it.done(nil)
		return
	}
	if err != nil {
		outcome.State = dispatch.OutcomeForgotten
	}
	switch outcome.State {
	case dispatch.OutcomeEnded:
		res, err := ended(outcome)
		if e := schema.AsError(err); e != nil && (e.Kind == schema.KindCanceled || e.CancelRequested) {
			// An earlier owner canceled it, because its answer did not arrive in time or that
			// owner stopped. It may have run.
			if !r.l.repeatable(it) {
				r.end(it, nil, schema.Errorf(schema.KindOutcomeUnknown, "The call was stopped at worker %s while it ran, and may have done part of its work. Check its effects, then settle it.", it.worker))
				return
			}
		} else if !again(err, it) {
			r.end(it, res, err)
			return
		}
	case dispatch.OutcomeNever:
		it.unstarted = true
	default:
		if !r.l.repeatable(it) {
			r.end(it, nil, schema.Errorf(schema.KindOutcomeUnknown, "The call was sent to worker %s, which no longer knows its outcome. It may have run. Check its effects, then settle it.", it.worker))
			return
		}
	}
	r.execute(it)
}

// end stores and records the outcome of a call that an earlier owner sent.
func (r *recovery) end(it *item, res *schema.Result, err error) {
	r.results.store(it, r.results.record(it, res, err))
	if it.result != nil {
		r.l.settled(it, res, err, false)
	}
}

// ended converts the ended outcome that the worker reported to a result or error.
func ended(f dispatch.Outcome) (*schema.Result, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	return f.Result, nil
}

// again reports whether the call may be retried after an attempt ended with err.
func again(err error, it *item) bool {
	switch schema.KindOf(err) {
	case schema.KindUnavailable, schema.KindServerFailed:
		return true
	case schema.KindOutcomeUnknown:
		return it.call.Safe
	}
	return false
}

// patience returns the time that a call may still run at a worker.
func (r *recovery) patience(it *item) time.Duration {
	if it.call.Timeout > 0 {
		return it.call.Timeout + askFor
	}
	return time.Minute + askFor
}

// settled asks the worker once more for the outcome of a call whose answer did not arrive, since
// the worker may only have been partitioned. Both results are nil if the job stops before the
// outcome is known.
func (r *recovery) settled(it *item, unknown error) (*schema.Result, error) {
	if it.worker == "" {
		return nil, unknown
	}
	outcome, err := r.lastOutcome(it, dispatch.Outcome{CallID: it.call.ID, State: dispatch.OutcomeRunning}, r.patience(it)+clocksDiffer, 0)
	if err != nil && r.l.life.leaving.Err() != nil {
		return nil, nil
	}
	if err != nil || outcome.State != dispatch.OutcomeEnded {
		return nil, unknown
	}
	res, err := ended(outcome)
	if err != nil {
		return nil, unknown
	}
	return res, nil
}

// lastOutcome asks the worker, after a first pause, until the call no longer runs there. It
// returns an error if the worker does not answer or the job stops.
func (r *recovery) lastOutcome(it *item, outcome dispatch.Outcome, within, pause time.Duration) (dispatch.Outcome, error) {
	for deadline := time.Now().Add(r.patience(it)); outcome.State == dispatch.OutcomeRunning && time.Now().Before(deadline); pause = askAgain {
		if !sleep.For(pause, r.l.life.leaving.Done()) {
			return outcome, errStopped
		}
		outcomes, err := r.outcomes(it.worker, []schema.CallID{it.call.ID}, within)
		if err != nil {
			return outcome, err
		}
		outcome = outcomes[0]
	}
	return outcome, nil
}
