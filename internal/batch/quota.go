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

// lines says how many lines of the principal's batches have not ended, and whether
// the batch id takes calls. What runs or comes in here is counted to the last call,
// what does so elsewhere as of a second ago.
func (r *Runner) lines(principal, id string) (lines int, receiving bool) {
	for cursor := ""; ; {
		page, next := r.o.Store.List(journal.Filter{Kind: journal.Batch, States: unended, Principal: principal, Limit: 1000}, cursor)
		for _, m := range page {
			receiving = receiving || m.ID == id && m.State == journal.Receiving
			lines += r.linesOf(m)
		}
		if cursor = next; cursor == "" {
			return lines, receiving
		}
	}
}

// openLocked counts the open batches of all principals and of the one. A batch that
// is being made counts once, whether the store shows it yet or not. r.quotaMu is
// held.
func (r *Runner) openLocked(principal string) (all, own int) {
	seen := 0
	r.o.Store.EachOpen(func(m *journal.Manifest) {
		if m.Kind != journal.Batch {
			return
		}
		all++
		if m.Principal.Name == principal {
			own++
		}
		if by, reserved := r.opening[m.ID]; reserved {
			seen++
			if by == principal {
				own--
			}
		}
	})
	for _, by := range r.opening {
		if by == principal {
			own++
		}
	}
	return all - seen + len(r.opening), own
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

// openAgain is when to look again whether fewer batches are open.
const openAgain = 5 * time.Second

// reserve takes a place among the open batches, for one with the id and the calls
// that are known of it. done gives the place back and must be called once: when the
// batch is stored, and so counted as open, or was not made.
func (r *Runner) reserve(o *Order, id string) (done func(), err error) {
	r.quotaMu.Lock()
	defer r.quotaMu.Unlock()
	all, own := r.openLocked(o.Principal.Name)
	most := r.o.Quota.Batches(&o.Principal)
	if most == 0 {
		most = ownBatches(r.o.OpenBatches)
	}
	if all >= r.o.OpenBatches {
		e := schema.Errorf(schema.KindUnavailable, "There are %d open batches, and the fleet takes %d (front_door.open_batches); no batch was made. Cancel those that nobody needs, seal those that are whole, or wait for some to end.", all, r.o.OpenBatches)
		e.Retryable, e.RetryAfter = true, openAgain
		return nil, e
	}
	if own >= most {
		e := schema.Errorf(schema.KindQuota, "You have %d open batches, and may have %d; no batch was made. Wait for one to end, or cancel one. (The operator's setting is batches, under limits.principals.)", own, most)
		e.Retryable, e.RetryAfter = true, openAgain
		return nil, e
	}
	if r.o.Quota.Queues(&o.Principal) {
		lines, _ := r.lines(o.Principal.Name, "")
		if err := r.o.Quota.Accept(&o.Principal, max(o.Calls, 1), lines); err != nil {
			return nil, err
		}
	}
	r.opening[id] = o.Principal.Name
	return func() {
		r.quotaMu.Lock()
		defer r.quotaMu.Unlock()
		delete(r.opening, id)
	}, nil
}

// ownBatches is how many of the fleet's open batches one principal may have where no
// rule says so: a quarter, so that one caller cannot lock out the others.
func ownBatches(fleet int) int { return min(fleet, max(fleet/4, 16)) }

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
	lines, _ := r.lines(principal, "")
	r.counts[principal] = counted{time.Now(), lines}
	return lines
}

// roomNow says how many of n more lines may be stored at the moment.
func (in *Intake) roomNow(n int) int {
	r := in.r
	if !r.o.Quota.Queues(&in.who) {
		return n
	}
	lines, receiving := r.lines(in.who.Name, in.id)
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
