package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// adoptEvery is how often a front door looks for journals that nobody owns.
	adoptEvery = time.Second
	// tryAgain is how long a journal is left alone that could not be claimed, or had
	// to be given back.
	tryAgain = time.Second
	// headStart is how long a new journal is left to the front door that made it.
	headStart = 3 * time.Second
	// purgeEvery is how often the calls of ended batches are looked through.
	purgeEvery = 10 * time.Minute
)

// Runner runs the journals that this front door owns, and takes over those whose
// owner is gone. It is safe for concurrent use.
type Runner struct {
	o   Options
	ids *IDs

	ctx    context.Context // ends when the runner stops to take work
	stop   context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}
	takes  chan string // ids of calls that were canceled elsewhere
	unsee  []func()
	mu     sync.Mutex
	jobs   map[string]*job
	intake map[string]*Intake
	names  map[string]*names // of open batches whose calls came here
	forgot time.Time         // when names were last looked at to forget some

	laneTurn *semaphore.Weighted // one at a time looks after the lane; who waits may give up
	lane     *lane

	quotaMu sync.Mutex
	opening map[string]string  // batches that are being made, and whose they are
	counts  map[string]counted // of lines that wait, by principal
}

// Open starts a runner; ctx bounds that.
func Open(ctx context.Context, o Options) (*Runner, error) {
	o.fill()
	r := &Runner{o: o, ids: NewIDs(o.Store.Secret()), wake: make(chan struct{}, 1), takes: make(chan string, 1024), jobs: make(map[string]*job), intake: make(map[string]*Intake), names: make(map[string]*names), opening: make(map[string]string), counts: make(map[string]counted), laneTurn: semaphore.NewWeighted(1)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.unsee = append(r.unsee, o.Store.Watch(r.changed), o.Ledger.Watch(r.decided), o.Router.OnCancel(r.canceled))
	r.settleEnded(ctx)
	r.work.Go(r.adopt)
	r.work.Go(r.purge)
	r.work.Go(r.takeBacks)
	return r, nil
}

// CallID returns the id of a call of a journal, which is the named principal's.
func (r *Runner) CallID(journalID string, index uint64, principal string) string {
	return r.ids.CallID(journalID, index, principal)
}

// Close takes no more work, lets what has left finish until ctx ends, and gives
// the journals back. What did not finish is settled by the next owner.
func (r *Runner) Close(ctx context.Context) error {
	r.stop()
	for _, unsee := range r.unsee {
		unsee()
	}
	if err := r.laneTurn.Acquire(context.Background(), 1); err == nil { // it never fails: nothing ends that context
		if r.lane != nil {
			r.lane.retire()
			r.lane = nil
		}
		r.laneTurn.Release(1)
	}
	r.mu.Lock()
	for _, j := range r.jobs {
		j.drain()
	}
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	n := 0
	for _, j := range r.jobs {
		n += j.abandon()
	}
	r.mu.Unlock()
	<-done
	if n > 0 {
		return schema.Errorf(schema.KindCanceled, "%d durable calls were still under way; another front door settles them", n)
	}
	return nil
}

// changed is told of each manifest that is written.
func (r *Runner) changed(m *journal.Manifest) {
	if j := r.job(m.ID); j != nil {
		if m.State == journal.Canceling {
			j.cancelOnce()
		}
		return
	}
	if m.State != journal.Ended && r.orphan(m) {
		r.nudge()
	}
}

// decided is told of each change of an approval.
func (r *Runner) decided(a *ledger.Approval) {
	if !a.State.Ended() {
		return
	}
	id, index, ok := ParseCallID(a.CallID)
	if !ok {
		return
	}
	if j := r.job(id); j != nil {
		j.released(index)
	}
}

func (r *Runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// adopt claims journals that nobody owns.
func (r *Runner) adopt() {
	tick := time.NewTicker(adoptEvery)
	defer tick.Stop()
	began, tried := time.Now(), make(map[string]time.Time)
	for reminded := false; ; {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		if !reminded && time.Since(began) > headStart {
			reminded = true
			r.remind(began)
		}
		for _, m := range r.o.Store.Unended(r.orphan) {
			if r.ctx.Err() != nil {
				return
			}
			if time.Since(tried[m.ID]) > tryAgain {
				tried[m.ID] = time.Now()
				r.take(m)
			}
		}
		for id, at := range tried {
			if time.Since(at) > time.Minute {
				delete(tried, id)
			}
		}
	}
}

// remind tells once more of batches that ended shortly before the start, under an
// owner that is gone: it may have been lost before it could tell.
func (r *Runner) remind(began time.Time) {
	page, _ := r.o.Store.List(journal.Filter{Kind: journal.Batch, States: []journal.State{journal.Ended}, Limit: 1000}, "")
	for _, m := range page {
		if m.CallbackURL != "" && m.Ended.After(began.Add(-remindOf)) && m.Ended.Before(began) && !r.o.Catalog.RouterAlive(m.Owner) {
			r.o.Ended(End{Batch: m, Journal: m.ID, Principal: m.Principal})
		}
	}
}

// remindOf is how long before the start a batch may have ended to be told again.
const remindOf = 15 * time.Minute

// orphan says that a journal may be without an owner. It does not block.
func (r *Runner) orphan(m *journal.Manifest) bool {
	switch {
	case r.job(m.ID) != nil:
		return false
	case m.Owner == "":
		return time.Since(m.Created) > headStart
	case m.Owner == r.o.ID:
		return true
	}
	return !r.o.Catalog.RouterAlive(m.Owner)
}

// take claims a journal and runs it.
func (r *Runner) take(m *journal.Manifest) {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute) // a rebuild of a million takes seconds
	defer cancel()
	owned, err := r.o.Store.Claim(ctx, m.ID, r.o.ID)
	if err != nil {
		if schema.KindOf(err) != schema.KindConflict && r.ctx.Err() == nil {
			r.o.Log.Warn("taking over a journal", "journal", m.ID, "error", err)
		}
		return
	}
	if owned.Epoch() > 1 {
		r.o.Log.Info("a journal was taken over", "journal", m.ID, "epoch", owned.Epoch(), "open", len(owned.Progress().Open()))
	}
	if m.Kind == journal.Lane {
		r.sealLane(ctx, m.ID)
	}
	r.start(owned, false)
}

// sealLane ends the intake of a lane whose front door is gone.
func (r *Runner) sealLane(ctx context.Context, id string) {
	w, err := r.o.Store.Write(ctx, id)
	if err == nil {
		_, err = w.Seal(ctx)
		w.Close()
	}
	if err != nil && schema.KindOf(err) != schema.KindConflict {
		r.o.Log.Warn("sealing the lane of a front door that is gone", "journal", id, "error", err)
	}
}

// start runs a journal. direct says that its calls are handed over by a lane.
func (r *Runner) start(owned *journal.Owned, direct bool) *job {
	j := newJob(r, owned)
	j.direct = direct
	r.mu.Lock()
	r.jobs[owned.ID()] = j
	r.mu.Unlock()
	if r.ctx.Err() != nil {
		j.drain() // the runner stopped meanwhile
	}
	r.work.Go(func() {
		if direct {
			j.attend()
		} else {
			j.run()
		}
		r.mu.Lock()
		delete(r.jobs, owned.ID())
		r.mu.Unlock()
		if owned.Manifest().State != journal.Ended {
			r.nudge() // given back: somebody may have to go on
		}
	})
	return j
}

// purge forgets the calls of batches that ended long ago.
func (r *Runner) purge() {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		cursor := ""
		for {
			page, next := r.o.Store.List(journal.Filter{States: []journal.State{journal.Ended}, Limit: 1000}, cursor)
			for _, m := range page {
				if m.Purged || time.Since(m.Ended) < r.o.KeepCalls {
					continue
				}
				ctx, cancel := bound(r.ctx)
				if err := r.o.Store.PurgeCalls(ctx, m.ID); err != nil && !errors.Is(err, context.Canceled) {
					r.o.Log.Warn("forgetting the calls of an ended journal", "journal", m.ID, "error", err)
				}
				cancel()
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
}
