package batch

import (
	"context"
	"errors"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// hold puts the question whether the call may run, and leaves the call until it is
// answered: it takes no place in the window. An approved call is run by whichever
// front door claims it, under the fence of the ledger; what comes of it is copied
// into the journal.
func (j *job) hold(it *item, v admission.Verdict) (*schema.Result, error) {
	for {
		j.mu.Lock()
		room := len(j.held) < maxHeld
		j.mu.Unlock()
		if room {
			break
		}
		select {
		case <-j.parked:
		case <-j.stopping.Done():
			return nil, nil
		}
	}
	id := ledger.IDFor(it.call.ID)
	it.approval = id
	it.waits.Store(true)
	j.mu.Lock()
	j.held[it.rec.Index] = it
	j.mu.Unlock()
	ctx, cancel := bound(j.gone)
	defer cancel()
	err := j.r.o.Gate.Hold(ctx, it.call, v, "")
	var held *admission.HeldError
	switch {
	case errors.As(err, &held), schema.KindOf(err) == schema.KindConflict:
		// Held now, or by an earlier owner of the journal.
		if held != nil && held.Run {
			gone, leave := context.WithCancel(j.gone)
			leave() // its end is copied, nobody waits for it
			_, _ = j.r.o.Release(gone, held.Approval)
		}
		j.flying.Add(1)
		go func() {
			defer j.flying.Done()
			j.copyEnd(it) // it may have ended before it was watched
		}()
		return nil, nil
	}
	j.drop(it)
	if err != nil && schema.AsError(err).Retryable && j.stopping.Err() == nil {
		it.checked = false
		return j.attempts(it)
	}
	return nil, err
}

// drop forgets that a call is held.
func (j *job) drop(it *item) {
	it.approval = ""
	it.waits.Store(false)
	j.mu.Lock()
	delete(j.held, it.rec.Index)
	j.mu.Unlock()
	select {
	case j.parked <- struct{}{}:
	default:
	}
}

func (j *job) isHeld(index uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held[index] != nil
}

// released is told that the approval of a call has ended.
func (j *job) released(index uint64) {
	j.mu.Lock()
	it := j.held[index]
	if it != nil && j.gone.Err() == nil {
		j.flying.Add(1)
	}
	j.mu.Unlock()
	if it == nil || j.gone.Err() != nil {
		return
	}
	go func() {
		defer j.flying.Done()
		j.copyEnd(it)
	}()
}

// copyEnd copies how a held call ended into the journal, once it has.
func (j *job) copyEnd(it *item) {
	ctx, cancel := bound(j.gone)
	defer cancel()
	a, _, err := j.r.o.Ledger.ByCall(ctx, it.call.ID)
	if err != nil || !a.State.Ended() {
		return // the watch tells of its end
	}
	rec := journal.ResultRecord{
		Index: it.rec.Index, CallID: it.call.ID, CustomID: it.rec.CustomID, Attempt: 1, Ended: a.Ended, Digest: a.ResultDigest, ToolError: a.ToolError,
	}
	switch a.State {
	case ledger.Succeeded:
		if rec.Body, err = j.r.o.Ledger.Result(ctx, a.ID); err != nil {
			j.r.o.Log.Warn("reading the result of an approved call", "call", it.call.ID, "error", err)
			return
		}
		rec.Outcome = journal.Succeeded
	case ledger.Denied, ledger.Revoked:
		rec.Outcome, rec.Error = journal.Denied, encodeError(schema.Errorf(schema.KindForbidden, "The call was denied; it did not run.").WithCall(it.call.ID))
	case ledger.Expired:
		rec.Outcome, rec.Error = journal.Expired, encodeError(schema.Errorf(schema.KindExpired, "Nobody approved the call in time; it did not run.").WithCall(it.call.ID))
	case ledger.Canceled:
		rec.Outcome, rec.Error = journal.Canceled, encodeError(schema.Errorf(schema.KindCanceled, "The call was canceled before it was approved; it did not run.").WithCall(it.call.ID))
	case ledger.Unknown:
		rec.Outcome = journal.Unknown
	default:
		rec.Outcome = journal.Failed
	}
	if a.Error != nil {
		rec.Error = encodeError(a.Error)
	}
	j.drop(it)
	j.store(it, rec)
}

// awaitHeld waits until no call is held any more, or the job stops.
func (j *job) awaitHeld() error {
	for {
		j.flying.Wait()
		j.mu.Lock()
		n := len(j.held)
		j.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-j.parked:
		case <-j.stopping.Done():
			return nil
		}
	}
}

// withdraw takes a held call back.
func (r *Runner) withdraw(it *item) {
	ctx, cancel := bound(context.Background())
	defer cancel()
	if _, err := r.o.Desk.Cancel(ctx, it.call.ID, it.call.Principal); err != nil && schema.KindOf(err) != schema.KindConflict {
		r.o.Log.Warn("taking back a call that is held", "call", it.call.ID, "error", err)
	}
}
