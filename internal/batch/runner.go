package batch

import (
	"context"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Runner runs the journals that this front door owns, and claims those whose owner is gone. It is
// safe for concurrent use.
type Runner struct {
	// Calls and Batches are the API for callers.
	Calls   *Calls
	Batches *Batches

	o     *Options
	jobs  *jobs
	lanes *lanes
	stop  context.CancelFunc // ends the context of new work
	work  sync.WaitGroup
	unsee []func()
}

// Open starts a runner. ctx limits the time for that.
func Open(ctx context.Context, options Options) (*Runner, error) {
	options.fill()
	o, ids := &options, NewIDs(options.Store.Secret())
	r := &Runner{o: o}
	working, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.jobs = newJobs(working, o, ids, &r.work)
	r.lanes = newLanes(working, o, r.jobs, &r.work)
	in := newIntakes()
	waiting := newBacklog(working, o, r.jobs, in)
	r.Batches = &Batches{o: o, ids: ids, jobs: r.jobs, backlog: waiting, intakes: in}
	find := &finder{o: o, ids: ids, jobs: r.jobs}
	accept := &acceptor{o: o, lanes: r.lanes, backlog: waiting}
	r.Calls = &Calls{o: o, ids: ids, jobs: r.jobs, backlog: waiting, finder: find, acceptor: accept, conversations: &conversations{o: o, finder: find, acceptor: accept}}
	r.unsee = append(r.unsee, o.Store.Watch(schema.AllTenants(), r.jobs.changed), o.Ledger.Watch(schema.AllTenants(), r.jobs.decided), o.Router.OnCancel(r.jobs.canceled))
	o.settleEnded(ctx, ids)
	r.work.Go(r.jobs.adopt)
	r.work.Go(r.jobs.takeBacks)
	r.work.Go(func() { o.purge(working) })
	return r, nil
}

// Forget deletes the payloads whose retention has ended at the given time. The runner calls it
// every ten minutes.
func (r *Runner) Forget(ctx context.Context, now time.Time) { r.o.forget(ctx, now) }

// Close accepts no further work, waits until ctx ends for calls that were sent, and releases the
// journals. The next owner settles the calls that did not finish.
func (r *Runner) Close(ctx context.Context) error {
	r.stop()
	for _, unsee := range r.unsee {
		unsee()
	}
	r.lanes.close()
	r.jobs.stop()
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
	n := r.jobs.abandon()
	<-done
	if n > 0 {
		return schema.Errorf(schema.KindCanceled, "%d durable calls were still running; another front door settles them", n)
	}
	return nil
}
