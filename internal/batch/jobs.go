package batch

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// adoptEvery is the interval between searches for journals without an owner.
	adoptEvery = time.Second
	// headStart is the time during which only the front door that created a journal may claim it.
	headStart = 3 * time.Second
)

// jobs holds the jobs that run at this front door, and claims journals without an owner. It is
// safe for concurrent use.
type jobs struct {
	o   *Options
	ids *IDs

	ctx   context.Context // ends when the runner closes
	work  *sync.WaitGroup // all goroutines of the runner
	wake  chan struct{}
	takes chan schema.CallID // ids of calls that were canceled elsewhere

	mu    sync.Mutex
	owned map[schema.BatchID]*job // by journal id
}

func newJobs(ctx context.Context, o *Options, ids *IDs, work *sync.WaitGroup) *jobs {
	return &jobs{o: o, ids: ids, ctx: ctx, work: work, wake: make(chan struct{}, 1), takes: make(chan schema.CallID, 1024), owned: make(map[schema.BatchID]*job)}
}

// find returns the job that runs the journal with the id here, or nil.
func (js *jobs) find(id schema.BatchID) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.owned[id]
}

// stop stops each job at a point from which another front door can resume it.
func (js *jobs) stop() {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.owned {
		j.l.life.halt(errStopped)
	}
}

// abandon cancels the calls that have not ended and returns their number.
func (js *jobs) abandon() int {
	js.mu.Lock()
	defer js.mu.Unlock()
	n := 0
	for _, j := range js.owned {
		n += j.abandon()
	}
	return n
}

// changed handles a change of a manifest.
func (js *jobs) changed(m *journal.Manifest) {
	if j := js.find(m.ID); j != nil {
		if m.State == journal.Canceling {
			j.l.life.halt(errCanceled)
		}
		return
	}
	if m.State != journal.Ended && js.orphan(m) {
		js.nudge()
	}
}

// decided handles a change of an approval.
func (js *jobs) decided(a *ledger.Approval) {
	if !a.State.Ended() {
		return
	}
	id, index, ok := ParseCallID(a.CallID)
	if !ok {
		return
	}
	if j := js.find(id); j != nil {
		j.held.released(index)
	}
}

func (js *jobs) nudge() { notify(js.wake) }

// adopt claims journals without an owner.
func (js *jobs) adopt() {
	tick := time.NewTicker(adoptEvery)
	defer tick.Stop()
	began, all := time.Now(), make(claims)
	for reminded := false; ; {
		select {
		case <-js.ctx.Done():
			return
		case <-tick.C:
		case <-js.wake:
		}
		if !reminded && time.Since(began) > headStart {
			reminded = true
			js.remind(began)
		}
		for _, m := range js.o.Store.Unended(schema.AllTenants(), js.orphan) {
			if js.ctx.Err() != nil {
				return
			}
			if c, due := all.next(m); due {
				c.noAnswer = schema.KindOf(js.take(m)) == schema.KindUnavailable
			}
		}
		all.prune()
	}
}

// remind sends the callbacks again for batches that ended shortly before this front door started
// and whose owner is gone: it may have died before it sent them.
func (js *jobs) remind(began time.Time) {
	page, _ := js.o.Store.List(schema.AllTenants(), journal.Filter{Kind: journal.Batch, States: []journal.State{journal.Ended}, Limit: 1000}, "")
	for _, m := range page {
		if m.CallbackURL != "" && m.Ended.After(began.Add(-remindOf)) && m.Ended.Before(began) && !js.o.Catalog.RouterAlive(m.Owner) {
			js.o.Ended(End{Batch: m, Journal: m.ID, Principal: m.Principal})
		}
	}
}

// remindOf is the time before the start within which remind looks for ended batches.
const remindOf = 15 * time.Minute

// orphan reports whether a journal may be without an owner. It does not block.
func (js *jobs) orphan(m *journal.Manifest) bool {
	switch {
	case js.find(m.ID) != nil:
		return false
	case m.Owner == "":
		return time.Since(m.Created) > headStart
	case m.Owner == js.o.ID:
		return true
	}
	return !js.o.Catalog.RouterAlive(m.Owner)
}

// take claims a journal and runs it. It returns the error of the claim.
func (js *jobs) take(m *journal.Manifest) error {
	ctx, cancel := context.WithTimeout(js.ctx, time.Minute) // rebuilding the state of a million calls takes seconds
	defer cancel()
	owned, err := js.o.Store.Claim(ctx, m.Principal.Tenant, m.ID, js.o.ID)
	if err != nil {
		if schema.KindOf(err) != schema.KindConflict && js.ctx.Err() == nil {
			js.o.Log.Warn("taking over a journal failed", "journal", m.ID, "error", err)
		}
		return err
	}
	if owned.Epoch() > 1 {
		js.o.Log.Info("a journal was taken over", "journal", m.ID, "epoch", owned.Epoch(), "open", len(owned.Progress().Open()))
	}
	if m.Kind == journal.Lane {
		js.sealLane(ctx, m)
	}
	js.start(newJob(js.o, js.ids, owned))
	return nil
}

// sealLane seals a lane whose front door is gone.
func (js *jobs) sealLane(ctx context.Context, m *journal.Manifest) {
	w, err := js.o.Store.Write(ctx, m.Principal.Tenant, m.ID)
	if err == nil {
		_, err = w.Seal(ctx)
		w.Close()
	}
	if err != nil && schema.KindOf(err) != schema.KindConflict {
		js.o.Log.Warn("sealing the lane of a front door that has stopped failed", "journal", m.ID, "error", err)
	}
}

// start runs a job.
func (js *jobs) start(j *job) {
	owned := j.l.owned
	js.mu.Lock()
	js.owned[owned.ID()] = j
	js.mu.Unlock()
	if js.ctx.Err() != nil {
		j.l.life.halt(errStopped) // the runner was stopped in the meantime
	}
	js.work.Go(func() {
		if j.direct {
			j.runLane()
		} else {
			j.run()
		}
		js.mu.Lock()
		delete(js.owned, owned.ID())
		js.mu.Unlock()
		if owned.Manifest().State != journal.Ended {
			js.nudge() // released: another front door may have to resume it
		}
	})
}

// takeBacks cancels calls of this front door whose cancellation was requested at another one.
func (js *jobs) takeBacks() {
	for {
		select {
		case <-js.ctx.Done():
			return
		case id := <-js.takes:
			js.takeBack(id)
		}
	}
}

// canceled handles the cancellation of a call, at this or another front door.
func (js *jobs) canceled(id schema.CallID) {
	journalID, _, ok := ParseCallID(id)
	if !ok || js.find(journalID) == nil {
		return
	}
	select {
	case js.takes <- id:
	default: // the queue is full, which requests of people cannot cause; the caller sees that the call continues
	}
}

func (js *jobs) takeBack(id schema.CallID) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return
	}
	if j := js.find(journalID); j != nil {
		j.takeBack(index)
	}
}
