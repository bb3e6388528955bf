package batch

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// spaceEvery is how often an intake looks whether there is room again.
	spaceEvery = 50 * time.Millisecond
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

// backlog counts what waits, and bounds it by the quota of its principal and by what the
// fleet takes. It is safe for concurrent use.
type backlog struct {
	o       *Options
	jobs    *jobs
	intakes *intakes
	ctx     context.Context // ends when no more work is taken

	mu      sync.Mutex
	opening map[schema.BatchID]schema.PrincipalID // batches that are being made, and whose they are
	counts  map[schema.PrincipalID]counted        // of lines that wait, by principal
}

func newBacklog(ctx context.Context, o *Options, js *jobs, is *intakes) *backlog {
	return &backlog{o: o, jobs: js, intakes: is, ctx: ctx, opening: make(map[schema.BatchID]schema.PrincipalID), counts: make(map[schema.PrincipalID]counted)}
}

// lines says how many lines of the principal's batches have not ended, and whether
// the batch id takes calls. What runs or comes in here is counted to the last call,
// what does so elsewhere as of a second ago.
func (b *backlog) lines(who schema.PrincipalID, id schema.BatchID) (lines int, receiving bool) {
	for m := range b.o.journals(schema.OnlyTenant(who.Tenant), journal.Filter{Kind: journal.Batch, States: unended, Principal: who.Name}) {
		receiving = receiving || m.ID == id && m.State == journal.Receiving
		lines += b.linesOf(m)
	}
	return lines, receiving
}

// openLocked counts the open batches of all principals and of the one. A batch that
// is being made counts once, whether the store shows it yet or not. b.mu is held.
func (b *backlog) openLocked(who schema.PrincipalID) (all, own int) {
	seen := 0
	b.o.Store.EachOpen(schema.AllTenants(), func(m *journal.Manifest) {
		if m.Kind != journal.Batch {
			return
		}
		all++
		if m.Principal.ID() == who {
			own++
		}
		if by, reserved := b.opening[m.ID]; reserved {
			seen++
			if by == who {
				own--
			}
		}
	})
	for _, by := range b.opening {
		if by == who {
			own++
		}
	}
	return all - seen + len(b.opening), own
}

func (b *backlog) linesOf(m *journal.Manifest) int {
	accepted, ended := max(m.Calls, b.intakes.accepted(m.ID)), m.Counts.Total()
	if j := b.jobs.find(m.ID); j != nil {
		ended = j.l.owned.Progress().Counts().Total()
	}
	return int(accepted - min(ended, accepted))
}

// openAgain is when to look again whether fewer batches are open.
const openAgain = 5 * time.Second

// reserve takes a place among the open batches, for one with the id and the calls
// that are known of it. done gives the place back and must be called once: when the
// batch is stored, and so counted as open, or was not made.
func (b *backlog) reserve(o *Order, id schema.BatchID) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, own := b.openLocked(o.Principal.ID())
	most := b.o.Quota.Batches(&o.Principal)
	if most == 0 {
		most = ownBatches(b.o.OpenBatches)
	}
	if all >= b.o.OpenBatches {
		return nil, schema.Errorf(schema.KindUnavailable, "There are %d open batches, and the fleet's limit is %d (front_door.open_batches); no batch was created. Cancel unneeded batches, seal complete ones, or wait for some to end.", all, b.o.OpenBatches).RetryableAfter(openAgain)
	}
	if own >= most {
		return nil, schema.Errorf(schema.KindQuota, "You have %d open batches, and your limit is %d; no batch was created. Wait for one to end, or cancel one. (The operator sets the limit with batches, under limits.principals.)", own, most).RetryableAfter(openAgain)
	}
	if b.o.Quota.Queues(&o.Principal) {
		lines, _ := b.lines(o.Principal.ID(), "")
		if err := b.o.Quota.Accept(&o.Principal, max(o.Calls, 1), lines); err != nil {
			return nil, err
		}
	}
	b.opening[id] = o.Principal.ID()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.opening, id)
	}, nil
}

// ownBatches is the number of the fleet's open batches that one principal may have where no
// rule sets it: a quarter, so that one caller cannot lock out the others.
func ownBatches(fleet int) int { return min(fleet, max(fleet/4, 16)) }

// mayQueue says whether one more single durable call of the principal's may wait.
// done must be called when it was handed over, or was not accepted.
func (b *backlog) mayQueue(p *schema.Principal) (done func(), err error) {
	if !b.o.Quota.Queues(p) {
		return func() {}, nil
	}
	if err := b.o.Quota.Accept(p, 1, b.linesLately(p.ID())); err != nil {
		return nil, err
	}
	b.o.Quota.Queued(p, 1)
	return func() { b.o.Quota.Queued(p, -1) }, nil
}

func (b *backlog) linesLately(who schema.PrincipalID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.counts[who]; ok && time.Since(c.at) < linesFor {
		return c.lines
	}
	if len(b.counts) >= countedMost {
		clear(b.counts)
	}
	lines, _ := b.lines(who, "")
	b.counts[who] = counted{time.Now(), lines}
	return lines
}

// spaceNow returns the number of lines, of n more lines of an intake, that may be stored
// now.
func (b *backlog) spaceNow(in *Intake, n int) int {
	if !b.o.Quota.Queues(&in.who) {
		return n
	}
	lines, receiving := b.lines(in.who.ID(), in.id)
	if !receiving {
		return n // the journal takes no more, and says so
	}
	return min(n, b.o.Quota.Space(&in.who, lines))
}

// space waits until some of n more lines of an intake may be stored and says how many. While it
// waits nothing is read from who sends them.
func (b *backlog) space(ctx context.Context, in *Intake, n int) (int, error) {
	for {
		if space := b.spaceNow(in, n); space > 0 {
			return space, nil
		}
		timer := time.NewTimer(spaceEvery)
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
			return 0, schema.Errorf(schema.KindUnavailable, "This front door is shutting down; GET the batch returns the number of stored lines. Continue from there.").RetryableAfter(time.Second)
		case <-ctx.Done():
			timer.Stop()
			return 0, schema.Errorf(schema.KindQuota, "You reached the limit of your waiting calls; the last lines were not stored. GET the batch returns the number of stored lines. Continue from there.").RetryableAfter(time.Second)
		}
	}
}
