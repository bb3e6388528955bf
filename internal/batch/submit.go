package batch

import (
	"context"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/admission"
	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Submission is a single call that must outlive its caller.
type Submission struct {
	// Call is the call; its ID is filled in.
	Call        *schema.Call
	CallbackURL string
	// Key is the caller's Idempotency-Key, "" for none; Fingerprint the digest of
	// the request that carries it.
	Key, Fingerprint string
	// Waited says that the caller waits for the end.
	Waited bool
	// Verdict is that of the gate on the call, where it was asked before; nil: it is
	// asked.
	Verdict *admission.Verdict
}

// keepKeys is how long an idempotency key counts.
const keepKeys = 24 * time.Hour

// Ticket is an accepted call.
type Ticket struct {
	CallID string
	// Held says that the call waits for an approval, or has one already; it is stored
	// with the approval, and nothing else of the ticket is set.
	Held *approval.Held
	// Replayed says that the call was accepted before, under the same key.
	Replayed bool
	it       *item
}

// Submit accepts a call: when it returns, the call is stored, and it runs whatever
// becomes of the caller. A call that needs an approval is held instead; see
// [Ticket]. Errors: those of [admission.Gate.Check];
// KindKeyReused for a key that stands for another request; KindQuota when as many
// of the principal's wait as may; KindUnavailable when nothing can be stored.
func (r *Runner) Submit(ctx context.Context, s Submission) (*Ticket, error) {
	call := s.Call
	hash := ""
	if s.Key != "" {
		hash = journal.KeyHash(call.Principal.Name, s.Key)
		kept, err := r.o.Store.Recall(ctx, hash)
		if err == nil {
			return r.replayStored(ctx, kept, &s)
		}
		if schema.KindOf(err) != schema.KindNotFound {
			return nil, err
		}
	}
	var verdict admission.Verdict
	if s.Verdict != nil {
		verdict = *s.Verdict
	} else {
		var err error
		if verdict, err = r.o.Gate.Check(call); err != nil {
			return nil, err
		}
	}
	if verdict.Assessment.Approval != nil {
		return r.submitHeld(ctx, s, hash, verdict)
	}
	if len(call.Extra) > extraMost {
		return nil, schema.Errorf(schema.KindTooLarge, "What comes beside the arguments has %d bytes; at most %d are stored with a call.", len(call.Extra), extraMost)
	}
	now := time.Now().UTC()
	return r.accept(ctx, s, journal.CallRecord{
		Method: call.Method, Server: call.Server, Tool: call.Tool, ToolDigest: call.ToolDigest, Timeout: call.Timeout, Accepted: now, Expires: now.Add(r.o.Lifetime),
		Safe: call.Safe, Principal: call.Principal, Trace: call.Trace, CallbackURL: s.CallbackURL, Extra: call.Extra, Arguments: call.Arguments,
	}, hash)
}

// accept stores a call that may run, under the hash of its key, and hands it over.
func (r *Runner) accept(ctx context.Context, s Submission, rec journal.CallRecord, hash string) (*Ticket, error) {
	call := s.Call
	queued, err := r.mayQueue(&call.Principal)
	if err != nil {
		return nil, err
	}
	inTime, cancel := bound(ctx)
	defer cancel()
	l, leave, err := r.useLane(inTime)
	if err != nil {
		queued()
		return nil, err
	}
	rec.Key = hash
	it := l.job.item(&rec, 0)
	it.call.Safe, it.call.ToolDigest, it.checked, it.waited = call.Safe, call.ToolDigest, true, s.Waited
	it.call.Progress = call.Progress
	// A caller that leaves does not stop what is on its way to the disk: it would be
	// stored, and nobody would know that it is to run.
	over := make(chan accepted, 1)
	err = l.writer.AppendThen(inTime, func(first uint64, err error) {
		go func() { // the lane, and the runner with it, waits for leave
			defer leave()
			defer queued()
			over <- r.stored(l, it, first, err, hash, s.Fingerprint)
		}()
	}, rec)
	if err != nil {
		defer leave()
		defer queued()
		return nil, l.fault(err)
	}
	select {
	case a := <-over:
		if a.id != "" {
			call.ID = a.id
		}
		return a.ticket, a.err
	case <-inTime.Done():
	}
	if ctx.Err() != nil {
		return nil, schema.Errorf(schema.KindUnavailable, "The caller left before the call was stored; it may still be stored, and run. (%w)", ctx.Err())
	}
	if !it.refused.CompareAndSwap(refusedNot, refusedInTime) && hash == "" {
		a := <-over // it was stored at this very moment
		call.ID = a.id
		return a.ticket, a.err
	}
	return nil, notStored(inTime.Err())
}

// Whether a call was refused because it was not stored in time.
const (
	refusedNot    int32 = iota // it is not decided
	refusedInTime              // it was: it does not run, stored or not
	refusedNever               // it is stored and runs
)

// errRefused is the end of a call that was stored after its caller had been told that it
// could not be.
var errRefused = schema.Errorf(schema.KindCanceled, "The call could not be stored in time, which its caller was told; it did not run.")

// notStored is for the caller of a call that could not be stored in time.
func notStored(err error) error {
	e := schema.Errorf(schema.KindUnavailable, "The call could not be stored within %s, so it was not accepted; see that NATS runs and that its disk has room. Send it again later; with an Idempotency-Key it runs once, however often it is sent. (%w)", writeTimeout, err)
	e.Retryable, e.RetryAfter = true, 5*time.Second
	return e
}

// accepted is what became of a call that was to be accepted. id is set when it is
// stored.
type accepted struct {
	ticket *Ticket
	id     string
	err    error
}

// fault is what a caller is told of a call that its lane does not take.
func (l *lane) fault(err error) error {
	if schema.KindOf(err) != schema.KindConflict {
		return err
	}
	l.job.halt(errLost)
	e := schema.Errorf(schema.KindUnavailable, "The call could not be stored just now, and did not run; send it again.")
	e.Retryable, e.RetryAfter = true, time.Second
	return e
}

// stored hands over a call that the lane has stored at the index first, or tells why
// it has not.
func (r *Runner) stored(l *lane, it *item, first uint64, err error, hash, fingerprint string) accepted {
	if err != nil {
		return accepted{err: l.fault(err)}
	}
	it.rec.Index = first
	it.call.ID = l.job.id(it.rec)
	if !it.refused.CompareAndSwap(refusedNot, refusedNever) {
		l.job.handOver(it) // it ends as canceled, and its key stays free
		return accepted{}
	}
	ctx, cancel := bound(context.Background())
	defer cancel()
	kept, mine, err := r.remember(ctx, hash, fingerprint, it.call.ID, l.job.o.ID(), first)
	it.twin = kept.CallID
	it.keyed = err == nil
	l.job.handOver(it)                      // one whose key belongs to another call ends as canceled
	a := accepted{id: it.call.ID, err: err} // on an error it is stored, and runs when it is known that the key is its own
	switch {
	case err != nil:
	case mine:
		a.ticket = &Ticket{CallID: it.call.ID, it: it}
	default:
		a.ticket, a.err = replay(kept, fingerprint)
	}
	return a
}

// submitHeld holds the call; the ledger of approvals makes it outlive its caller.
func (r *Runner) submitHeld(ctx context.Context, s Submission, hash string, v admission.Verdict) (*Ticket, error) {
	if s.Call.ID == "" {
		s.Call.ID = schema.NewCallID()
	}
	counted, err := r.mayQueue(&s.Call.Principal)
	if err != nil {
		return nil, err
	}
	held, err := r.o.Gate.Hold(ctx, s.Call, v, s.CallbackURL)
	counted() // as held from here on
	if err != nil {
		return nil, err
	}
	ticket := &Ticket{CallID: s.Call.ID, Held: held}
	kept, mine, err := r.remember(ctx, hash, s.Fingerprint, s.Call.ID, "", 0)
	if err == nil && mine {
		return ticket, nil
	}
	if _, cancelErr := r.o.Desk.Cancel(ctx, s.Call.ID, s.Call.Principal); cancelErr != nil {
		r.o.Log.Warn("taking back a call whose key could not be stored", "call", s.Call.ID, "error", cancelErr)
	}
	if err != nil {
		return nil, err
	}
	return replay(kept, s.Fingerprint)
}

// remember ties a key to a call; without a key the call is its own.
func (r *Runner) remember(ctx context.Context, hash, fingerprint, callID, journalID string, index uint64) (journal.Entry, bool, error) {
	if hash == "" {
		return journal.Entry{}, true, nil
	}
	return r.o.Store.Remember(ctx, hash, journal.Entry{Fingerprint: fingerprint, CallID: callID, Journal: journalID, Index: index, At: time.Now().UTC()}, keepKeys)
}

func replay(kept journal.Entry, fingerprint string) (*Ticket, error) {
	if kept.Fingerprint != fingerprint && kept.Fingerprint != "" { // an owner that took over does not know it
		return nil, schema.Errorf(schema.KindKeyReused, "This Idempotency-Key was used for another request; nothing was run. Use a new key for a new request.").WithCall(kept.CallID)
	}
	return &Ticket{CallID: kept.CallID, Replayed: true}, nil
}

// replayStored is replay for a request that came again: what its key stands for may have
// been lost meanwhile.
func (r *Runner) replayStored(ctx context.Context, kept journal.Entry, s *Submission) (*Ticket, error) {
	t, err := replay(kept, s.Fingerprint)
	if err != nil || time.Since(kept.At) < clocksDiffer { // a replica may not have it yet
		return t, err
	}
	if kept.Journal != "" {
		_, err = r.find(ctx, kept.CallID, s.Call.Principal)
	} else {
		_, _, err = r.o.Ledger.ByCall(ctx, kept.CallID)
	}
	if schema.KindOf(err) == schema.KindNotFound || schema.KindOf(err) == schema.KindOutcomeUnknown {
		return nil, journal.LostKey().WithCall(kept.CallID)
	}
	return t, nil // other faults are told where the call is read
}

// handOver runs a call of a lane.
func (j *job) handOver(it *item) {
	j.flying.Add(1)
	j.count.Add(1)
	j.r.o.Quota.Queued(&it.call.Principal, 1)
	j.enlist(it)
	go func() {
		defer j.flying.Done()
		defer j.count.Add(-1)
		defer j.r.o.Quota.Queued(&it.call.Principal, -1)
		defer j.delist(it)
		j.execute(it)
	}()
}

// Wait returns how the call ended. When ctx ends first its error is returned, and
// the call goes on.
func (r *Runner) Wait(ctx context.Context, t *Ticket) (*journal.ResultRecord, error) {
	if t.it == nil {
		return r.awaitResult(ctx, t.CallID)
	}
	select {
	case <-t.it.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if t.it.result != nil {
		return t.it.result, nil
	}
	return r.awaitResult(ctx, t.CallID) // another front door has it now
}

// awaitResult follows the journal of a call until its result is there.
func (r *Runner) awaitResult(ctx context.Context, id string) (*journal.ResultRecord, error) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return nil, schema.Errorf(schema.KindNotFound, "There is no call %q.", id)
	}
	errFound := errors.New("found")
	var found *journal.ResultRecord
	err := r.o.Store.Follow(ctx, journalID, journal.Cursor{}, func(page []journal.ResultRecord, _ journal.Cursor) error {
		for i := range page {
			if page[i].Index == index {
				found = &page[i]
				return errFound
			}
		}
		return nil
	})
	if found != nil {
		return found, nil
	}
	if err == nil {
		err = schema.Errorf(schema.KindNotFound, "The result of call %q is not kept any more.", id)
	}
	return nil, err
}
