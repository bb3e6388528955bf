package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/backoff"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/warnings"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// attempt makes one attempt at a delivery: it claims the delivery, sends it and records the
// outcome.
func (s *Sender) attempt(r *row, st state, revision uint64) {
	defer s.attempts.Done()
	pause := s.try(r.id, st, revision)
	s.mu.Lock()
	var until time.Time
	if pause > 0 {
		until = s.o.Now().Add(pause)
	}
	s.queue.done(r, until)
	s.mu.Unlock()
	s.nudge()
}

// try makes the attempt and returns the time for which the receiver asked for no further requests.
func (s *Sender) try(id string, st state, revision uint64) (pause time.Duration) {
	if st.Owner == "" && s.overdue(&st) {
		s.forget(id, st, revision)
		return 0
	}
	if st.Attempts > len(s.o.Schedule) && st.Owner != s.id { // the process that made the last attempt died in it
		s.write(id, st, revision, verdict{outcome: Dead, reason: "The process that made the last attempt stopped during it."})
		return 0
	}
	// The claim counts the attempt, so a delivery that crashes its process is not attempted
	// forever. Claim, body and request together take less than the lease.
	if st.Owner != s.id { // otherwise this is an unacknowledged claim of ours: nothing was sent
		st.Attempts++
	}
	st.Owner, st.By = s.id, s.id
	ctx, cancel := s.patience()
	revision, err := s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision)
	cancel()
	if err != nil {
		if !errors.Is(err, bus.ErrConflict) {
			s.report(id, err, "a webhook delivery could not be claimed; it waits")
		}
		s.refresh(id)
		return 0
	}
	s.report(id, nil, "")
	s.keep(id, st, revision)

	ctx, cancel = s.patience()
	body, err := s.o.Store.Body(ctx, st.Tenant, id)
	if err == nil {
		body, err = s.o.DataKeys.Open(ctx, body, bodyKind, id)
	}
	cancel()
	var v verdict
	switch {
	case errors.Is(err, bus.ErrNotFound), datakey.Gone(err):
		v = verdict{outcome: Dead, reason: "The event is no longer kept."}
	case err != nil:
		s.report(id, err, "a webhook's event could not be read; it waits")
		st.Attempts-- // nothing was sent
		v = verdict{outcome: Retried, reason: "The event could not be read.", after: time.Second}
	default:
		a := s.post(s.life, request{id: id, url: st.URL, body: body})
		if s.life.Err() != nil && a.reason != "" {
			v = verdict{outcome: Retried, reason: "The process that made the attempt was stopped."}
			st.By = "" // other processes need not wait for this one
			st.Attempts--
			break
		}
		v = judge(a, s.o.Schedule, st.Attempts, rand.Float64())
	}
	s.write(id, st, revision, v)
	return v.pause
}

// writes are the pauses between tries to store the outcome of an attempt.
var writes = backoff.Policy{First: 100 * time.Millisecond, Max: 2 * time.Second}

// write stores the outcome of an attempt. It retries while the store does not answer, because only
// this process knows the outcome.
func (s *Sender) write(id string, st state, revision uint64, v verdict) {
	now := s.o.Now().UTC()
	st.Owner, st.Last = "", v.reason
	switch v.outcome {
	case Retried:
		st.Next = now.Add(v.after)
	case Dead:
		st.Dead, st.Ended, st.By = v.reason, now, ""
	}
	for tries := 0; ; tries++ {
		next, err := s.store(id, st, revision, v.outcome)
		switch {
		case err == nil:
			s.report(id, nil, "")
			s.written(id, st, next, v)
			return
		case errors.Is(err, bus.ErrConflict):
			// Another process took over, or this write was stored and its reply lost.
			s.refresh(id)
			return
		}
		s.report(id, err, "the outcome of a webhook delivery could not be stored; retrying")
		if !sleep.For(writes.Delay(tries), s.stop) {
			return // the lease will expire, and another process may deliver it again
		}
	}
}

// faults spaces out the log lines about a store that does not answer, over all deliveries.
type faults struct {
	mu      sync.Mutex
	spacing warnings.Spacing
}

// report logs the outcome of reading or writing the store for a delivery; see [warnings.Spacing.Report].
func (s *Sender) report(id string, err error, failed string) {
	s.storing.mu.Lock()
	defer s.storing.mu.Unlock()
	s.storing.spacing.Report(s.o.Log.With("delivery", id), err, failed, "webhook deliveries can be stored again")
}

func (s *Sender) store(id string, st state, revision uint64, o Outcome) (uint64, error) {
	ctx, cancel := s.patience()
	defer cancel()
	if o == Delivered {
		return s.o.Store.Remove(ctx, st.Tenant, id, revision)
	}
	return s.o.Store.Replace(ctx, st.Tenant, id, st.encode(), revision)
}

// written applies a stored state to the queue and the counts.
func (s *Sender) written(id string, st state, revision uint64, v verdict) {
	s.o.Count(v.outcome)
	if v.outcome == Delivered {
		s.mu.Lock()
		s.queue.drop(id, revision, false)
		s.mu.Unlock()
		return
	}
	s.keep(id, st, revision)
	if v.outcome == Retried {
		s.o.Log.Debug("a webhook was not delivered; it is tried again", "delivery", id, "attempts", st.Attempts, "reason", v.reason, "in", v.after)
		return
	}
	s.o.Log.Warn("a webhook delivery was given up", "delivery", id, "type", st.Type, "attempts", st.Attempts, "reason", v.reason)
	s.thin()
}

// thin removes the oldest dead deliveries while there are too many.
func (s *Sender) thin() {
	s.mu.Lock()
	var oldest *row
	var tenant schema.TenantID
	var revision uint64
	if d := s.queue.dead; d.n > s.o.Waiting || d.bytes > s.o.WaitingBytes {
		oldest = s.queue.oldestDead()
	}
	if oldest != nil {
		tenant, revision = oldest.state.Tenant, oldest.revision
	}
	s.mu.Unlock()
	if oldest == nil {
		return
	}
	ctx, cancel := s.patience()
	defer cancel()
	end, err := s.o.Store.Remove(ctx, tenant, oldest.id, revision)
	if err != nil {
		s.o.Log.Debug("a webhook delivery that was given up could not be removed", "delivery", oldest.id, "error", err)
		return
	}
	s.mu.Lock()
	s.queue.drop(oldest.id, end, false)
	s.mu.Unlock()
}

// refresh reads a delivery again after a failed write.
func (s *Sender) refresh(id string) {
	ctx, cancel := s.patience()
	defer cancel()
	stored, revision, err := s.o.Store.Get(ctx, schema.AllTenants(), id)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.queue.rows[id]
	switch {
	case errors.Is(err, bus.ErrNotFound):
		if r != nil {
			s.queue.drop(id, r.revision, true)
		}
		return
	case err == nil:
		if st, err := decodeState(stored); err == nil {
			s.queue.put(id, st, revision, s.turn(st))
		}
	}
	// Do not retry at once a delivery that could not be read or that is already known.
	if soon := s.o.Now().Add(time.Second); r != nil && r.busy && r.at.Before(soon) {
		r.at = soon
	}
}

// patience limits one use of the store, so that a claim, the body and the request fit into the
// lease. It does not end with Close, because the outcome must still be stored.
func (s *Sender) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), (s.o.Lease-s.o.Timeout)/4)
}
