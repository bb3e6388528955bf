package batch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Records of durable calls can be lost with the files of NATS. A call whose record is lost, or
// for which it is no longer known whether it ran, ends as unknown and does not run. Waiting
// callers get an answer, and every line of a batch gets a result.

// errDamaged stops a batch that was still receiving calls when records were lost.
var errDamaged = errors.New("records of durable calls were lost with a damaged data folder")

// lost reports whether a journal was created before a loss of records. The outcomes of its calls
// without a result are then unknown.
func (o *Options) lost(m *journal.Manifest) bool {
	return !o.LostBefore.IsZero() && m.Created.Before(o.LostBefore)
}

// lostBefore reports whether an unknown journal was created before a loss of records, according
// to its id.
func (o *Options) lostBefore(journalID schema.BatchID) bool {
	made, ok := schema.IDTime(string(journalID))
	return ok && made.Before(o.LostBefore)
}

// notKnown is the error of a call of a damaged journal whose own record still exists.
func notKnown() *schema.Error {
	return schema.Errorf(schema.KindOutcomeUnknown, "Records of durable calls were lost with a damaged data folder, so it is unknown whether this call ran; it is not run again. Check its effects, then settle it.")
}

// lostResult returns the result of the call at index whose record is lost. id is "" if the
// principal of the call is unknown.
func lostResult(id schema.CallID, index uint64) journal.ResultRecord {
	return journal.ResultRecord{Index: index, CallID: id, Outcome: journal.Unknown, Ended: time.Now(), Error: encodeError(journal.LostCall(id))}
}

