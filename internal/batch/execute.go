package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// executor runs single calls of a journal: it checks each call, holds it if it needs an approval,
// sends it, and retries it if that is safe.
type executor struct {
	l       *lease
	results *results
	held    *heldCalls
	// settled asks the worker for the outcome of a call whose answer did not arrive.
	settled func(it *item, unknown error) (*schema.Result, error)
}

// execute runs one call to its end and stores the result. It returns when the result is stored,
// the call is held, or the next owner has to settle it.
func (x *executor) execute(it *item) {
	span := it.span
	if span == nil {
		span = x.l.span(it)
	}
	res, err := x.attempts(it)
	if span != nil {
		endSpan(span, res, err)
	}
	x.results.conclude(it, res, err)
}

// deadError wraps the last error of a call whose retries are exhausted.
type deadError struct{ last *schema.Error }

func (e *deadError) Error() string { return e.last.Detail }

func (e *deadError) Unwrap() error { return e.last }

// attempts tries the call until it ends. Both results are nil if the call has not ended but must
// not be retried here, because it is held or the job stops.
func (x *executor) attempts(it *item) (*schema.Result, error) {
	if it.rec.Method == methodRefused {
		return nil, refusedLine(it.rec.Arguments)
	}
	if x.l.lost() && !it.isNote() {
		return nil, notKnown()
	}
	if it.refused.Load() == refusedInTime {
		return nil, errRefused
	}
	if proceed, err := x.claimKey(it); err != nil || !proceed {
		return nil, err
	}
	if err := x.arguments(it); err != nil {
		return nil, err
	}
	if it.isNote() {
		return it.note()
	}
	switch held, known := x.held.wasHeld(it); {
	case !known:
		return nil, nil
	case held:
		return nil, x.held.resume(it)
	}
	return x.try(it, &retryState{began: time.Now()})
}

// retryState is the retry state of a call.
type retryState struct {
	began    time.Time
	failures int
	wait     time.Duration // before the next attempt
	doubt    error         // error of an attempt that may have run, or nil
	absent   bool          // waits for a server that no worker has announced
	recorded bool          // its end is in the call records
}

// pauses is the backoff between the attempts of one call.
var pauses = backoff.Policy{First: 100 * time.Millisecond, Max: 15 * time.Second, Jitter: 0.5}

// try runs the attempts of a call whose key is claimed and whose arguments are loaded, and records its
// end if it has no result.
func (x *executor) try(it *item, t *retryState) (*schema.Result, error) {
	res, err := x.repeat(it, t)
	x.recordFailure(it, t, err)
	return res, err
}

// recordFailure records the end of a call that failed, unless it is recorded already.
func (x *executor) recordFailure(it *item, t *retryState, err error) {
	if err != nil && !errors.Is(err, errHeld) && !t.recorded {
		x.l.settled(it, nil, err, true)
	}
}

// repeat is try without the record.
func (x *executor) repeat(it *item, t *retryState) (*schema.Result, error) {
	defer x.l.absent.note(it.call.Server, t, false)
	for {
		if t.failures > 0 {
			x.l.queued(it)
		}
		if !x.pause(it, t.wait) {
			if it.taken.Err() != nil {
				return nil, t.end(it, x.l.takenEnd(it), true)
			}
			if it.late() {
				return nil, t.end(it, schema.Errorf(schema.KindExpired, "The call expired before it could be sent; it did not run."), false)
			}
			return nil, nil
		}
		if !it.checked {
			verdict, err := x.l.o.Gate.Check(it.call)
			x.l.absent.note(it.call.Server, t, schema.KindOf(err) == schema.KindNotFound && x.missing(it, err))
			if err == nil && verdict.Assessment.Approval != nil {
				res, err := x.held.hold(it, verdict)
				if err == nil || errors.Is(err, errHeld) || !mayHoldLater(err) {
					return res, err
				}
				t.wait = pauses.Delay(t.failures)
				t.failures++
				continue
			}
			if err != nil {
				if !x.missing(it, err) || time.Since(t.began) > x.l.o.Patience {
					return nil, x.refused(it, t, &verdict, err)
				}
				t.wait = pauses.Delay(t.failures)
				t.failures++
				continue
			}
			it.judged = execution.DecisionOf(&verdict, nil)
		}
		it.checked, it.unstarted = false, false
		res, left, err := x.send(it)
		if err == nil {
			again, err := it.prepareRetry(res)
			if !again {
				return res, err
			}
			t.wait = pauses.Delay(t.failures)
			t.failures++
			continue
		}
		if res, err, over := x.failed(it, t, left, err); over {
			return res, err
		}
	}
}

// failed decides how to continue after a failed attempt. If over is true, there is no further
// attempt, and the other results are those of attempts.
func (x *executor) failed(it *item, t *retryState, left bool, err error) (res *schema.Result, end error, over bool) {
	e := schema.AsError(err)
	if doubt := dispatch.UncertainErrorOf(err); doubt != nil {
		t.doubt = doubt
	}
	it.unstarted = !left && e.Kind == schema.KindCanceled || notStarted(e)
	switch {
	case it.taken.Err() != nil && !left:
		return nil, t.end(it, x.l.takenEnd(it), true), true
	case e.CancelRequested && x.l.life.gone.Err() != nil:
		return nil, nil, true // abandoned without a cancel request: the next owner asks the worker
	case x.l.life.stopping.Err() != nil && (e.Kind == schema.KindCanceled || !left):
		return nil, nil, true // it was not sent, or its outcome is unknown here: the next owner asks the worker
	case !left && e.Kind == schema.KindCanceled:
		t.wait = pauses.Delay(t.failures) // its intent could not be written
	case e.CancelRequested && (it.call.Safe || errors.Is(err, dispatch.ErrStopped)):
		return nil, err, true // no one knows more
	case e.Kind == schema.KindOutcomeUnknown && !it.call.Safe:
		if res, end = x.settled(it, err); res != nil {
			x.l.settled(it, res, nil, true)
		}
		return res, end, true
	case notStarted(e) || !left && x.missing(it, err):
		// It is certain that the call did not start.
		if time.Since(t.began) > x.l.o.Patience {
			return nil, &deadError{t.end(it, err, false)}, true
		}
		t.wait = max(e.RetryAfter, pauses.Delay(t.failures))
	case e.Kind == schema.KindOutcomeUnknown:
		if it.attempt >= x.maxAttempts(it) {
			return nil, &deadError{e}, true
		}
		t.wait = pauses.Delay(t.failures)
	default:
		return nil, t.end(it, err, false), true
	}
	t.failures++
	return nil, nil, false
}

