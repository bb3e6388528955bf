package release

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// endsWithin is the maximum age of the ends of held calls that are written at the start, in case
	// all front doors were down when the calls ended.
	endsWithin = 24 * time.Hour
	// endsKept limits the ends that wait to be written. Ends beyond that are written at the next
	// start of a front door.
	endsKept = 100_000
	// endsAtOnce is the number of ends per lookup in the log. endTimeout bounds that lookup.
	endsAtOnce = 1000
	endTimeout = 10 * time.Second
)

// unrun maps the final states of calls that were held and never ran.
var unrun = map[ledger.State]schema.State{
	ledger.Denied: schema.StateDenied, ledger.Revoked: schema.StateDenied, ledger.Expired: schema.StateExpired, ledger.Canceled: schema.StateCanceled,
}

// ends records the outcome of held calls that never ran. Such calls do not pass through the chain of
// layers, so the log would show them as held forever. Every front door is notified of every end and
// writes it unless the log already has it. Duplicate records of the same end are equal.
type ends struct {
	records *records.Recorder // if nil, nothing is written
	wake    chan struct{}

	mu   sync.Mutex
	wait []*ledger.Approval
}

// neverRan reports whether the call ended without having run.
func neverRan(a *ledger.Approval) bool { return unrun[a.State] != "" && a.Runner == nil }

// add queues the approval if its call never ran. The approval must not be changed any more.
func (e *ends) add(a *ledger.Approval) {
	if e.records == nil || !neverRan(a) {
		return
	}
	e.keep(a)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// catchUp queues the ends that no front door may have been notified of.
func (e *ends) catchUp(l *ledger.Ledger) {
	for _, a := range l.Where(schema.AllTenants(), func(a *ledger.Approval) bool { return neverRan(a) && time.Since(a.Ended) < endsWithin }) {
		e.add(a)
	}
}

func (e *ends) keep(a *ledger.Approval) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.wait) < endsKept {
		e.wait = append(e.wait, a)
	}
}

func (e *ends) take() (all []*ledger.Approval) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, e.wait = e.wait, nil
	return all
}

// run writes the queued ends until ctx ends. Ends that cannot be written while the log is unavailable
// are retried with the next end.
func (e *ends) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for some := range slices.Chunk(e.take(), endsAtOnce) {
			if ctx.Err() != nil {
				return
			}
			e.write(ctx, some)
		}
	}
}

// write records the ends of calls that the log still shows as held.
func (e *ends) write(ctx context.Context, ended []*ledger.Approval) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	ids := make([]schema.CallID, len(ended))
	for i, a := range ended {
		ids[i] = namedOf(a).ID
	}
	found, err := e.records.Find(ctx, schema.AllTenants(), ids...)
	for i, a := range ended {
		if err != nil {
			e.keep(a)
			continue
		}
		if rec := found[ids[i]]; rec == nil || rec.State != schema.StateHeld {
			continue
		}
		end := recordOf(a)
		end.State, end.Ended, end.Changed = unrun[a.State], a.Ended.UnixNano(), a.Ended.UnixNano()
		end.Error, end.Detail = reasonOf(a)
		e.records.Add(&end)
	}
}

// refused records that an approved call was not run, and the reason.
func (e *ends) refused(a *ledger.Approval, why error) {
	if e.records == nil {
		return
	}
	rec := recordOf(a)
	e.records.Begin(&rec).End(records.Outcome{Err: why})
}

// recordOf returns the fields of a record that identify and describe the call. Readers merge the rest
// from the record of the hold.
func recordOf(a *ledger.Approval) records.Record {
	b, rec := &a.Binding, namedOf(a)
	rec.Principal, rec.Owner, rec.Tenant, rec.Server, rec.Tool = b.Requester.Name, b.Requester.Owner, b.Tenant.Stored(), b.Server, b.Tool
	rec.Admitted, rec.ReplayOf = a.Created.UnixNano(), a.ReplayOf
	return rec
}

// namedOf returns a record with the ids of the call. The log stores calls of journals under separate
// ids.
func namedOf(a *ledger.Approval) records.Record {
	rec := records.Record{ID: a.CallID, Approval: a.ID}
	if _, _, durable := batch.ParseCallID(a.CallID); durable {
		rec.ID, rec.Known, rec.Durable = records.IDOfHeld(a.Created, a.CallID), a.CallID, true
	}
	return rec
}

// reasonOf returns the reason why the call has no result.
func reasonOf(a *ledger.Approval) (schema.Kind, string) {
	switch a.State {
	case ledger.Expired:
		return schema.KindExpired, "Nobody approved the call in time; it did not run."
	case ledger.Canceled:
		return schema.KindCanceled, "The call was canceled while it was held; it did not run."
	case ledger.Revoked:
		return schema.KindForbidden, "The approval was withdrawn before the call ran; it did not run."
	}
	return schema.KindForbidden, "The call was denied; it did not run."
}