// endUnknown stores an unknown outcome for calls of a journal that have no result: those whose
// records are lost and, if all is set, the other ones too, except those for which skip returns
// true. known is the number of calls.
func endUnknown(ctx context.Context, ids *IDs, o *journal.Owned, from, known uint64, all bool, skip func(*journal.CallRecord) bool) error {
	m, progress := o.Manifest(), o.Progress()
	for next := progress.Next(from); next < known; next = progress.Next(next) {
		calls, err := o.Read(ctx, next, endMost)
		gap, isGap := gapOf(err)
		if err != nil && !isGap {
			return err
		}
		var ends []journal.ResultRecord
		until := next
		if len(calls) == 0 {
			if until = known; isGap {
				until = min(gap.Next, known)
			}
			until = min(until, next+endMost)
			for i := next; i < until; i++ {
				if !progress.Ended(i) {
					id := schema.CallID("")
					if m.Kind == journal.Batch {
						id = ids.CallID(m.ID, i, m.Principal.Name)
					}
					lost := lostResult(id, i)
					lost.Attempt = attemptOf(progress, i, 0)
					ends = append(ends, lost)
				}
			}
		}
		now := time.Now()
		for i := range calls {
			c := &calls[i]
			until = c.Index + 1
			switch {
			case !all || progress.Ended(c.Index) || skip(c):
			case c.Method == methodRefused:
				ends = append(ends, refusal(m, c, refusedLine(c.Arguments), now))
			default:
				id := ids.of(m, c)
				ends = append(ends, journal.ResultRecord{Index: c.Index, CallID: id, Tenant: requester(m, c).Tenant, CustomID: c.CustomID, Attempt: attemptOf(progress, c.Index, 0), Outcome: journal.Unknown, Ended: now, Error: encodeError(notKnown().WithCall(id))})
			}
		}
		next = until
		storing, cancel := bound(ctx)
		err = o.Results(storing, ends...)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// endMost limits the calls that are ended with one write.
const endMost = 1000

func gapOf(err error) (*journal.GapError, bool) {
	var gap *journal.GapError
	return gap, errors.As(err, &gap)
}

// losses ends the calls of a journal whose records are lost.
type losses struct {
	l     *lease
	found atomic.Bool // some records are lost
}

// settle ends the calls of a journal that was created before a loss, and cancels the open
// approvals of its calls.
func (g *losses) settle() error {
	if !g.l.lost() {
		return nil
	}
	if g.l.m.Kind == journal.Batch && g.l.m.State == journal.Receiving {
		g.l.life.halt(errDamaged) // it is unknown which calls arrived
	}
	open := approvalsOf(g.l.o.Ledger, schema.AllTenants(), g.l.owned.ID(), func(a *ledger.Approval) bool { return !a.State.Ended() })
	for _, a := range open {
		ctx, cancel := bound(g.l.life.gone)
		_, err := g.l.o.Desk.Cancel(ctx, a.CallID, schema.Principal{Name: a.Binding.Requester.Name, Tenant: a.Binding.Tenant})
		cancel()
		if kind := schema.KindOf(err); err != nil && kind != schema.KindConflict && kind != schema.KindNotFound {
			return err
		}
	}
	progress := g.l.owned.Progress()
	return endUnknown(g.l.life.gone, g.l.ids, g.l.owned, 0, max(g.l.m.Calls, progress.Accepted()), true, func(c *journal.CallRecord) bool {
		return c.Method == methodAnswers || c.Method == methodWithdrawn // such records run nothing
	})
}

// pass handles a gap that a read reported: it ends the calls whose records are lost and returns
// the index at which to continue. It returns other errors unchanged.
func (g *losses) pass(err error) (next uint64, _ error) {
	gap, ok := gapOf(err)
	if !ok {
		return 0, err
	}
	g.l.o.Log.Error("records of durable calls were lost; the calls end as unknown", "journal", gap.Journal, "first", gap.First, "last", gap.Next-1)
	g.found.Store(true)
	return gap.Next, endUnknown(g.l.life.gone, g.l.ids, g.l.owned, gap.First, gap.Next, false, nil)
}

// tail ends the calls at the end of a log whose records are lost: next is the end of the log as
// read, and the journal counts more calls. It does nothing if the stream's leader has them.
func (g *losses) tail(m *journal.Manifest, next uint64) error {
	known := max(m.Calls, g.l.owned.Progress().Accepted())
	if next >= known {
		return nil
	}
	stored, err := g.l.o.Store.Accepted(g.l.life.gone, g.l.m.Principal.Tenant, g.l.owned.ID())
	if err != nil || stored > next {
		return err
	}
	_, err = g.pass(&journal.GapError{Journal: g.l.owned.ID(), First: next, Next: known})
	if err == nil && m.State == journal.Receiving && m.Kind == journal.Batch {
		g.l.life.halt(errDamaged) // new calls would get indexes that were already used
	}
	return err
}

// reason returns the reason for ending a journal with lost records, or "" for others.
func (g *losses) reason() string {
	unknown := g.l.owned.Progress().Counts().Unknown
	if unknown == 0 || !g.found.Load() && !g.l.lost() {
		return ""
	}
	return lostReason(unknown)
}

func lostReason(unknown uint64) string {
	return fmt.Sprintf("%v: the outcome of %d of its calls is unknown", errDamaged, unknown)
}

// settleEnded handles the journals that had ended before a loss. If results are lost, their calls
// end as unknown and the journal ends as failed.
func (o *Options) settleEnded(ctx context.Context, ids *IDs) {
	if o.LostBefore.IsZero() {
		return
	}
	keep := o.Store.MaxLife() // results are kept for twice that time
	for m := range o.journals(schema.AllTenants(), journal.Filter{States: []journal.State{journal.Ended}}) {
		if m.Forgotten || !o.lost(m) || keep > 0 && time.Since(m.Created) > keep {
			continue
		}
		if err := o.settleOne(ctx, ids, m); err != nil && schema.KindOf(err) != schema.KindConflict {
			o.Log.Error("ending the calls of a journal whose results were lost failed; it is tried again at the next start", "journal", m.ID, "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (o *Options) settleOne(ctx context.Context, ids *IDs, m *journal.Manifest) error {
	if whole, err := o.Store.Complete(ctx, m); err != nil || whole {
		return err
	}
	owned, err := o.Store.ClaimEnded(ctx, m.Principal.Tenant, m.ID, o.ID)
	if err != nil {
		return err
	}
	defer func() {
		releasing, cancel := bound(context.WithoutCancel(ctx))
		defer cancel()
		_ = owned.Release(releasing) // otherwise the lease expires
	}()
	err = endUnknown(ctx, ids, owned, 0, m.Calls, true, func(*journal.CallRecord) bool { return false })
	if err != nil {
		return err
	}
	m, err = owned.SetState(ctx, func(m *journal.Manifest) error {
		m.Ending, m.Reason = journal.EndedByFailure, lostReason(owned.Progress().Counts().Unknown)
		return nil
	})
	if err == nil && m.Kind == journal.Batch {
		o.Ended(End{Batch: m, Journal: m.ID, Principal: m.Principal})
	}
	return err
}
