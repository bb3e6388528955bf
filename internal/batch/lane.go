package batch

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/ledger/journal"
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

// useLane returns the lane of the moment; leave must be called when the call was
// handed over.
func (r *Runner) useLane(ctx context.Context) (l *lane, leave func(), err error) {
	if err := r.laneTurn.Acquire(ctx, 1); err != nil {
		return nil, nil, notStored(err)
	}
	defer r.laneTurn.Release(1)
	if r.ctx.Err() != nil {
		e := schema.Errorf(schema.KindUnavailable, "This front door is about to stop; the call was not accepted. Send it again.")
		e.Retryable, e.RetryAfter = true, time.Second
		return nil, nil, e
	}
	if l := r.lane; l != nil {
		if l.job.stopping.Err() == nil && l.writer.Next() < r.o.LaneCalls && time.Since(l.opened) < r.o.LaneAge {
			return l, l.use(), nil
		}
		l.retire()
		r.lane = nil
	}
	if r.lane, err = r.openLane(ctx); err != nil {
		return nil, nil, err
	}
	return r.lane, r.lane.use(), nil
}

func (r *Runner) openLane(ctx context.Context) (*lane, error) {
	ctx, cancel := bound(context.WithoutCancel(ctx)) // a caller that leaves must not cost others their lane
	defer cancel()
	m := &journal.Manifest{
		ID: newJournalID(journal.Lane), Kind: journal.Lane, Principal: schema.Principal{Name: r.o.ID}, Expires: time.Now().Add(r.o.Store.MaxLife()).UTC(),
	}
	if err := r.o.Store.Create(ctx, m); err != nil {
		return nil, err
	}
	owned, err := r.o.Store.Claim(ctx, m.ID, r.o.ID)
	if err != nil {
		return nil, err
	}
	writer, err := r.o.Store.Write(ctx, m.ID)
	if err != nil {
		owned.Close()
		return nil, err
	}
	return &lane{job: r.start(owned, true), writer: writer, opened: time.Now()}, nil
}

func (l *lane) use() (leave func()) {
	l.users.Add(1)
	return l.users.Done
}

// retire lets the lane end when its calls are over. It must not be used any more.
func (l *lane) retire() {
	l.job.r.work.Go(func() {
		// What waits for NATS is given up when the job is.
		closed := make(chan struct{})
		keep := context.AfterFunc(l.job.gone, func() {
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
			l.job.r.o.Log.Debug("sealing a lane", "journal", l.job.o.ID(), "error", err)
		}
		l.writer.Close()
		close(l.job.sealed)
	})
}
