package batch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// countEvery is the interval between writes of the counts of a running batch.
	countEvery = time.Second
)

// job runs a journal that this front door owns, to its end or until it must stop.
type job struct {
	l        *lease
	results  *results
	exec     *executor
	held     *heldCalls
	recovery *recovery
	losses   *losses
	pipeline *pipeline
	reader   *reader
	finisher *finisher
	direct   bool          // for a lane: its calls are handed over, not read
	sealed   chan struct{} // closed when the lane gets no further calls
}

func newJob(o *Options, ids *IDs, owned *journal.Owned) *job {
	l := &lease{o: o, ids: ids, owned: owned, m: owned.Manifest(), life: newLifetime(), window: newWindow(o.Window, o.WindowBytes), calls: newCallTable(owned.Progress().Ended), owed: newCallbacksOwed()}
	j := &job{l: l, results: &results{l: l}, losses: &losses{l: l}, sealed: make(chan struct{})}
	j.held = &heldCalls{l: l, results: j.results}
	j.recovery = &recovery{l: l, results: j.results, losses: j.losses}
	j.exec = &executor{l: l, results: j.results, held: j.held, settled: j.recovery.settled}
	j.recovery.execute = j.exec.execute
	j.pipeline = newPipeline(l, j.results, j.exec)
	j.reader = &reader{l: l, losses: j.losses, held: j.held, exec: j.exec, pipeline: j.pipeline}
	j.finisher = &finisher{l: l, losses: j.losses, held: j.held}
	return j
}

// abandon cancels the calls that have not ended and returns their number.
func (j *job) abandon() int {
	n := int(j.l.window.count.Load())
	j.l.life.giveUp()
	return n
}

// watchLease stops the job if the lease is lost or the journal expires, until done is closed.
func (j *job) watchLease(done <-chan struct{}) {
	over := time.NewTimer(time.Until(j.l.m.Expires))
	defer over.Stop()
	lost := j.l.owned.Lost()
	for {
		select {
		case <-done:
			return
		case <-lost:
			j.l.life.halt(errLost)
			lost = nil
		case <-over.C:
			j.l.life.halt(errExpired)
		}
	}
}

// run runs a journal to its end, or until it must stop.
func (j *job) run() {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { j.watchLease(done) })
	watch.Go(func() { j.writeProgress(done) })
	watch.Go(func() { j.pipeline.intend(done) })
	watch.Go(func() { j.pipeline.store(done) })
	defer context.AfterFunc(j.l.life.stopping, j.pipeline.recall)()
	defer context.AfterFunc(j.l.life.gone, j.pipeline.abandon)()
	if j.l.m.State == journal.Canceling {
		j.l.life.halt(errCanceled)
	}
	err := j.held.findFormer()
	if err == nil {
		err = j.losses.settle()
	}
	open := j.l.owned.Progress().Open()
	var due callbacks
	if err == nil {
		due, err = j.recovery.endedBefore()
	}
	reminded := make(chan error, 1)
	go func() { reminded <- j.recovery.remind(due) }()
	if err == nil {
		err = j.recovery.run(open)
	}
	if err == nil {
		err = j.reader.run(open)
	}
	j.l.window.wait()
	if remindErr := <-reminded; err == nil {
		err = remindErr
	}
	cause := j.l.life.cause()
	if err == nil && (errors.Is(cause, errCanceled) || errors.Is(cause, errExpired) || errors.Is(cause, errDamaged)) {
		err = j.finisher.endAll(cause)
	}
	j.finish()
	close(done)
	watch.Wait()
	j.results.void()
	j.end(err, cause)
}

// runLane runs a lane. Its calls are handed over by the acceptor.
func (j *job) runLane() {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { j.watchLease(done) })
	select {
	case <-j.sealed:
	case <-j.l.life.stopping.Done():
	}
	j.l.window.wait()
	err := j.held.wait(j.l.life.stopping)
	j.finish()
	close(done)
	watch.Wait()
	j.results.void()
	j.end(err, context.Cause(j.l.life.stopping))
}

// finish lets no further call begin and waits for the last one.
func (j *job) finish() {
	j.l.calls.close()
	j.l.window.wait()
	j.held.copies.Wait()
}

// handOver starts a call of a lane, or one that a person ordered to run again.
func (j *job) handOver(it *item) {
	j.l.window.begin()
	j.l.o.Quota.Queued(&it.call.Principal, 1)
	begun := j.l.calls.enlist(it)
	go func() {
		defer j.l.window.end()
		defer j.l.o.Quota.Queued(&it.call.Principal, -1)
		if !begun && !j.enlistNext(it) {
			it.done(nil) // the reader was faster
			return
		}
		defer j.l.calls.delist(it)
		j.exec.execute(it)
	}()
}

// enlistNext enlists a call after the run in progress, which may be the one before the order or one that
// the reader started after it. It returns false if the call has ended then.
func (j *job) enlistNext(it *item) bool {
	if earlier := j.l.calls.find(it.rec.Index); earlier != nil {
		select {
		case <-earlier.over:
		case <-j.l.life.gone.Done():
			return false
		}
	}
	return j.l.calls.enlist(it)
}

