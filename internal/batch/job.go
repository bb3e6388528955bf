package batch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/callyard/callyard/internal/ledger/journal"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// readAhead is how many calls are read at once.
	readAhead = 256
	// countEvery is how often the counts of a running batch are written.
	countEvery = time.Second
	// maxHeld is how many calls of one journal may wait for a yes at once; more
	// would fill the ledger, and no person looks at so many.
	maxHeld = 1000
)

// job is a journal that this front door runs.
type job struct {
	r *Runner
	o *journal.Owned
	m *journal.Manifest // as it was claimed

	// stopping ends when nothing new may start: the runner stops, the journal was
	// lost, canceled or has expired. leaving ends when what an earlier owner left
	// open is the next owner's: in the first two cases. gone ends when what runs is
	// given up too.
	stopping context.Context
	nothing  context.CancelCauseFunc
	leaving  context.Context
	giveBack context.CancelFunc
	gone     context.Context
	forget   context.CancelFunc

	window *semaphore.Weighted
	bytes  *semaphore.Weighted
	flying sync.WaitGroup
	count  atomic.Int64
	met    atomic.Uint64 // how many calls of it were read

	mu     sync.Mutex
	held   map[uint64]*item
	parked chan struct{}       // has a word when a held call ended
	sealed chan struct{}       // closed when a lane gets no more calls
	here   map[uint64]*item    // the calls that are under way and not held
	taking map[uint64]struct{} // calls that were taken back before they were read
	over   bool                // nothing more is begun
	direct bool                // a lane: its calls are handed over, not read

	lacking atomic.Bool // records of its calls are lost

	haul *haul
}

// Why a job stops.
var (
	errStopped  = errors.New("the front door stops")
	errLost     = errors.New("another front door has the journal")
	errCanceled = errors.New("the batch was canceled")
	errExpired  = errors.New("the time of the batch is over")
)

func newJob(r *Runner, owned *journal.Owned) *job {
	j := &job{
		r: r, o: owned, m: owned.Manifest(), window: semaphore.NewWeighted(int64(r.o.Window)), bytes: semaphore.NewWeighted(r.o.WindowBytes),
		held: make(map[uint64]*item), parked: make(chan struct{}, 1), sealed: make(chan struct{}), here: make(map[uint64]*item), taking: make(map[uint64]struct{}),
	}
	j.stopping, j.nothing = context.WithCancelCause(context.Background())
	j.gone, j.forget = context.WithCancel(context.Background())
	j.leaving, j.giveBack = context.WithCancel(j.gone)
	j.haul = newHaul(j)
	return j
}

// halt lets nothing new start. The first cause counts.
func (j *job) halt(cause error) {
	j.nothing(cause)
	if errors.Is(cause, errStopped) || errors.Is(cause, errLost) {
		j.giveBack()
	}
}

// drain lets nothing new start; what has left may finish.
func (j *job) drain() { j.halt(errStopped) }

// cancelOnce is drain for a batch that its caller canceled.
func (j *job) cancelOnce() { j.halt(errCanceled) }

// abandon gives up what has not finished and says how many calls that were.
func (j *job) abandon() int {
	n := int(j.count.Load())
	j.forget()
	return n
}

// guard watches over the claim and the time of the journal until done is closed.
func (j *job) guard(done <-chan struct{}) {
	over := time.NewTimer(time.Until(j.m.Expires))
	defer over.Stop()
	lost := j.o.Lost()
	for {
		select {
		case <-done:
			return
		case <-lost:
			j.halt(errLost)
			lost = nil
		case <-over.C:
			j.halt(errExpired)
		}
	}
}

