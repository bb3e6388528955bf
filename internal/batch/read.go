package batch

import (
	"sync/atomic"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// readMost limits the calls of one read.
const readMost = 256

// reader reads the calls of a journal and starts them as the window permits.
type reader struct {
	l        *lease
	losses   *losses
	held     *heldCalls
	exec     *executor
	pipeline *pipeline
	met      atomic.Uint64 // number of calls read
	// records holds the ids in the call records of calls that run again. It lacks those of orders that
	// an earlier owner stored; these calls get a second record.
	records map[uint64]schema.CallID
}

// run reads the calls and starts them, until all have a result. It skips those of open, which the
// recovery handles and which would otherwise run twice.
func (r *reader) run(open map[uint64]journal.OpenIntent) error {
	progress := r.l.owned.Progress()
	next := progress.Next(0)
	ahead := newReadAhead()
	dry := false // the log is read to its end; it is read again once the read-ahead buffer is empty
	for {
		for !dry && ahead.short(r.l.o.Router.Run) {
			calls, err := r.l.owned.Read(r.l.life.stopping, next, readMost)
			if r.l.life.stopping.Err() != nil {
				return nil
			}
			if err != nil {
				if next, err = r.losses.pass(err); err != nil {
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
			r.met.Store(next)
		}
		calls := ahead.take(r.l.o.Router.Run)
		if calls == nil {
			if over, err := r.readAll(next); over || err != nil {
				return err
			}
			dry = false
			continue
		}
		for _, c := range calls {
			if !r.begin(c) {
				return nil
			}
		}
	}
}

// readAll waits for more calls after all calls up to next have begun. over means that no more will
// come and none is held, or that nothing new may start.
func (r *reader) readAll(next uint64) (over bool, err error) {
	m, err := r.l.o.Store.Get(r.l.life.stopping, r.l.m.Principal.Tenant, r.l.owned.ID())
	if r.l.life.stopping.Err() != nil {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if m.State != journal.Receiving && next >= m.Calls {
		return true, r.held.wait(r.l.life.stopping)
	}
	if err := r.losses.tail(m, next); err != nil {
		return false, err
	}
	if m.State != journal.Receiving && r.l.owned.Progress().Next(next) >= m.Calls {
		return true, r.held.wait(r.l.life.stopping)
	}
	if err := r.l.owned.Wait(r.l.life.stopping); err != nil && r.l.life.stopping.Err() == nil {
		return false, err
	}
	return false, nil
}

// begin starts a call once the window permits. It returns false if nothing new may start.
func (r *reader) begin(c *journal.CallRecord) bool {
	it := r.l.item(c, 0)
	if again := r.l.owned.Progress().Standing(c.Index); again.Attempt > 0 { // a person ordered to run it again
		it.attempt, it.noted = again.Attempt, r.records[c.Index]
	}
	if !r.l.calls.enlist(it) {
		return true
	}
	r.l.o.Router.Pace(r.l.life.stopping)
	if !r.l.window.enter(r.l.life.stopping, c) {
		r.l.calls.delist(it)
		return false
	}
	if !r.pipeline.take(it) {
		go r.pipeline.finish(it, func() { r.exec.execute(it) })
	}
	return true
}
