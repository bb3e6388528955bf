package batch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// lane is the journal of a front door's single durable calls. Many of them share
// one write. A lane is followed by a new one now and then, so that it stays short.
type lane struct {
	job    *job
	writer *journal.Writer
	opened time.Time

	users sync.WaitGroup
}

// lanes has the lane of this front door. It is safe for concurrent use.
type lanes struct {
	o    *Options
	jobs *jobs
	ctx  context.Context // ends when no more work is taken
	work *sync.WaitGroup

	turn *semaphore.Weighted // one at a time looks after the lane; who waits may give up
	lane *lane
}

func newLanes(ctx context.Context, o *Options, js *jobs, work *sync.WaitGroup) *lanes {
	return &lanes{o: o, jobs: js, ctx: ctx, work: work, turn: semaphore.NewWeighted(1)}
}

// close lets the lane end. The context of the lanes must have ended.
func (ls *lanes) close() {
	if err := ls.turn.Acquire(context.Background(), 1); err != nil {
		return // it never fails: nothing ends that context
	}
	defer ls.turn.Release(1)
	if ls.lane != nil {
		ls.work.Go(ls.lane.retire)
		ls.lane = nil
	}
}

// use returns the lane of the moment; leave must be called when the call was
// handed over.
func (ls *lanes) use(ctx context.Context) (l *lane, leave func(), err error) {
	if err := ls.turn.Acquire(ctx, 1); err != nil {
		return nil, nil, notStored(err)
	}
	defer ls.turn.Release(1)
	if ls.ctx.Err() != nil {
		e := schema.Errorf(schema.KindUnavailable, "This front door is shutting down; the call was not accepted. Send it again.")
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, nil, e
	}
	if l := ls.lane; l != nil {
		if l.job.l.life.stopping.Err() == nil && l.writer.Next() < ls.o.LaneCalls && time.Since(l.opened) < ls.o.LaneAge {
			return l, l.use(), nil
		}
		ls.work.Go(l.retire)
		ls.lane = nil
	}
	if ls.lane, err = ls.open(ctx); err != nil {
		return nil, nil, err
	}
	return ls.lane, ls.lane.use(), nil
}

func (ls *lanes) open(ctx context.Context) (*lane, error) {
	ctx, cancel := bound(context.WithoutCancel(ctx)) // a caller that leaves must not cost others their lane
	defer cancel()
	m := &journal.Manifest{
		ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: schema.Principal{Name: ls.o.ID}, Expires: time.Now().Add(ls.o.Store.MaxLife()).UTC(),
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
	return &lane{job: ls.jobs.start(owned, true), writer: writer, opened: time.Now()}, nil
}

func (l *lane) use() (leave func()) {
	l.users.Add(1)
	return l.users.Done
}

// retire lets the lane end when its calls have ended. It must not be used any more.
func (l *lane) retire() {
	// What waits for NATS is given up when the job is.
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
