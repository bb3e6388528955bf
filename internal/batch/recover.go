package batch

import (
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// askAgain is how often a worker is asked that still runs a call.
	askAgain = 250 * time.Millisecond
	// askFor is how long a worker is asked that does not answer.
	askFor = 15 * time.Second
	// clocksDiffer is what the clocks of two machines may be apart.
	clocksDiffer = 30 * time.Second
)

// recover settles the calls that left under an earlier owner and have no result:
// their workers are asked. What never started runs again, and so does what is safe
// to repeat; what nobody can tell becomes unknown. open are those calls. A batch that
// is canceled meanwhile has them settled all the same: they may have run.
func (j *job) recover(open map[uint64]journal.OpenIntent) error {
	byWorker := make(map[string][]*item)
	for index, was := range open {
		if j.o.Progress().Ended(index) {
			continue
		}
		c, err := j.r.o.Store.FindCall(j.gone, j.o.ID(), index)
		if schema.KindOf(err) == schema.KindNotFound { // the log is shorter than what is known of it
			err = &journal.GapError{Journal: j.o.ID(), First: index, Next: index + 1}
		}
		if err != nil {
			if _, err = j.pass(err); err != nil {
				return err
			}
			continue
		}
		it := j.item(c, was.Attempt)
		it.worker = was.Worker
		byWorker[was.Worker] = append(byWorker[was.Worker], it)
	}
	for worker, items := range byWorker {
		within := time.Duration(0)
		for _, it := range items {
			within = max(within, time.Since(open[it.rec.Index].At)+clocksDiffer)
		}
		if err := j.ask(worker, items, within); err != nil {
			return err
		}
	}
	return nil
}

// remind tells once more of the calls of a lane that ended under an earlier owner:
// it may have been lost before it could tell. Receivers know a call by its id.
func (j *job) remind() error {
	if j.m.Kind != journal.Lane {
		return nil
	}
	progress := j.o.Progress()
	for next := uint64(0); next < progress.Accepted(); {
		calls, err := j.o.Read(j.gone, next, readAhead)
		if gap, lost := gapOf(err); lost {
			next = gap.Next
			continue
		}
		if err != nil || len(calls) == 0 {
			return err
		}
		for i := range calls {
			c := &calls[i]
			next = c.Index + 1
			if c.CallbackURL == "" || !progress.Ended(c.Index) {
				continue
			}
			rec, err := j.r.o.Store.FindResult(j.gone, j.o.ID(), c.Index, journal.Cursor{})
			if schema.KindOf(err) == schema.KindNotFound {
				continue
			}
			if err != nil {
				return err
			}
			j.r.o.Ended(End{Call: c, Result: rec, CallID: j.id(c), Journal: j.o.ID(), Principal: c.Principal})
		}
	}
	return nil
}

// ask settles the calls that went to one worker.
func (j *job) ask(worker string, items []*item, within time.Duration) error {
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.call.ID
	}
	fates, err := j.fates(worker, ids, within)
	if err != nil && j.leaving.Err() != nil {
		return nil
	}
	for i, it := range items {
		fate := dispatch.Fate{CallID: ids[i], State: dispatch.FateForgotten}
		if err == nil {
			fate = fates[i]
		}
		if !j.enlist(it) {
			continue
		}
		if !j.enter(j.leaving, it.rec) {
			j.delist(it)
			return nil
		}
		go func() {
			defer j.leave(j.weight(it.rec))
			defer j.delist(it)
			j.resume(it, fate, within)
		}()
	}
	return nil
}

// fates asks until the worker answers or is known to be gone.
func (j *job) fates(worker string, ids []string, within time.Duration) ([]dispatch.Fate, error) {
	for began := time.Now(); ; {
		ctx, cancel := bound(j.gone)
		fates, err := j.r.o.Router.AskWithin(ctx, worker, ids, within)
		cancel()
		if err == nil || worker == "" || time.Since(began) > askFor {
			return fates, err
		}
		if !j.alive(worker) && time.Since(began) > 2*time.Second {
			return nil, err
		}
		select {
		case <-time.After(askAgain):
		case <-j.leaving.Done():
			return nil, err
		}
	}
}