// takeBack cancels a call that has not been sent. If the call was not read yet, takeBack stores
// its result. The router cancels calls that were sent, and the approval desk those that are held.
func (j *job) takeBack(index uint64) {
	it, unread := j.l.calls.cancel(index, func() bool {
		_, left := j.l.owned.Progress().Open()[index] // sent by an earlier owner
		return !left && !j.direct
	})
	if it != nil {
		it.takeBack()
	}
	if !unread {
		return
	}
	defer j.l.calls.canceled(index)
	c, err := j.l.o.Store.FindCall(j.l.life.gone, schema.AllTenants(), j.l.owned.ID(), index)
	held := false
	if err == nil {
		it = j.l.item(c, j.l.owned.Progress().Standing(index).Attempt)
		held, err = j.held.heldBefore(it)
	}
	if err != nil {
		j.l.o.Log.Warn("canceling a call of a batch failed", "journal", j.l.owned.ID(), "index", index, "error", err)
		return // it runs in its turn
	}
	if held {
		return // its approval decides about it, and it may have run
	}
	j.results.store(it, j.results.record(it, nil, j.l.takenEnd(it)))
}

// writeProgress periodically writes the counts of a batch, and that it is running.
func (j *job) writeProgress(done <-chan struct{}) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	var last journal.Counts
	var calls uint64
	missing := j.l.m.Missing
	for {
		select {
		case <-done:
			return
		case <-j.l.owned.Lost():
			return
		case <-tick.C:
		}
		now, before := j.l.owned.Progress().Counts(), calls
		receiving := !j.l.owned.Sealed()
		waits := j.reader.met.Load() > now.Total() || j.l.o.Quota.Queues(&j.l.m.Principal)
		absent := j.l.absent.servers()
		same := now == last && slices.Equal(absent, missing)
		if same && !(receiving && waits) {
			continue // there may be thousands of idle batches
		}
		ctx, cancel := bound(j.l.life.gone)
		if receiving {
			if n, err := j.l.o.Store.Accepted(ctx, j.l.m.Principal.Tenant, j.l.owned.ID()); err == nil {
				calls = n // for the other front doors, which count waiting calls
			}
		}
		if same && calls == before {
			cancel()
			continue
		}
		last, missing = now, absent
		_, err := j.l.owned.SetState(ctx, func(m *journal.Manifest) error {
			if m.State == journal.Sealed {
				m.State = journal.Running
			}
			if m.Started.IsZero() {
				m.Started = time.Now().UTC()
			}
			m.Missing = absent
			if m.Sealed.IsZero() {
				m.Calls = max(m.Calls, calls)
			}
			return nil
		})
		cancel()
		if err != nil && schema.KindOf(err) != schema.KindConflict {
			j.l.o.Log.Warn("writing the counts of a batch failed", "journal", j.l.owned.ID(), "error", err)
		}
	}
}

// errUnfinished means that a journal cannot end, because calls have no result or may still be added.
var errUnfinished = errors.New("calls of the journal have no result")

// finished reports whether the journal gets no further calls and each call has its result. Before it
// is sealed, the number of its calls in the manifest is only an estimate.
func (j *job) finished(m *journal.Manifest) bool {
	return !m.Sealed.IsZero() && j.l.owned.Progress().Next(0) >= m.Calls
}

// complete is finished for the stored manifest.
func (j *job) complete() bool {
	ctx, cancel := bound(context.Background())
	defer cancel()
	m, err := j.l.o.Store.Get(ctx, j.l.m.Principal.Tenant, j.l.owned.ID())
	return err == nil && j.finished(m)
}

// end stores that the journal has ended, or releases it to another owner. It never ends a journal with
// calls that have no result: their approved calls may still run, or their results could not be stored.
func (j *job) end(err, cause error) {
	defer j.l.life.giveUp()
	if errors.Is(cause, errLost) {
		j.l.o.LeaseLost()
	}
	stopped := errors.Is(cause, errLost) || errors.Is(cause, errStopped) && !j.complete()
	if err != nil && !stopped {
		j.l.o.Log.Warn("a journal cannot be continued at the moment", "journal", j.l.owned.ID(), "error", err)
	}
	if err == nil && !stopped && !j.l.owed.wait(j.l.life.gone) {
		stopped = true
		j.l.o.Log.Info("a journal has callbacks that are not stored; its next owner sends them", "journal", j.l.owned.ID())
	}
	if err == nil && !stopped {
		ctx, cancel := bound(context.Background())
		m, endErr := j.l.owned.SetState(ctx, func(m *journal.Manifest) error {
			switch {
			case !j.finished(m):
				return errUnfinished
			case errors.Is(cause, errCanceled):
				m.End(journal.EndedByCancel, cmp.Or(m.Reason, canceledByCaller))
			case errors.Is(cause, errExpired):
				m.End(journal.EndedByExpiry, "it expired")
			case errors.Is(cause, errDamaged):
				m.End(journal.EndedByFailure, cmp.Or(j.losses.reason(), errDamaged.Error()))
			case j.losses.reason() != "":
				m.End(journal.EndedByFailure, j.losses.reason())
			default:
				m.End(journal.Completed, "")
			}
			return nil
		})
		cancel()
		if errors.Is(endErr, errUnfinished) {
			j.l.o.Log.Info("a journal has calls without a result; its next owner continues", "journal", j.l.owned.ID())
		} else if endErr != nil {
			j.l.o.Log.Warn("ending a journal failed", "journal", j.l.owned.ID(), "error", endErr)
		} else if m.Kind == journal.Batch {
			j.l.o.Ended(End{Batch: m, Journal: m.ID, Principal: m.Principal})
		}
	}
	ctx, cancel := bound(context.Background())
	defer cancel()
	if err := j.l.owned.Release(ctx); err != nil && !errors.Is(cause, errLost) {
		j.l.o.Log.Debug("releasing a journal failed", "journal", j.l.owned.ID(), "error", err)
	}
}
