package batch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// lane is the journal of a front door's single durable calls, many of which share one write. A
// lane ends when it has many calls or is old, even without new calls, and a new one follows it.
//
// A tenant with its own payload retention has its own lane, because a journal is deleted as a
// whole, some time after its last call.
type lane struct {
	job    *job
	writer *journal.Writer
	opened time.Time
	left   chan struct{} // closed when the lane is no longer given out

	users sync.WaitGroup
}

// lanes holds the lanes of this front door. It is safe for concurrent use.
type lanes struct {
	o    *Options
	jobs *jobs
	ctx  context.Context // ends when the runner closes
	work *sync.WaitGroup

	mu    sync.Mutex
	lines map[schema.TenantID]*line // by the tenant of the lane; "" is the lane of all other tenants
}

// line is a sequence of lanes, of which one is current.
type line struct {
	tenant schema.TenantID
	turn   *semaphore.Weighted // lock of the lane field; a waiter can give up with its context
	lane   *lane
}

func newLanes(ctx context.Context, o *Options, js *jobs, work *sync.WaitGroup) *lanes {
	return &lanes{o: o, jobs: js, ctx: ctx, work: work, lines: make(map[schema.TenantID]*line)}
}

// of returns the line for calls of the tenant.
func (ls *lanes) of(tenant schema.TenantID) *line {
	own := schema.TenantID("")
	if ls.o.Store.Payloads.Retention(tenant) > 0 {
		own = tenant.OrDefault()
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.lines[own] == nil {
		ls.lines[own] = &line{tenant: own, turn: semaphore.NewWeighted(1)}
	}
	return ls.lines[own]
}

// age returns the maximum age of a lane of the line. Payloads are kept for the retention after
// the last call of the lane, so it must be much shorter than the retention.
func (ls *lanes) age(n *line) time.Duration {
	if r := ls.o.Store.Payloads.Retention(n.tenant); n.tenant != "" && r > 0 {
		return min(ls.o.LaneAge, r/laneParts)
	}
	return ls.o.LaneAge
}

// laneParts divides a retention into the maximum age of a lane, which is a quarter of it.
const laneParts = 4

// close retires all lanes. The context of the lanes must have ended.
func (ls *lanes) close() {
	ls.mu.Lock()
	all := slices.Collect(maps.Values(ls.lines))
	ls.mu.Unlock()
	for _, n := range all {
		if err := n.turn.Acquire(context.Background(), 1); err != nil {
			continue // cannot happen: this context does not end
		}
		ls.retire(n)
		n.turn.Release(1)
	}
}

// retire retires the current lane of the line. n.turn must be held.
func (ls *lanes) retire(n *line) {
	if n.lane != nil {
		close(n.lane.left)
		ls.work.Go(n.lane.retire)
		n.lane = nil
	}
}

// endInTime retires a lane when it reaches its maximum age, even if no call uses it.
func (ls *lanes) endInTime(n *line, l *lane) {
	old := time.NewTimer(ls.age(n))
	defer old.Stop()
	select {
	case <-old.C:
	case <-l.left:
		return
	case <-ls.ctx.Done():
		return // close retires it
	}
	if err := n.turn.Acquire(ls.ctx, 1); err != nil {
		return
	}
	defer n.turn.Release(1)
	if n.lane == l {
		ls.retire(n)
	}
}

// use returns the current lane for calls of the tenant. leave must be called after the call was
// handed over.
func (ls *lanes) use(ctx context.Context, tenant schema.TenantID) (l *lane, leave func(), err error) {
	n := ls.of(tenant)
	if err := n.turn.Acquire(ctx, 1); err != nil {
		return nil, nil, notStored(err)
	}
	defer n.turn.Release(1)
	if ls.ctx.Err() != nil {
		return nil, nil, schema.Errorf(schema.KindUnavailable, "This front door is shutting down; the call was not accepted. Send it again.").RetryableAfter(time.Second)
	}
	if l := n.lane; l != nil {
		if l.job.l.life.stopping.Err() == nil && l.writer.Next() < ls.o.LaneCalls && time.Since(l.opened) < ls.age(n) {
			return l, l.use(), nil
		}
		ls.retire(n)
	}
	if l, err = ls.open(ctx, n); err != nil {
		return nil, nil, err
	}
	n.lane = l
	ls.work.Go(func() { ls.endInTime(n, l) })
	return l, l.use(), nil
}

func (ls *lanes) open(ctx context.Context, n *line) (*lane, error) {
	ctx, cancel := bound(context.WithoutCancel(ctx)) // a disconnecting caller must not fail the lane for others
	defer cancel()
	m := &journal.Manifest{
		ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: schema.Principal{Name: ls.o.ID}, Expires: time.Now().Add(ls.o.Store.MaxLife()).UTC(), LaneTenant: n.tenant,
	}
	if err := ls.o.Store.Create(ctx, m); err != nil {
		return nil, err
	}
	owned, err := ls.o.Store.Claim(ctx, m.Principal.Tenant, m.ID, ls.o.ID)
	if err != nil {
		return nil, err
	}
	writer, err := ls.o.Store.Write(ctx, m.Principal.Tenant, m.ID)
	if err != nil {
		owned.Close()
		return nil, err
	}
	j := newJob(ls.o, ls.jobs.ids, owned)
	j.direct = true
	ls.jobs.start(j)
	return &lane{job: j, writer: writer, opened: time.Now(), left: make(chan struct{})}, nil
}

func (l *lane) use() (leave func()) {
	l.users.Add(1)
	return l.users.Done
}

// retire seals the lane after its users have left. It must not be used afterwards.
func (l *lane) retire() {
	// Writes that wait for NATS are abandoned together with the job.
	closed := make(chan struct{})
	keep := context.AfterFunc(l.job.l.life.gone, func() {
		defer close(closed)
		l.writer.Close()
	})
	l.users.Wait()
	if !keep() {
		<-closed
	}
	ctx, cancel := bound(context.Background())
	defer cancel()
	if _, err := l.writer.Seal(ctx); err != nil {
		l.job.l.o.Log.Debug("sealing a lane failed", "journal", l.job.l.owned.ID(), "error", err)
	}
	l.writer.Close()
	close(l.job.sealed)
}
