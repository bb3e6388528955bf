package batch

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// errHeld says that a call waits for a yes, and is left alone until it has one.
var errHeld = errors.New("the call is held")

// hold puts the question whether the call may run, and leaves the call until it is
// answered: it takes no place in the window. An approved call is run by whichever
// front door claims it, under the fence of the ledger; what comes of it is copied
// into the journal. An error that is retryable says that there is no room for it yet.
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
		case <-it.taken.Done():
			return nil, errTaken
		case <-j.stopping.Done():
			return nil, nil
		}
	}
	j.park(it)
	ctx, cancel := bound(j.gone)
	defer cancel()
	held, err := j.r.o.Gate.Hold(ctx, it.call, v, "")
	if err == nil || schema.KindOf(err) == schema.KindConflict {
		// Held now, or by an earlier owner of the journal.
		if err == nil && held.Run {
			gone, leave := context.WithCancel(j.gone)
			leave() // its end is copied, nobody waits for it
			_, _ = j.r.o.Release(gone, held.Approval)
		}
		it.forget()
		j.watchEnd(it) // it may have ended before it was watched
		return nil, errHeld
	}
	if schema.AsError(err).Retryable && j.stopping.Err() != nil {
		return nil, errHeld // it may be held all the same: whoever goes on looks
	}
	j.drop(it)
	return nil, err
}

// forget drops the arguments of a call that is held: the journal and the ledger have
// them, and nothing here reads them again.
func (it *item) forget() {
	it.call.Arguments, it.rec.Arguments = nil, nil
	it.call.Extra, it.rec.Extra = nil, nil
}

// park notes that a call is held.
func (j *job) park(it *item) {
	it.waits.Store(true)
	j.mu.Lock()
	j.held[it.rec.Index] = it
	j.mu.Unlock()
}

// drop forgets that a call is held; false means that somebody else did.
func (j *job) drop(it *item) bool {
	j.mu.Lock()
	mine := j.held[it.rec.Index] == it
	if mine {
		delete(j.held, it.rec.Index)
	}
	j.mu.Unlock()
	if !mine {
		return false
	}
	it.waits.Store(false)
	select {
	case j.parked <- struct{}{}:
	default:
	}
	return true
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
	j.mu.Unlock()
	if it != nil {
		j.watchEnd(it)
	}
}

// watchEnd copies the end of a held call, where it has ended.
func (j *job) watchEnd(it *item) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held[it.rec.Index] != it || j.over {
		return
	}
	j.flying.Add(1)
	go func() {
		defer j.flying.Done()
		j.copyEnd(it)
	}()
}

// copyEnd copies how a held call ended into the journal, once it has. What cannot be
// read just now is read again: nobody tells of an end twice.
func (j *job) copyEnd(it *item) {
	for n := 0; ; n++ {
		rec, ended, err := j.endOf(it)
		if err == nil {
			if ended && j.drop(it) {
				j.store(it, rec)
			}
			return // of one that has not ended the watch tells
		}
		if schema.KindOf(err) == schema.KindNotFound && n >= readTries {
			return // it is not kept any more
		}
		if n == 0 {
			j.r.o.Log.Warn("reading the end of a held call; it is tried again", "call", it.call.ID, "error", err)
		}
		again := time.NewTimer(pauses.Delay(n))
		select {
		case <-again.C:
		case <-j.leaving.Done():
			again.Stop()
			return
		}
	}
}

// endOf says how a held call ended, where it has.
func (j *job) endOf(it *item) (rec journal.ResultRecord, ended bool, err error) {
	ctx, cancel := bound(j.gone)
	defer cancel()
	a, _, err := j.r.o.Ledger.ByCall(ctx, it.call.ID)
	if err != nil || !a.State.Ended() {
		return rec, false, err
	}
	rec = journal.ResultRecord{
		Index: it.rec.Index, CallID: it.call.ID, CustomID: it.rec.CustomID, Attempt: 1, Ended: a.Ended, Digest: a.ResultDigest, ToolError: a.ToolError,
	}
	say := func(o journal.Outcome, e *schema.Error) {
		rec.Outcome = o
		if e != nil {
			rec.Error = encodeError(e.WithCall(it.call.ID))
		}
	}
	switch a.State {
	case ledger.Succeeded:
		rec.Body, err = j.r.o.Ledger.Result(ctx, a.ID)
		switch {
		case schema.KindOf(err) == schema.KindUnavailable:
			return rec, false, err
		case err != nil:
			say(journal.Unknown, schema.Errorf(schema.KindOutcomeUnknown, "The call ran, and its result cannot be read any more: %v", err))
		default:
			say(journal.Succeeded, nil)
		}
	case ledger.Denied, ledger.Revoked:
		say(journal.Denied, schema.Errorf(schema.KindForbidden, "The call was denied; it did not run."))
	case ledger.Expired:
		say(journal.Expired, schema.Errorf(schema.KindExpired, "Nobody approved the call in time; it did not run."))
	case ledger.Canceled:
		say(journal.Canceled, schema.Errorf(schema.KindCanceled, "The call was canceled before it was approved; it did not run."))
	case ledger.Unknown:
		say(journal.Unknown, nil)
	default:
		say(journal.Failed, nil)
	}
	if a.Error != nil {
		rec.Error = encodeError(a.Error)
	}
	return rec, true, nil
}

// readTries is how often an approval is looked for that a replica does not have yet.
const readTries = 8

// awaitHeld waits until no call is held or being taken back any more, or until ends.
func (j *job) awaitHeld(until context.Context) error {
	for {
		j.flying.Wait()
		j.mu.Lock()
		n := len(j.held) + len(j.taking)
		j.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-j.parked:
		case <-until.Done():
			return nil
		}
	}
}
