package batch

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/calls/admission"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// errHeld reports that a call waits for an approval and must not be run before.
var errHeld = errors.New("the call is held")

// maxHeld limits the calls of one journal that wait for an approval at once. More would fill the
// ledger, and people would not review that many.
const maxHeld = 1000

// heldCalls requests approvals for the calls of a journal, waits for the decisions without a
// goroutine for each, and copies the outcomes into the journal.
type heldCalls struct {
	l       *lease
	results *results
	copies  sync.WaitGroup // outcomes being copied; none begins once the call table is closed
	// former holds the indexes of the calls that an earlier owner held. If unsure is set, there may be
	// others. They do not change once the job has begun.
	former map[uint64]bool
	unsure bool
}

// findFormer finds the calls that an earlier owner held. Their approvals decide about them, and not the
// policy of today: a call that it allows would run now, and once more when it is approved.
func (h *heldCalls) findFormer() error {
	if !h.l.owned.Resumed() {
		return nil
	}
	ctx, cancel := bound(h.l.life.leaving)
	defer cancel()
	if err := ledger.CatchUp(ctx, h.l.o.Ledger); err != nil { // the earlier owner may have held a call a moment ago
		return err
	}
	h.former = make(map[uint64]bool)
	for _, a := range approvalsOf(h.l.o.Ledger, schema.AllTenants(), h.l.owned.ID(), func(*ledger.Approval) bool { return true }) {
		h.former[a.index] = true
	}
	h.unsure = !h.l.o.Ledger.Complete(h.l.m.Created.Add(-clocksDiffer))
	return nil
}

// mayBeFormer reports whether an earlier owner may have held the call. A call with an attempt runs again
// because a person ordered it.
func (h *heldCalls) mayBeFormer(it *item) bool {
	return it.attempt == 0 && (h.unsure || h.former[it.rec.Index])
}

// wasHeld reports whether an earlier owner held the call. It reads the ledger if the approval may have ended
// too long ago for this process's view. known is false if the job must stop before it could be read.
func (h *heldCalls) wasHeld(it *item) (held, known bool) {
	switch {
	case !h.mayBeFormer(it):
		return false, true
	case h.former[it.rec.Index]:
		return true, true
	}
	for n := 0; ; n++ {
		held, err := h.stored(it)
		if err == nil {
			return held, true
		}
		if !h.again(n, it, err) {
			return false, false
		}
	}
}

// heldBefore is wasHeld for a call that is not about to run. It always reads the ledger.
func (h *heldCalls) heldBefore(it *item) (bool, error) {
	if !h.l.owned.Resumed() || it.attempt > 0 {
		return false, nil
	}
	return h.stored(it)
}

// stored reports whether the ledger has an approval of the call.
func (h *heldCalls) stored(it *item) (bool, error) {
	ctx, cancel := bound(h.l.life.gone)
	defer cancel()
	_, _, err := h.l.o.Ledger.ByCall(ctx, schema.AllTenants(), it.call.ID)
	if schema.KindOf(err) == schema.KindNotFound {
		return false, nil
	}
	return err == nil, err
}

// again waits after the failure number n to read or store a call's approval, from 0, and logs the first one.
// It returns false if the job must stop.
func (h *heldCalls) again(n int, it *item, err error) bool {
	if n == 0 {
		h.l.o.Log.Warn("the approval of a held call could not be read or stored; it is tried again", "call", it.call.ID, "error", err)
	}
	return sleep.For(pauses.Delay(n), h.l.life.leaving.Done())
}

// resume continues to hold a call that an earlier owner held.
func (h *heldCalls) resume(it *item) error {
	h.l.calls.park(it)
	it.forget()
	h.watchEnd(it) // it may have ended
	return errHeld
}

