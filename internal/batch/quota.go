package batch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// spaceEvery is the interval at which a blocked intake checks the quota again.
	spaceEvery = 50 * time.Millisecond
	// linesFor is the time that single calls reuse a count of the waiting lines.
	linesFor = 100 * time.Millisecond
	// countedMost limits the number of principals whose counts are kept.
	countedMost = 1000
)

// counted is the number of waiting lines of a principal's batches at a time.
type counted struct {
	at    time.Time
	lines int
}

// unended lists the states of open batches.
var unended = []journal.State{journal.Receiving, journal.Sealed, journal.Running, journal.Canceling}

// backlog counts waiting calls and open batches, and limits them by the quota of their principal
// and by the limits of the fleet. It is safe for concurrent use.
type backlog struct {
	o       *Options
	jobs    *jobs
	intakes *intakes
	ctx     context.Context // ends when the runner closes

	mu      sync.Mutex
	opening map[schema.BatchID]schema.PrincipalID // principals of the batches that are being created
	counts  map[schema.PrincipalID]counted        // waiting lines by principal
}

func newBacklog(ctx context.Context, o *Options, js *jobs, is *intakes) *backlog {
	return &backlog{o: o, jobs: js, intakes: is, ctx: ctx, opening: make(map[schema.BatchID]schema.PrincipalID), counts: make(map[schema.PrincipalID]counted)}
}

// lines returns the number of lines of the principal's batches that have not ended, and reports
// whether the batch id receives calls. The count is exact for batches that run or are received
// here, and up to a second old for others.
func (b *backlog) lines(who schema.PrincipalID, id schema.BatchID) (lines int, receiving bool) {
	for m := range b.o.journals(schema.OnlyTenant(who.Tenant), journal.Filter{Kind: journal.Batch, States: unended, Principal: who.Name}) {
		receiving = receiving || m.ID == id && m.State == journal.Receiving
		lines += b.linesOf(m)
	}
	return lines, receiving
}

// open is a number of open batches: of all principals, of the principals of one tenant, and of one
// principal.
type open struct{ all, tenant, own int }

// openLocked counts the open batches as seen by one principal. A batch that is being created counts
// once, whether or not the store lists it yet. b.mu must be held.
func (b *backlog) openLocked(who schema.PrincipalID) (n open) {
	count := func(by schema.PrincipalID) {
		n.all++
		if by.Tenant == who.Tenant {
			n.tenant++
		}
		if by == who {
			n.own++
		}
	}
	b.o.Store.EachOpen(schema.AllTenants(), func(m *journal.Manifest) {
		if _, reserved := b.opening[m.ID]; m.Kind == journal.Batch && !reserved {
			count(m.Principal.ID())
		}
	})
	for _, by := range b.opening {
		count(by)
	}
	return n
}

func (b *backlog) linesOf(m *journal.Manifest) int {
	accepted, ended := max(m.Calls, b.intakes.accepted(m.ID)), m.Counts.Total()
	if j := b.jobs.find(m.ID); j != nil {
		ended = j.l.owned.Progress().Counts().Total()
	}
	return int(accepted - min(ended, accepted))
}

// openAgain is the retry delay that is sent when too many batches are open.
const openAgain = 5 * time.Second

// reserve reserves one of the open batches for the batch id and its known calls. done releases the
// reservation and must be called once: when the batch is stored, and so is counted as open, or
// was not created.
func (b *backlog) reserve(o *Order, id schema.BatchID) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	who := o.Principal.ID()
	n := b.openLocked(who)
	most := cmp.Or(b.o.Quota.Batches(&o.Principal), ownBatches(b.o.OpenBatches))
	if n.all >= b.o.OpenBatches {
		return nil, schema.Errorf(schema.KindUnavailable, "There are %d open batches, and the fleet's limit is %d (front_door.open_batches); no batch was created. Cancel unneeded batches, seal complete ones, or wait for some to end.", n.all, b.o.OpenBatches).RetryableAfter(openAgain)
	}
	if n.own >= most {
		return nil, schema.Errorf(schema.KindQuota, "You have %d open batches, and your limit is %d; no batch was created. Wait for one to end, or cancel one. (The operator sets the limit with batches, under limits.principals.)", n.own, most).RetryableAfter(openAgain)
	}
	if share := max(tenantBatches(b.o.OpenBatches), most); who.Tenant != "" && n.tenant >= share {
		return nil, schema.Errorf(schema.KindQuota, "Your tenant has %d open batches, and its limit is %d; no batch was created. Wait for one to end, or cancel one.", n.tenant, share).RetryableAfter(openAgain)
	}
	if b.o.Quota.Queues(&o.Principal) {
		lines, _ := b.lines(who, "")
		if err := b.o.Quota.Accept(&o.Principal, max(o.Calls, 1), lines); err != nil {
			return nil, err
		}
	}
	b.opening[id] = who
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.opening, id)
	}, nil
}

// ownBatches returns the share of the fleet's open batches of a principal without a configured
// limit: a quarter, so that one caller cannot lock out the others.
func ownBatches(fleet int) int { return min(fleet, max(fleet/4, 16)) }

// tenantBatches returns the share of the fleet's open batches of a tenant other than the default one:
// the middle between that of all and that of a principal.
func tenantBatches(fleet int) int { return (fleet + ownBatches(fleet)) / 2 }

// mayQueue returns an error unless another single durable call of the principal may wait. done
// must be called when the call was handed over, or was not accepted.
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

// spaceNow returns the number of lines that may be stored now, out of n further lines of an
// intake.
func (b *backlog) spaceNow(in *Intake, n int) int {
	if !b.o.Quota.Queues(&in.who) {
		return n
	}
	lines, receiving := b.lines(in.who.ID(), in.id)
	if !receiving {
		return n // the write to the journal fails, with the reason
	}
	return min(n, b.o.Quota.Space(&in.who, lines))
}

// space waits until some of n further lines of an intake may be stored and returns their number.
// In the meantime nothing is read from the sender, which slows it down.
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
