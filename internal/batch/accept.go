package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// acceptor stores single calls in a lane and hands them over to its job. It is safe for
// concurrent use.
type acceptor struct {
	o       *Options
	lanes   *lanes
	backlog *backlog
}

// accept stores a call that passed the gate, under the hash of its key, and hands it over.
func (a *acceptor) accept(ctx context.Context, s Submission, rec journal.CallRecord, hash string) (*Ticket, error) {
	call := s.Call
	queued, err := a.backlog.mayQueue(&call.Principal)
	if err != nil {
		return nil, err
	}
	inTime, cancel := bound(ctx)
	defer cancel()
	l, leave, err := a.lanes.use(inTime, call.Principal.Tenant)
	if err != nil {
		queued()
		return nil, err
	}
	rec.Key = hash
	it := l.job.l.item(&rec, 0)
	it.call.Safe, it.call.Retry, it.call.ToolDigest, it.checked, it.waited = call.Safe, call.Retry, call.ToolDigest, true, s.Waited
	if s.Verdict != nil { // the gate already checked the next round of a conversation
		it.judged = execution.DecisionOf(s.Verdict, nil)
	}
	it.call.Progress = call.Progress
	// A caller that disconnects must not stop a write in progress: the call would be stored, but
	// nothing would run it.
	over := make(chan accepted, 1)
	err = l.writer.AppendThen(inTime, func(first uint64, err error) {
		go func() { // the lane, and the runner with it, waits for leave
			defer leave()
			done := a.stored(l, it, first, err, hash, s.Fingerprint)
			queued() // before the caller gets the answer: the call now counts itself, and a double count could refuse its next call
			over <- done
		}()
	}, rec)
	if err != nil {
		defer leave()
		defer queued()
		return nil, l.fault(err)
	}
	select {
	case done := <-over:
		if done.id != "" {
			call.ID = done.id
		}
		return done.ticket, done.err
	case <-inTime.Done():
	}
	if ctx.Err() != nil {
		return nil, schema.Errorf(schema.KindUnavailable, "The caller disconnected before the call was stored; it may still be stored, and run. (%w)", ctx.Err())
	}
	if !it.refused.CompareAndSwap(refusedNot, refusedInTime) && hash == "" {
		done := <-over // it was stored at the same moment
		call.ID = done.id
		return done.ticket, done.err
	}
	return nil, notStored(inTime.Err())
}

// States of item.refused: whether a call was refused because it was not stored in time.
const (
	refusedNot    int32 = iota // undecided
	refusedInTime              // refused: the call does not run, even if it is stored
	refusedNever               // stored: the call runs
)

// errRefused ends a call that was stored after its caller received an error saying that it
// could not be stored.
var errRefused = schema.Errorf(schema.KindCanceled, "The call could not be stored in time, as its caller was told; it did not run.")

// notStored returns the error for a call that could not be stored in time.
func notStored(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The call could not be stored within %s, so it was not accepted; check that NATS is running and has disk space. Send it again later; with an Idempotency-Key it runs at most once. (%w)", writeTimeout, err).RetryableAfter(5 * time.Second)
}

// accepted is the outcome of an accept. id is set if the call is stored.
type accepted struct {
	ticket *Ticket
	id     schema.CallID
	err    error
}

// fault returns the caller's error for a call that the lane could not append.
func (l *lane) fault(err error) error {
	if schema.KindOf(err) != schema.KindConflict {
		return err
	}
	l.job.l.life.halt(errLost)
	return schema.Errorf(schema.KindUnavailable, "The call could not be stored and did not run; send it again.").RetryableAfter(time.Second)
}

// stored hands over a call that the lane has stored at index first, or returns the error that
// prevented it.
func (a *acceptor) stored(l *lane, it *item, first uint64, err error, hash, fingerprint string) accepted {
	if err != nil {
		return accepted{err: l.fault(err)}
	}
	it.rec.Index = first
	it.call.ID = l.job.l.id(it.rec)
	if !it.refused.CompareAndSwap(refusedNot, refusedNever) {
		l.job.handOver(it) // it ends as canceled, and its key stays free
		return accepted{}
	}
	ctx, cancel := bound(context.Background())
	defer cancel()
	kept, mine, err := remember(ctx, a.o.Store, hash, journal.Entry{Fingerprint: fingerprint, CallID: it.call.ID, Journal: l.job.l.owned.ID(), Index: first})
	it.twin = kept.CallID
	it.keyed = err == nil
	l.job.handOver(it)                         // if its key belongs to another call, it ends as canceled
	done := accepted{id: it.call.ID, err: err} // on an error it is stored, and runs once its claim to the key is confirmed
	switch {
	case err != nil:
	case mine:
		done.ticket = &Ticket{CallID: it.call.ID, it: it}
	default:
		done.ticket, done.err = replay(kept, fingerprint)
	}
	return done
}