// hold requests an approval for the call and returns without waiting for the decision, so a held
// call takes no place in the window. The front door that claims an approved call runs it, under
// the fence of the ledger; its outcome is copied into the journal. After an error for which
// mayHoldLater returns true, the call must be held again.
func (h *heldCalls) hold(it *item, v admission.Verdict) (*schema.Result, error) {
	for {
		if h.l.calls.heldCount() < maxHeld {
			break
		}
		select {
		case <-h.l.calls.changed:
		case <-it.taken.Done():
			return nil, errTaken
		case <-h.l.life.stopping.Done():
			return nil, nil
		}
	}
	h.l.calls.park(it)
	held, err := h.open(it, &v)
	if err == nil || schema.KindOf(err) == schema.KindConflict {
		// It is held now, or was already held by an earlier owner of the journal.
		if err == nil {
			rec := h.l.place(it)
			rec.ID, rec.Attempt, rec.PolicyDecision = records.IDOfHeld(held.Approval.Created, it.call.ID), 0, records.PolicyDecision{}
			h.l.o.Chain.Held(it.call, rec, &v, held)
		}
		h.l.unlist(it)
		if err == nil && held.Run {
			gone, leave := context.WithCancel(h.l.life.gone)
			leave() // its outcome is copied, no caller waits for it
			_, _ = h.l.o.Release(gone, held.Approval, nil)
		}
		it.forget()
		h.watchEnd(it) // it may have ended before it was watched
		return nil, errHeld
	}
	if mayHoldLater(err) && h.l.life.stopping.Err() != nil {
		return nil, errHeld // it may be held nevertheless: the next owner checks
	}
	h.l.calls.drop(it)
	return nil, err
}

// open requests the approval of a call. While it is unknown whether the approval is stored, open tries again:
// otherwise the policy, which can change, or the caller could let the call run or end here, and the call would
// run once more if the approval is stored and given. If the job must leave the journal before, the error is
// one for which mayHoldLater returns true.
func (h *heldCalls) open(it *item, v *admission.Verdict) (*approval.Held, error) {
	var doubt error
	for n := 0; ; n++ {
		held, err := h.tryOpen(it, v)
		if err == nil || schema.KindOf(err) == schema.KindConflict {
			return held, err
		}
		if e := schema.AsError(err); e.Kind == schema.KindUnavailable && !e.Retryable {
			doubt = err
		}
		if doubt == nil {
			return nil, err
		}
		if !h.again(n, it, err) {
			return nil, doubt
		}
	}
}

func (h *heldCalls) tryOpen(it *item, v *admission.Verdict) (*approval.Held, error) {
	if !h.l.owned.Held() { // the next owner may have ended the call already
		return nil, schema.Errorf(schema.KindUnavailable, "The lease of the journal has expired.").RetryableAfter(0)
	}
	ctx, cancel := bound(h.l.life.gone)
	defer cancel()
	return h.l.o.Desk.Open(ctx, it.call, v.Tool.Raw, &v.Assessment, "")
}

// mayHoldLater reports whether a call that was not held can be held later: there is no capacity for it
// yet, or the ledger is not available. In the latter case the approval may be stored nevertheless, and
// then approved, so the call must not end; holding it again finds the approval.
func mayHoldLater(err error) bool {
	e := schema.AsError(err)
	return e.Retryable || e.Kind == schema.KindUnavailable
}

// forget drops the arguments of a held call. The journal and the ledger have them, and they are
// not read here again.
func (it *item) forget() {
	it.call.Arguments, it.rec.Arguments = nil, nil
	it.call.Extra, it.rec.Extra = nil, nil
}

// released handles the end of the approval of a call.
func (h *heldCalls) released(index uint64) {
	if it := h.l.calls.heldCall(index); it != nil {
		h.watchEnd(it)
	}
}

// watchEnd starts copying the outcome of a held call, if it has ended.
func (h *heldCalls) watchEnd(it *item) {
	h.l.calls.whileHeld(it, func() { h.copies.Go(func() { h.copyEnd(it) }) })
}

// copyEnd copies the outcome of a held call into the journal, if it has ended. It retries reads
// that fail, because there is only one notification of an end.
func (h *heldCalls) copyEnd(it *item) {
	for n := 0; ; n++ {
		rec, ended, err := h.endOf(it)
		if err == nil {
			if ended && h.l.calls.claimEnd(it) {
				h.results.store(it, rec)
				h.l.calls.endStored(it)
			}
			return // if it has not ended, the notification follows
		}
		if schema.KindOf(err) == schema.KindNotFound && n >= readTries {
			return // it is no longer kept
		}
		if !h.again(n, it, err) {
			return
		}
	}
}

