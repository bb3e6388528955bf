package batch

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// acceptor stores single calls in a lane and hands them over. It is safe for concurrent
// use.
type acceptor struct {
	o       *Options
	lanes   *lanes
	backlog *backlog
}

// accept stores a call that may run, under the hash of its key, and hands it over.
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
	if s.Verdict != nil { // the next round of a conversation was judged with the first one
		it.judged = execution.JudgedOf(s.Verdict, nil)
	}
	it.call.Progress = call.Progress
	// A caller that leaves does not stop what is on its way to the disk: it would be
	// stored, and nobody would know that it is to run.
	over := make(chan accepted, 1)
	err = l.writer.AppendThen(inTime, func(first uint64, err error) {
		go func() { // the lane, and the runner with it, waits for leave
			defer leave()
			done := a.stored(l, it, first, err, hash, s.Fingerprint)
			queued() // before the answer: the call counts by itself now, and the caller's next one would be refused
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
		done := <-over // it was stored at this very moment
		call.ID = done.id
		return done.ticket, done.err
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
var errRefused = schema.Errorf(schema.KindCanceled, "The call could not be stored in time, as its caller was told; it did not run.")

// notStored is for the caller of a call that could not be stored in time.
func notStored(err error) error {
	return schema.Errorf(schema.KindUnavailable, "The call could not be stored within %s, so it was not accepted; check that NATS is running and has disk space. Send it again later; with an Idempotency-Key it runs at most once. (%w)", writeTimeout, err).RetryableAfter(5 * time.Second)
}

// accepted is what became of a call that was to be accepted. id is set when it is
// stored.
type accepted struct {
	ticket *Ticket
	id     schema.CallID
	err    error
}

// fault is what a caller is told of a call that its lane does not take.
func (l *lane) fault(err error) error {
	if schema.KindOf(err) != schema.KindConflict {
		return err
	}
	l.job.l.life.halt(errLost)
	return schema.Errorf(schema.KindUnavailable, "The call could not be stored and did not run; send it again.").RetryableAfter(time.Second)
}

// stored hands over a call that the lane has stored at the index first, or tells why
// it has not.
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
	kept, mine, err := remember(ctx, a.o.Store, hash, fingerprint, it.call.ID, l.job.l.owned.ID(), first)
	it.twin = kept.CallID
	it.keyed = err == nil
	l.job.handOver(it)                         // one whose key belongs to another call ends as canceled
	done := accepted{id: it.call.ID, err: err} // on an error it is stored, and runs when it is known that the key is its own
	switch {
	case err != nil:
	case mine:
		done.ticket = &Ticket{CallID: it.call.ID, it: it}
	default:
		done.ticket, done.err = replay(kept, fingerprint)
	}
	return done
}
