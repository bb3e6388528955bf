package batch

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// results stores the results of the calls of a journal, and notifies waiting callers.
type results struct {
	l *lease

	mu        sync.Mutex
	unstarted []*item // left to the next owner, and certainly not started by their last attempt
}

// conclude stores the result of a call, if it ended here.
func (s *results) conclude(it *item, res *schema.Result, err error) {
	switch {
	case errors.Is(err, errHeld):
		return
	case res == nil && err == nil: // left to the next owner
		if it.unstarted {
			s.mu.Lock()
			s.unstarted = append(s.unstarted, it)
			s.mu.Unlock()
		}
		it.done(nil)
		return
	}
	s.store(it, s.record(it, res, err))
}

// voidTimeout limits the time that a stopping front door waits for NATS to cancel intents.
const voidTimeout = 2 * time.Second

// void cancels the intents of the calls that did not start. Otherwise the next owner has to ask their
// workers, and a call becomes unknown if its worker has ended too. It is called once no more intents
// are written.
func (s *results) void() {
	var records []journal.IntentRecord
	for _, it := range s.unstarted {
		if it.attempt > 0 && needsIntent(it.call) {
			rec := journal.Intent(it.rec.Index, it.attempt, it.worker)
			rec.Void = true
			records = append(records, rec)
		}
	}
	if len(records) == 0 || !s.l.owned.Held() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), voidTimeout)
	defer cancel()
	if err := s.l.owned.Intend(ctx, records...); err != nil {
		s.l.o.Log.Warn("the intents of calls that were not sent cannot be canceled; the next owner asks their workers", "journal", s.l.owned.ID(), "calls", len(records), "error", err)
	}
}

// store appends a result and notifies waiting callers.
func (s *results) store(it *item, rec journal.ResultRecord) {
	stored := make(chan error, 1)
	s.l.owned.ResultsThen(s.l.life.gone, func(err error) { stored <- err }, rec)
	s.stored(it, &rec, <-stored)
}

// stored notifies waiting callers after the write of a result has succeeded or failed.
func (s *results) stored(it *item, rec *journal.ResultRecord, err error) {
	if err != nil {
		if s.l.life.gone.Err() == nil && schema.KindOf(err) != schema.KindConflict {
			s.l.o.Log.Warn("storing a result failed; the next owner settles the call", "call", it.call.ID, "error", err)
			s.l.life.halt(errLost) // calls whose results cannot be stored must not continue
		}
		it.done(nil)
		return
	}
	it.done(rec)
	if it.rec.CallbackURL != "" {
		s.l.callBack(it.call.ID, it.rec, rec, it.call.Principal)
	}
}

// attemptOf returns the attempt for the result of a call. A call that a person ordered to run again can
// end without another attempt, for example because its server is gone; only results of later attempts
// count.
func attemptOf(p *journal.Progress, index uint64, attempt int) int {
	if again := p.Standing(index); again.Outcome == 0 && again.Attempt > 0 {
		return max(attempt, again.Attempt+1)
	}
	return attempt
}

// record returns the result record of a call.
func (s *results) record(it *item, res *schema.Result, err error) journal.ResultRecord {
	now := time.Now()
	rec := journal.ResultRecord{Index: it.rec.Index, CallID: it.call.ID, Tenant: it.call.Principal.Tenant, CustomID: it.rec.CustomID, Attempt: attemptOf(s.l.owned.Progress(), it.rec.Index, it.attempt), Ended: now}
	if err == nil {
		rec.Outcome, rec.Body, rec.ToolError, rec.Worker = journal.Succeeded, res.Body, res.ToolError, res.Worker
		rec.Started, rec.Digest, rec.Input = now.Add(-res.Took), schema.Digest(res.Body), asks(it, res)
		return rec
	}
	if it.rec.Method == methodRefused {
		return refusal(s.l.m, it.rec, schema.AsError(err), now)
	}
	e := schema.AsError(err).WithCall(it.call.ID)
	rec.Outcome, rec.Error = journal.Failed, encodeError(e)
	var gave *deadError
	switch {
	case errors.As(err, &gave):
		rec.Outcome = journal.Dead
	case e.Kind == schema.KindOutcomeUnknown:
		rec.Outcome = journal.Unknown
	case e.Kind == schema.KindForbidden || e.Kind == schema.KindDisabled:
		rec.Outcome = journal.Denied
	case e.Kind == schema.KindExpired:
		rec.Outcome = journal.Expired
	case e.Kind == schema.KindCanceled:
		rec.Outcome = journal.Canceled
	}
	if rec.Outcome == journal.Dead || rec.Outcome == journal.Unknown {
		rec.Recorded = it.recordID()
	}
	return rec
}

// refusal returns the result of a refused line. Results with the same error differ only in the
// index, so that a series of them takes little more space than one.
func refusal(m *journal.Manifest, c *journal.CallRecord, why *schema.Error, at time.Time) journal.ResultRecord {
	return journal.ResultRecord{Index: c.Index, Tenant: requester(m, c).Tenant, CustomID: c.CustomID, Outcome: journal.Failed, Ended: at.Truncate(time.Minute), Error: encodeError(why)}
}

func encodeError(e *schema.Error) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		return []byte(`{"kind":"internal","detail":"The error cannot be encoded."}`)
	}
	return text
}