// run runs a journal to its end, or until it must stop.
func (j *job) run() {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { j.guard(done) })
	watch.Go(func() { j.tell(done) })
	watch.Go(func() { j.haul.intend(done) })
	watch.Go(func() { j.haul.store(done) })
	defer context.AfterFunc(j.stopping, j.haul.recall)()
	defer context.AfterFunc(j.gone, j.haul.abandon)()
	if j.m.State == journal.Canceling {
		j.halt(errCanceled)
	}
	err := j.settleLost()
	open := j.o.Progress().Open()
	if err == nil {
		err = j.remind()
	}
	if err == nil {
		err = j.recover(open)
	}
	if err == nil {
		err = j.read(open)
	}
	j.flying.Wait()
	cause := context.Cause(j.stopping)
	if j.leaving.Err() != nil && !errors.Is(cause, errLost) {
		cause = errStopped // also one that was canceled before: not all that left may be settled
	}
	if err == nil && (errors.Is(cause, errCanceled) || errors.Is(cause, errExpired) || errors.Is(cause, errDamaged)) {
		err = j.cut(cause)
	}
	j.finish()
	close(done)
	watch.Wait()
	j.end(err, cause)
}

// attend looks after a lane whose calls are handed over.
func (j *job) attend() {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { j.guard(done) })
	select {
	case <-j.sealed:
	case <-j.stopping.Done():
	}
	j.flying.Wait()
	err := j.awaitHeld(j.stopping)
	j.finish()
	close(done)
	watch.Wait()
	j.end(err, context.Cause(j.stopping))
}

// finish lets nothing more begin and waits for the last.
func (j *job) finish() {
	j.mu.Lock()
	j.over = true
	j.mu.Unlock()
	j.flying.Wait()
}

// read reads the calls and has each run, until all have a result; those of open are
// recover's, and would run twice.
func (j *job) read(open map[uint64]journal.OpenIntent) error {
	progress := j.o.Progress()
	next := progress.Next(0)
	again := progress.Again()
	ahead := newShelf()
	dry := false // all there is was read; what comes meanwhile waits for the shelf to be empty
	for {
		for !dry && ahead.short(j.r.o.Router.Run) {
			calls, err := j.o.Read(j.stopping, next, readAhead)
			if j.stopping.Err() != nil {
				return nil
			}
			if err != nil {
				if next, err = j.pass(err); err != nil {
					return err
				}
				continue
			}
			for i := range calls {
				c := &calls[i]
				next = c.Index + 1
				if _, recovered := open[c.Index]; !recovered {
					ahead.put(c)
				}
			}
			dry = len(calls) == 0
			j.met.Store(next)
		}
		calls := ahead.take(j.r.o.Router.Run)
		if calls == nil {
			if over, err := j.readAll(next); over || err != nil {
				return err
			}
			dry = false
			continue
		}
		for _, c := range calls {
			if !j.begin(c, again[c.Index].Attempt) {
				return nil
			}
		}
	}
}