func (j *job) alive(worker string) bool {
	for _, w := range j.r.o.Catalog.Workers() {
		if w.ID == worker {
			return true
		}
	}
	return false
}

// resume goes on with a call of which its worker has told the fate.
func (j *job) resume(it *item, fate dispatch.Fate, within time.Duration) {
	fate, err := j.lastFate(it, fate, within, askAgain)
	if err != nil && j.leaving.Err() != nil {
		it.done(nil)
		return
	}
	if err != nil {
		fate.State = dispatch.FateForgotten
	}
	switch fate.State {
	case dispatch.FateEnded:
		res, err := ended(fate)
		if e := schema.AsError(err); e != nil && (e.Kind == schema.KindCanceled || e.CancelRequested) {
			// An earlier owner had it ended, because its answer did not come in time or
			// that owner stopped: it may have run.
			if !j.repeatable(it) {
				j.store(it, j.record(it, nil, schema.Errorf(schema.KindOutcomeUnknown, "The call was ended at worker %s while it ran, and nobody learned how far it had come. Look at its effects, then settle it.", it.worker)))
				return
			}
		} else if !again(err, it) {
			j.store(it, j.record(it, res, err))
			return
		}
	case dispatch.FateNever:
	default:
		if !j.repeatable(it) {
			j.store(it, j.record(it, nil, schema.Errorf(schema.KindOutcomeUnknown, "The call left for worker %s, which cannot say any more what became of it. It may have run. Look at its effects, then settle it.", it.worker)))
			return
		}
	}
	j.execute(it)
}

// ended is what the worker remembers of the end of a call.
func ended(f dispatch.Fate) (*schema.Result, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	return f.Result, nil
}

// again says that the end of an attempt is one after which the call may be tried
// again.
func again(err error, it *item) bool {
	switch schema.KindOf(err) {
	case schema.KindUnavailable, schema.KindServerFailed:
		return true
	case schema.KindOutcomeUnknown:
		return it.call.Safe
	}
	return false
}

// patience is how long a call may still run at a worker.
func (j *job) patience(it *item) time.Duration {
	if it.call.Timeout > 0 {
		return it.call.Timeout + askFor
	}
	return time.Minute + askFor
}

// repeatable says that the tool is safe to repeat, as the catalog has it now.
func (j *job) repeatable(it *item) bool {
	tool, err := j.r.o.Catalog.Tool(it.call.Server, it.call.Tool)
	return err == nil && tool.Safe
}

// settled asks the worker once more what became of a call whose answer did not
// come: the worker may only have been cut off. Both results are nil when the job
// stops before that is known.
func (j *job) settled(it *item, unknown error) (*schema.Result, error) {
	if it.worker == "" {
		return nil, unknown
	}
	fate, err := j.lastFate(it, dispatch.Fate{CallID: it.call.ID, State: dispatch.FateRunning}, j.patience(it)+clocksDiffer, 0)
	if err != nil && j.leaving.Err() != nil {
		return nil, nil
	}
	if err != nil || fate.State != dispatch.FateEnded {
		return nil, unknown
	}
	res, err := ended(fate)
	if err != nil {
		return nil, unknown
	}
	return res, nil
}

// lastFate asks the worker, after the first pause, until the call does not run there
// any more. An error says that the worker does not answer, or that the job stops.
func (j *job) lastFate(it *item, fate dispatch.Fate, within, pause time.Duration) (dispatch.Fate, error) {
	for deadline := time.Now().Add(j.patience(it)); fate.State == dispatch.FateRunning && time.Now().Before(deadline); pause = askAgain {
		select {
		case <-time.After(pause):
		case <-j.leaving.Done():
			return fate, errStopped
		}
		fates, err := j.fates(it.worker, []string{it.call.ID}, within)
		if err != nil {
			return fate, err
		}
		fate = fates[0]
	}
	return fate, nil
}
