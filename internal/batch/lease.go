package batch

import (
	"context"
	"errors"

	"github.com/callyard/callyard/internal/calls/execution"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// lease is a journal that this front door currently owns, with the state that the parts of its
// job share.
type lease struct {
	o      *Options
	ids    *IDs
	owned  *journal.Owned
	m      *journal.Manifest // as of the claim
	life   *lifetime
	window *window
	calls  *callTable
	absent unannounced
	owed   *callbacksOwed
}

// lost reports whether the journal was created before a loss of records.
func (l *lease) lost() bool { return l.o.lost(l.m) }

func (l *lease) id(c *journal.CallRecord) schema.CallID { return l.ids.of(l.m, c) }

func (l *lease) item(c *journal.CallRecord, attempt int) *item {
	taken, takeBack := context.WithCancel(context.Background())
	return &item{rec: c, attempt: attempt, over: make(chan struct{}), taken: taken, takeBack: takeBack, call: &schema.Call{
		ID: l.id(c), Method: c.Method, Server: c.Server, Tool: c.Tool, Arguments: c.Arguments, Timeout: c.Timeout,
		Extra: c.Extra, Principal: requester(l.m, c), Trace: c.Trace, ReplayOf: c.ReplayOf, Durable: true, Priority: l.m.Priority,
	}}
}

// takenEnd returns the error of a call that its caller canceled before it was sent here. A tool
// that is safe to repeat writes no intent, so it is unknown whether an earlier owner of the
// journal sent the call.
func (l *lease) takenEnd(it *item) error {
	if !l.owned.Resumed() || !l.repeatable(it) {
		return errTaken
	}
	e := schema.Errorf(schema.KindOutcomeUnknown, "The call was canceled, and another front door may have run it before; its tool is safe to repeat.")
	e.Retryable, e.CancelRequested = true, true
	return e
}

// place returns the call record of a call, without the call itself.
func (l *lease) place(it *item) *records.Record {
	rec := &records.Record{ID: it.recordID(), Attempt: max(it.attempt, it.recorded), Known: it.call.ID, CustomID: it.rec.CustomID}
	rec.PolicyDecision = it.judged
	if l.m.Kind == journal.Batch {
		rec.Batch, rec.Index = l.m.ID, int64(it.rec.Index)
	}
	return rec
}

// callBack sends the callback of a call that has ended.
func (l *lease) callBack(id schema.CallID, c *journal.CallRecord, rec *journal.ResultRecord, who schema.Principal) {
	l.o.Ended(End{Call: c, Result: rec, CallID: id, Journal: l.owned.ID(), Principal: who, Stored: l.owed.owe()})
}

// plan returns the record of the next attempt at a call.
func (l *lease) plan(it *item) execution.Plan {
	it.listed, it.recorded = true, it.attempt+1
	return execution.Plan{Record: l.place(it), Stored: true}
}

// queued records a call that waits for its server, or for room to be held. An earlier attempt at it is
// recorded already.
func (l *lease) queued(it *item) {
	if !it.listed {
		it.listed = true
		l.o.Chain.Queued(it.call, l.place(it))
	}
}

// unlist drops the record of a call that has another one from now on.
func (l *lease) unlist(it *item) {
	if it.listed {
		it.listed = false
		rec := l.place(it)
		rec.State, rec.Dropped = schema.StateRunning, true // it is newer than the record of each attempt
		l.o.Chain.Queued(it.call, rec)
	}
}

// notStarted reports whether it is certain that a call with this error did not start, and that it may
// be tried again.
func notStarted(e *schema.Error) bool {
	return e.Kind == schema.KindUnavailable || e.Kind == schema.KindServerFailed || e.Kind == schema.KindQuota
}

// settled records the outcome of a call that is not the result of an attempt. counted is that of
// [execution.Chain.Settled].
func (l *lease) settled(it *item, res *schema.Result, err error, counted bool) {
	rec := l.place(it)
	rec.Worker = it.worker
	var gave *deadError
	if errors.As(err, &gave) {
		// Its last attempt may be unknown, which is not the state of a call that is safe to repeat.
		rec.State, rec.Attempt = schema.StateFailed, max(rec.Attempt, 1)
	}
	l.o.Chain.Settled(it.call, rec, res, err, counted)
}

// noIntent logs that calls wait because their intents cannot be written. They are retried, unless
// another front door has the journal; in that case err is nil.
func (l *lease) noIntent(calls int, err error) {
	if err != nil && l.life.gone.Err() == nil {
		l.o.Log.Warn("intents cannot be written, so their calls are not sent yet", "journal", l.owned.ID(), "calls", calls, "error", err)
	}
}

// repeatable reports whether the tool is safe to repeat according to the current catalog.
func (l *lease) repeatable(it *item) bool {
	tool, err := l.o.Catalog.Tool(it.call.Server, it.call.Tool)
	return err == nil && tool.Safe
}