// readAll waits for more calls when all up to next have begun. over means that no more
// will come, and none is held, or that nothing new may start.
func (j *job) readAll(next uint64) (over bool, err error) {
	m, err := j.r.o.Store.Get(j.stopping, j.o.ID())
	if j.stopping.Err() != nil {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if m.State != journal.Receiving && next >= m.Calls {
		return true, j.awaitHeld(j.stopping)
	}
	if err := j.tail(m, next); err != nil {
		return false, err
	}
	if m.State != journal.Receiving && j.o.Progress().Next(next) >= m.Calls {
		return true, j.awaitHeld(j.stopping)
	}
	if err := j.o.Wait(j.stopping); err != nil && j.stopping.Err() == nil {
		return false, err
	}
	return false, nil
}

// begin has a call run when there is room for it. False means that nothing new may
// start.
func (j *job) begin(c *journal.CallRecord, attempt int) bool {
	it := j.item(c, attempt)
	if !j.enlist(it) {
		return true
	}
	j.r.o.Router.Pace(j.stopping)
	if !j.enter(j.stopping, c) {
		j.delist(it)
		return false
	}
	if !j.haul.take(it) {
		go j.haul.finish(it, func() { j.execute(it) })
	}
	return true
}

// enter takes a place in the window; false means that ctx ended.
func (j *job) enter(ctx context.Context, c *journal.CallRecord) bool {
	if j.window.Acquire(ctx, 1) != nil {
		return false
	}
	if j.bytes.Acquire(ctx, j.weight(c)) != nil {
		j.window.Release(1)
		return false
	}
	j.flying.Add(1)
	j.count.Add(1)
	return true
}

// leave gives back the place of a call that had the weight when it took it.
func (j *job) leave(weight int64) {
	j.bytes.Release(weight)
	j.window.Release(1)
	j.count.Add(-1)
	j.flying.Done()
}

func (j *job) weight(c *journal.CallRecord) int64 {
	return min(max(int64(len(c.Arguments)), c.ArgumentsObject.Size, 1), j.r.o.WindowBytes)
}

// tell writes the counts while the batch runs, and that it runs.
func (j *job) tell(done <-chan struct{}) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	var last journal.Counts
	var calls uint64
	for {
		select {
		case <-done:
			return
		case <-j.o.Lost():
			return
		case <-tick.C:
		}
		now, before := j.o.Progress().Counts(), calls
		receiving := !j.o.Sealed()
		waits := j.met.Load() > now.Total() || j.r.o.Quota.Queues(&j.m.Principal)
		if now == last && !(receiving && waits) {
			continue // there may be thousands with nothing to do
		}
		ctx, cancel := bound(j.gone)
		if receiving {
			if n, err := j.r.o.Store.Accepted(ctx, j.o.ID()); err == nil {
				calls = n // for the other front doors, which count what waits
			}
		}
		if now == last && calls == before {
			cancel()
			continue
		}
		last = now
		_, err := j.o.SetState(ctx, func(m *journal.Manifest) error {
			if m.State == journal.Sealed {
				m.State = journal.Running
			}
			if m.Started.IsZero() {
				m.Started = time.Now().UTC()
			}
			if m.Sealed.IsZero() {
				m.Calls = max(m.Calls, calls)
			}
			return nil
		})
		cancel()
		if err != nil && schema.KindOf(err) != schema.KindConflict {
			j.r.o.Log.Warn("writing the counts of a batch", "journal", j.o.ID(), "error", err)
		}
	}
}

// complete says that no call is to come and each has its result.
func (j *job) complete() bool {
	ctx, cancel := bound(context.Background())
	defer cancel()
	m, err := j.r.o.Store.Get(ctx, j.o.ID())
	return err == nil && m.State != journal.Receiving && j.o.Progress().Next(0) >= m.Calls
}

// end says that the journal is over, or gives it back.
func (j *job) end(err, cause error) {
	defer j.forget()
	if errors.Is(cause, errLost) {
		j.r.o.LeaseLost()
	}
	stopped := errors.Is(cause, errLost) || errors.Is(cause, errStopped) && !j.complete()
	if err != nil && !stopped {
		j.r.o.Log.Warn("a journal cannot be run on at the moment", "journal", j.o.ID(), "error", err)
	}
	if err == nil && !stopped {
		ctx, cancel := bound(context.Background())
		m, endErr := j.o.SetState(ctx, func(m *journal.Manifest) error {
			switch {
			case errors.Is(cause, errCanceled):
				m.End(journal.EndedByCancel, cmp.Or(m.Reason, canceledByCaller))
			case errors.Is(cause, errExpired):
				m.End(journal.EndedByExpiry, "its time was over")
			case errors.Is(cause, errDamaged):
				m.End(journal.EndedByFailure, cmp.Or(j.reason(), errDamaged.Error()))
			case j.reason() != "":
				m.End(journal.EndedByFailure, j.reason())
			default:
				m.End(journal.Completed, "")
			}
			return nil
		})
		cancel()
		if endErr != nil {
			j.r.o.Log.Warn("ending a journal", "journal", j.o.ID(), "error", endErr)
		} else if m.Kind == journal.Batch {
			j.r.o.Ended(End{Batch: m, Journal: m.ID, Principal: m.Principal})
		}
	}
	ctx, cancel := bound(context.Background())
	defer cancel()
	if err := j.o.Release(ctx); err != nil && !errors.Is(cause, errLost) {
		j.r.o.Log.Debug("giving a journal back", "journal", j.o.ID(), "error", err)
	}
}
