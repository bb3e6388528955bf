package ledger

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// forgetter deletes the large arguments of ended calls. The process that writes the end deletes them
// immediately. A periodic sweep in every process deletes leftovers.
type forgetter struct {
	l     *Ledger
	queue chan schema.ApprovalID
	stop  context.CancelFunc
	work  sync.WaitGroup
	// missing holds the ids without a record at the last sweep. They are deleted only at the next
	// one, because arguments are stored before their record.
	missing map[schema.ApprovalID]bool
}

const (
	// forgetQueue limits the queued ends; others are left to the sweep.
	forgetQueue   = 1024
	forgetTimeout = 10 * time.Second
	// sweepEvery is the minimum interval of sweeps. It is randomized, so that processes that
	// started together do not sweep at the same time.
	sweepEvery = 5 * time.Minute
)

func startForgetter(l *Ledger) *forgetter {
	ctx, stop := context.WithCancel(context.Background())
	f := &forgetter{l: l, queue: make(chan schema.ApprovalID, forgetQueue), stop: stop, missing: map[schema.ApprovalID]bool{}}
	f.work.Go(func() { f.run(ctx) })
	return f
}

// close stops the forgetter and waits for it. Queued ends are left to the sweep.
func (f *forgetter) close() {
	f.stop()
	f.work.Wait()
}

// ended queues an approval that ended in this process.
func (f *forgetter) ended(a *Approval) {
	if !a.Apart && (a.Edited == nil || a.Edited.Size <= smallArguments) {
		return
	}
	select {
	case f.queue <- a.ID:
	default: // left to the sweep
	}
}

func (f *forgetter) run(ctx context.Context) {
	next := time.NewTimer(rand.N(sweepEvery))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-f.queue:
			f.purge(ctx, id)
		case <-next.C:
			if err := f.sweep(ctx); err != nil && ctx.Err() == nil {
				f.l.log.Warn("looking for arguments of ended calls failed; it is tried again", "error", err)
			}
			next.Reset(sweepEvery + rand.N(sweepEvery/2))
		}
	}
}

func (f *forgetter) purge(ctx context.Context, id schema.ApprovalID) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	if err := f.l.store.purgeHeld(ctx, id); err != nil {
		f.l.log.Log(ctx, slog.LevelDebug, "the arguments of an ended call could not be deleted yet", "approval_id", id, "error", err)
	}
}

// sweep deletes the arguments of calls that have ended or do not exist.
func (f *forgetter) sweep(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	ids, err := f.l.store.heldIDs(listing)
	if err != nil {
		return err
	}
	missing := map[schema.ApprovalID]bool{}
	for _, id := range ids {
		if a, _, known := f.l.view.get(id); known && !a.State.Ended() {
			continue
		}
		a, err := f.l.Current(ctx, schema.AllTenants(), id)
		switch {
		case err == nil && a.State.Ended(), schema.KindOf(err) == schema.KindNotFound && f.missing[id]:
			f.purge(ctx, id)
		case schema.KindOf(err) == schema.KindNotFound:
			missing[id] = true
		case err != nil:
			return err
		}
	}
	f.missing = missing
	return nil
}