// refused ends a call that the gate refused. It counts the call unless an attempt already did.
func (x *executor) refused(it *item, t *retryState, verdict *admission.Verdict, err error) error {
	if !it.begun.Load() {
		rec := x.l.place(it)
		rec.PolicyDecision = records.PolicyDecision{}
		x.l.o.Chain.Refused(it.call, rec, verdict, err)
		t.recorded = true
	}
	return t.end(it, err, false)
}

// end returns the final error of a call whose last attempt failed with err or could not be made.
func (t *retryState) end(it *item, err error, canceled bool) *schema.Error {
	return dispatch.EndOf(it.call, t.doubt, err, canceled)
}

// claimKey reports whether the call owns its idempotency key. It returns false and nil if the job
// stops before that is known.
func (x *executor) claimKey(it *item) (proceed bool, err error) {
	for n := 0; it.rec.Key != "" && !it.keyed; n++ {
		ctx, cancel := bound(x.l.life.stopping)
		kept, mine, err := remember(ctx, x.l.o.Store, it.rec.Key, journal.Entry{CallID: it.call.ID, Journal: x.l.owned.ID(), Index: it.rec.Index})
		cancel()
		if it.keyed = err == nil; it.keyed {
			if it.twin = kept.CallID; mine {
				it.twin = ""
			}
		} else if !x.pause(it, pauses.Delay(n)) {
			if it.taken.Err() != nil {
				return false, x.l.takenEnd(it)
			}
			return false, nil
		}
	}
	if it.twin != "" && it.twin != it.call.ID {
		return false, schema.Errorf(schema.KindCanceled, "Two concurrent requests used this Idempotency-Key; call %s runs for both.", it.twin)
	}
	return true, nil
}

func (x *executor) maxAttempts(it *item) int {
	if n := it.rec.MaxAttempts; n > 0 {
		return n
	}
	return x.l.o.Attempts
}

// missing reports whether the call failed because its server is not available. That may be
// temporary, for example while its workers restart.
func (x *executor) missing(it *item, err error) bool {
	switch schema.KindOf(err) {
	case schema.KindUnavailable:
		return true
	case schema.KindNotFound:
		if !catalog.TenantsOf(x.l.o.Catalog).Sees(it.call.Principal.Tenant, it.call.Server) {
			return true
		}
		_, err := x.l.o.Catalog.Server(it.call.Server)
		return err != nil
	}
	return false
}

// pause waits for d. It returns false if the call must not be tried any further.
func (x *executor) pause(it *item, d time.Duration) bool {
	if x.l.life.stopping.Err() != nil || it.taken.Err() != nil || it.late() {
		return false
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !it.late()
	case <-it.taken.Done():
		return false
	case <-x.l.life.stopping.Done():
		return false
	}
}

// arguments loads arguments that are stored outside the log.
func (x *executor) arguments(it *item) error {
	if it.call.Arguments != nil || it.rec.ArgumentsObject.Size == 0 {
		return nil
	}
	ctx, cancel := bound(x.l.life.gone)
	defer cancel()
	var err error
	it.call.Arguments, err = x.l.o.Store.Arguments(ctx, it.call.Principal.Tenant, x.l.owned.ID(), it.rec)
	return err
}

// send makes one attempt. left reports whether the intent was written, so the call may have
// started. Until then the attempt is canceled if the job stops or the caller cancels the call.
func (x *executor) send(it *item) (res *schema.Result, left bool, err error) {
	ctx, cancel := context.WithCancel(x.l.life.gone)
	defer cancel()
	var mu sync.Mutex
	recall := func() {
		mu.Lock()
		defer mu.Unlock()
		if !left {
			cancel()
		}
	}
	defer context.AfterFunc(x.l.life.stopping, recall)()
	defer context.AfterFunc(it.taken, recall)()
	it.call.Bulk = !it.waited
	it.call.Chosen = func(worker schema.WorkerID) {
		mu.Lock()
		defer mu.Unlock()
		left = false // the previous attempt did not start, or may be repeated
		if ctx.Err() != nil {
			return
		}
		it.attempt++
		it.worker = worker
		it.begun.Store(true)
		if !needsIntent(it.call) {
			left = true // it is safe to repeat, so it needs no intent
			return
		}
		writing, stop := bound(ctx)
		err := x.l.owned.Intend(writing, journal.Intent(it.rec.Index, it.attempt, worker))
		stop()
		if err != nil || !x.l.owned.Held() {
			cancel() // it must not be sent without its intent
			x.l.noIntent(1, err)
			return
		}
		left = true
	}
	res, err = x.l.o.Chain.Run(ctx, it.call, x.l.plan(it))
	mu.Lock()
	defer mu.Unlock()
	return res, left, err
}
