package batch

import (
	"context"
	"math"
	"time"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// roomEvery is how often an intake looks whether there is room again.
	roomEvery = 50 * time.Millisecond
	// linesFor is how long single calls go by one count of the waiting lines.
	linesFor = 100 * time.Millisecond
	// countedMost is how many principals' counts are kept.
	countedMost = 1000
)

// counted is how many lines of a principal's batches waited at a time.
type counted struct {
	at    time.Time
	lines int
}

// unended are the states of open batches.
var unended = []journal.State{journal.Receiving, journal.Sealed, journal.Running, journal.Canceling}

// waiting says how many lines of the principal's batches have not ended, and how
// many batches are open; receiving, that the batch id is among them and takes
// calls. What runs or comes in here is counted to the last call, what does so
// elsewhere as of a second ago.
func (r *Runner) waiting(principal, id string) (lines, open int, receiving bool) {
	for cursor := ""; ; {
		page, next := r.o.Store.List(journal.Filter{Kind: journal.Batch, States: unended, Principal: principal, Limit: 1000}, cursor)
		for _, m := range page {
			open++
			receiving = receiving || m.ID == id && m.State == journal.Receiving
			lines += r.linesOf(m)
		}
		if cursor = next; cursor == "" {
			return lines, open, receiving
		}
	}
}

func (r *Runner) linesOf(m *journal.Manifest) int {
	accepted, ended := m.Calls, m.Counts.Total()
	r.mu.Lock()
	in, known, j := r.intake[m.ID], r.names[m.ID], r.jobs[m.ID]
	if in != nil {
		accepted = max(accepted, in.stored.Load())
	} else if known != nil && known.next != math.MaxUint64 {
		accepted = max(accepted, known.next)
	}
	r.mu.Unlock()
	if j != nil {
		ended = j.o.Progress().Counts().Total()
	}
	return int(accepted - min(ended, accepted))
}

// mayOpen says whether the principal may have one more batch, with the calls that
// are known of it. done must be called when the batch is stored.
func (r *Runner) mayOpen(o *Order) (done func(), err error) {
	if !r.o.Quota.Queues(&o.Principal) {
		return func() {}, nil
	}
	name := o.Principal.Name
	r.quotaMu.Lock()
	defer r.quotaMu.Unlock()
	lines, open, _ := r.waiting(name, "")
	if err := r.o.Quota.Batch(&o.Principal, open+r.opening[name]); err != nil {
		return nil, err
	}
	if err := r.o.Quota.Accept(&o.Principal, max(o.Calls, 1), lines); err != nil {
		return nil, err
	}
	r.opening[name]++
	return func() {
		r.quotaMu.Lock()
		defer r.quotaMu.Unlock()
		if r.opening[name]--; r.opening[name] == 0 {
			delete(r.opening, name)
		}
	}, nil
}

// mayQueue says whether one more single durable call of the principal's may wait.
// done must be called when it was handed over, or was not accepted.
func (r *Runner) mayQueue(p *schema.Principal) (done func(), err error) {
	if !r.o.Quota.Queues(p) {
		return func() {}, nil
	}
	if err := r.o.Quota.Accept(p, 1, r.linesLately(p.Name)); err != nil {
		return nil, err
	}
	r.o.Quota.Queued(p, 1)
	return func() { r.o.Quota.Queued(p, -1) }, nil
}

func (r *Runner) linesLately(principal string) int {
	r.quotaMu.Lock()
	defer r.quotaMu.Unlock()
	if c, ok := r.counts[principal]; ok && time.Since(c.at) < linesFor {
		return c.lines
	}
	if len(r.counts) >= countedMost {
		clear(r.counts)
	}
	lines, _, _ := r.waiting(principal, "")
	r.counts[principal] = counted{time.Now(), lines}
	return lines
}

// roomNow says how many of n more lines may be stored at the moment.
func (in *Intake) roomNow(n int) int {
	r := in.r
	if !r.o.Quota.Queues(&in.who) {
		return n
	}
	lines, _, receiving := r.waiting(in.who.Name, in.id)
	if !receiving {
		return n // the journal takes no more, and says so
	}
	return min(n, r.o.Quota.Room(&in.who, lines))
}

// room waits until some of n more lines may be stored and says how many. While it
// waits nothing is read from who sends them.
func (in *Intake) room(ctx context.Context, n int) (int, error) {
	r := in.r
	for {
		if room := in.roomNow(n); room > 0 {
			return room, nil
		}
		timer := time.NewTimer(roomEvery)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			e := schema.Errorf(schema.KindUnavailable, "This front door is about to stop; GET the batch says how many lines are stored. Go on from there.")
			e.Retryable, e.RetryAfter = true, time.Second
			return 0, e
		case <-ctx.Done():
			timer.Stop()
			e := schema.Errorf(schema.KindQuota, "As many of your calls wait as may; the last lines were not stored. GET the batch says how many are; go on from there.")
			e.Retryable, e.RetryAfter = true, time.Second
			return 0, e
		}
	}
}
