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
	// endsWithin is how old the end of a held call may be that is written to the execution
	// log at the start: all front doors may have been away when it ended.
	endsWithin = 24 * time.Hour
	// endsKept bounds the ends that wait to be written; what is beyond is written at the
	// next start of a front door.
	endsKept = 100_000
	// endsAtOnce is the number of them that are looked up with one look at the log, and endTimeout
	// bounds that.
	endsAtOnce = 1000
	endTimeout = 10 * time.Second
)

// unrun are the ends of calls that were held and never ran.
var unrun = map[ledger.State]schema.State{
	ledger.Denied: schema.StateDenied, ledger.Revoked: schema.StateDenied, ledger.Expired: schema.StateExpired, ledger.Canceled: schema.StateCanceled,
}

// ends writes to the execution log how held calls ended that never ran: no chain of layers
// does, and the log would show them as held for ever. Every front door hears of every end and
// writes it, unless the log has it by then; two records of the same end say the same.
type ends struct {
	records *records.Recorder // nil: nothing is written
	wake    chan struct{}

	mu   sync.Mutex
	wait []*ledger.Approval
}

// neverRan reports whether it is the end of a call that never ran.
func neverRan(a *ledger.Approval) bool { return unrun[a.State] != "" && a.Runner == nil }

// add takes in the approval, which must not be changed any more, if it has such an end.
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

// catchUp takes in the ends that no front door may have heard of.
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

// run writes what is added until ctx ends. What cannot be written while the log is
// unavailable is tried again with the next one.
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

// write writes the ends of calls of which the log has none.
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

// refused writes that an approved call was not run, and why.
func (e *ends) refused(a *ledger.Approval, why error) {
	if e.records == nil {
		return
	}
	rec := recordOf(a)
	e.records.Begin(&rec).End(records.Outcome{Err: why})
}

// recordOf is what a record of the call has to say in addition to its end: the merged record
// has the rest from the one that told of the hold.
func recordOf(a *ledger.Approval) records.Record {
	b, rec := &a.Binding, namedOf(a)
	rec.Principal, rec.Owner, rec.Tenant, rec.Server, rec.Tool = b.Requester.Name, b.Requester.Owner, b.Tenant.Stored(), b.Server, b.Tool
	rec.Admitted, rec.ReplayOf = a.Created.UnixNano(), a.ReplayOf
	return rec
}

// namedOf is a record with what says of which call it is. The log has calls of journals under an
// id of their own.
func namedOf(a *ledger.Approval) records.Record {
	rec := records.Record{ID: a.CallID, Approval: a.ID}
	if _, _, durable := batch.ParseCallID(a.CallID); durable {
		rec.ID, rec.Known, rec.Durable = records.IDOfHeld(a.Created, a.CallID), a.CallID, true
	}
	return rec
}

// reasonOf says why the call has no result.
func reasonOf(a *ledger.Approval) (schema.Kind, string) {
	switch a.State {
	case ledger.Expired:
		return schema.KindExpired, "Nobody approved the call in time; it did not run."
	case ledger.Canceled:
		return schema.KindCanceled, "The call was cancelled while it was held; it did not run."
	case ledger.Revoked:
		return schema.KindForbidden, "The approval was withdrawn before the call ran; it did not run."
	}
	return schema.KindForbidden, "The call was denied; it did not run."
}