// endOf returns the outcome of a held call as a result record. ended is false if it has not ended.
func (h *heldCalls) endOf(it *item) (rec journal.ResultRecord, ended bool, err error) {
	ctx, cancel := bound(h.l.life.gone)
	defer cancel()
	// The view, because it has what was announced. A replica may not have it yet.
	a, err := h.l.o.Ledger.Known(ctx, schema.OnlyTenant(it.call.Principal.Tenant), ledger.IDFor(it.call.ID))
	if err != nil || !a.State.Ended() {
		return rec, false, err
	}
	rec = journal.ResultRecord{
		Index: it.rec.Index, CallID: it.call.ID, Tenant: it.call.Principal.Tenant, CustomID: it.rec.CustomID, Attempt: attemptOf(h.l.owned.Progress(), it.rec.Index, 1), Ended: a.Ended, Digest: a.ResultDigest, ToolError: a.ToolError,
	}
	say := func(o journal.Outcome, e *schema.Error) {
		rec.Outcome = o
		if e != nil {
			rec.Error = encodeError(e.WithCall(it.call.ID))
		}
	}
	switch a.State {
	case ledger.Succeeded:
		rec.Body, err = h.l.o.Ledger.Result(ctx, a)
		switch {
		case schema.KindOf(err) == schema.KindUnavailable:
			return rec, false, err
		case err != nil:
			say(journal.Unknown, schema.Errorf(schema.KindOutcomeUnknown, "The call ran, and its result can no longer be read: %v", err))
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
	if rec.Outcome == journal.Unknown {
		rec.Recorded = records.IDOfHeld(a.Created, it.call.ID)
	}
	return rec, true, nil
}

// readTries limits the reads of an approval that a replica does not have yet.
const readTries = 8

// wait waits until no call is held or being canceled, or until the context ends.
func (h *heldCalls) wait(until context.Context) error {
	for {
		h.l.window.wait()
		if h.l.calls.unsettled() == 0 {
			return nil
		}
		select {
		case <-h.l.calls.changed:
		case <-until.Done():
			return nil
		}
	}
}

// withdrawing limits the held calls that are withdrawn concurrently.
const withdrawing = 32

// withdrawAll withdraws the held calls, including those held by an earlier owner. Calls that can
// no longer be withdrawn because they run or have ended remain held and are watched.
func (h *heldCalls) withdrawAll() error {
	if err := h.find(); err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(withdrawing)
	for _, it := range h.l.calls.heldCalls() {
		all.Go(func() error { return h.withdraw(it) })
	}
	return all.Wait()
}

// find adds the calls of the journal that an earlier owner held. Their approved calls may be
// running, or have ended without a copy of their outcome.
func (h *heldCalls) find() error {
	for _, a := range approvalsOf(h.l.o.Ledger, schema.AllTenants(), h.l.owned.ID(), func(*ledger.Approval) bool { return true }) {
		index := a.index
		if h.l.calls.heldCall(index) != nil || h.l.owned.Progress().Ended(index) {
			continue
		}
		c, err := h.l.o.Store.FindCall(h.l.life.gone, schema.AllTenants(), h.l.owned.ID(), index)
		if _, lost := gapOf(err); lost || schema.KindOf(err) == schema.KindNotFound {
			c, err = &journal.CallRecord{Index: index, Principal: schema.Principal{Name: a.Binding.Requester.Name, Tenant: a.Binding.Tenant}}, nil // its record is lost, but not its approval
		}
		if err != nil {
			return err
		}
		it := h.l.item(c, 0)
		it.forget()
		h.l.calls.park(it)
	}
	return nil
}

// withdrawFormer withdraws those of the calls that an earlier owner held and whose approvals are not in this
// process's view. They have most likely ended, and are then watched.
func (h *heldCalls) withdrawFormer(calls []journal.CallRecord) error {
	if !h.unsure {
		return nil
	}
	var all errgroup.Group
	all.SetLimit(withdrawing)
	for i := range calls {
		c := calls[i] // a copy, because a held call is kept for long
		if c.Method == methodRefused || h.l.calls.heldCall(c.Index) != nil || h.l.owned.Progress().Ended(c.Index) {
			continue
		}
		all.Go(func() error {
			it := h.l.item(&c, h.l.owned.Progress().Standing(c.Index).Attempt)
			held, known := h.wasHeld(it)
			if !known {
				return errStopped
			}
			if !held {
				return nil
			}
			it.forget()
			h.l.calls.park(it)
			return h.withdraw(it)
		})
	}
	return all.Wait()
}

// withdraw withdraws a held call. The call remains held if it runs or has ended. On an error its
// state is unknown.
func (h *heldCalls) withdraw(it *item) error {
	if !h.l.calls.drop(it) {
		return nil // its outcome is being copied, or was
	}
	ctx, cancel := bound(h.l.life.gone)
	defer cancel()
	_, err := h.l.o.Desk.Cancel(ctx, it.call.ID, it.call.Principal)
	switch schema.KindOf(err) {
	case schema.KindConflict:
		h.l.calls.park(it)
		h.watchEnd(it)
		return nil
	case schema.KindNotFound: // it was never held
		return nil
	}
	return err
}
