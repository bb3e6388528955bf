package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/kit/watchers"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// view caches the ledger in memory: every approval that waits or runs, and the latest ended ones. For open
// approvals that were created here it also caches the arguments, within a memory budget.
type view struct {
	maxEnded      int
	retentionView // due is guarded by mu

	mu       sync.RWMutex
	rows     map[schema.ApprovalID]row
	unended  map[schema.ApprovalID]*Approval // those of rows that have not ended
	open     usage                           // total of rows and reserved
	openOf   map[schema.PrincipalID]usage    // the same, per requester
	reserved map[schema.ApprovalID]*Approval // approvals that are being stored, by id
	argBytes int
	ended    []schema.ApprovalID // ids in the order of their observed end; a ring once it is full
	oldest   int                 // index in ended of the oldest id, once it is full
	dropped  time.Time           // when the latest of the approvals was created that are no longer in ended
	watchers watchers.Set[*Approval]

	delivered atomic.Uint64 // sequence of the latest write that the watch has delivered
}

type row struct {
	a        *Approval // immutable
	revision uint64    // to be passed to the next change
	sequence uint64
	args     []byte
}

// maxArguments limits the cached arguments in total, maxArgument those of one call.
const (
	maxArguments = 32 << 20
	maxArgument  = 64 << 10
)

func newView(maxEnded int) *view {
	return &view{maxEnded: maxEnded, rows: map[schema.ApprovalID]row{}, unended: map[schema.ApprovalID]*Approval{}, openOf: map[schema.PrincipalID]usage{}, reserved: map[schema.ApprovalID]*Approval{}, retentionView: retentionView{due: map[schema.ApprovalID]due{}}}
}

// put applies a write unless a newer one is known, and reports whether it is the newest. A forgotten record
// is removed from the view.
func (v *view) put(a *Approval, revision, sequence uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was, known := v.rows[a.ID]
	if known && was.sequence > sequence {
		return false
	}
	v.noteLocked(a, revision)
	if a.Forgotten {
		v.removeLocked(a.ID)
		return false
	}
	v.releaseLocked(a.ID)
	if known && !was.a.State.Ended() {
		v.countLocked(was.a, -1)
	}
	switch {
	case !a.State.Ended():
		v.countLocked(a, 1)
	case !known || !was.a.State.Ended():
		v.endLocked(a.ID)
	}
	args := was.args
	if a.State.Ended() && args != nil {
		v.argBytes -= len(args)
		args = nil
	}
	v.setLocked(row{a, revision, sequence, args})
	return true
}

// setLocked replaces the row of an approval.
func (v *view) setLocked(r row) {
	v.rows[r.a.ID] = r
	if r.a.State.Ended() {
		delete(v.unended, r.a.ID)
	} else {
		v.unended[r.a.ID] = r.a
	}
}

// endLocked notes that an approval ended. If there are too many, it replaces the oldest one.
func (v *view) endLocked(id schema.ApprovalID) {
	if len(v.ended) < v.maxEnded {
		v.ended = append(v.ended, id)
		return
	}
	if r, ok := v.rows[v.ended[v.oldest]]; ok && r.a.Created.After(v.dropped) {
		v.dropped = r.a.Created
	}
	delete(v.rows, v.ended[v.oldest])
	v.ended[v.oldest] = id
	v.oldest = (v.oldest + 1) % len(v.ended)
}

func (v *view) get(id schema.ApprovalID) (*Approval, uint64, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.rows[id]
	return r.a, r.revision, ok
}

// keepArguments caches a copy, because the caller may reuse its buffer.
func (v *view) keepArguments(id schema.ApprovalID, args []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, ok := v.rows[id]
	if !ok || r.a.State.Ended() || r.args != nil || len(args) > maxArgument || v.argBytes+len(args) > maxArguments {
		return
	}
	r.args = append(make([]byte, 0, len(args)), args...)
	v.argBytes += len(args)
	v.setLocked(r)
}

// erase drops the sealed data of the approvals of a tenant whose data key was destroyed.
func (v *view) erase(tenant schema.TenantID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.rows {
		if r.a.Binding.Tenant.Is(tenant) {
			v.argBytes -= len(r.args)
			r.args, r.a = nil, r.a.Clone() // a copy, because others may be reading it
			r.a.put(&private{Said: make([]string, len(r.a.Decisions))})
			v.setLocked(r)
		}
	}
}

// arguments returns the cached arguments, or nil.
func (v *view) arguments(id schema.ApprovalID) []byte {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.rows[id].args
}

// at returns the version that was written with that sequence, if it is known.
func (v *view) at(id schema.ApprovalID, sequence uint64) (*Approval, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	r, ok := v.rows[id]
	return r.a, ok && r.sequence == sequence
}

// seen applies a write that the watch delivered.
func (l *Ledger) seen(r Stored) {
	defer l.view.delivered.Store(r.Sequence)
	a, known := l.view.at(r.ID, r.Sequence)
	if !known { // if known, it was written here and need not be decoded
		var err error
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		a, err = l.store.decode(ctx, r.Head)
		cancel()
		if err != nil || a.ID != r.ID {
			l.log.Error("an approval in the ledger cannot be read; it is skipped", "approval_id", r.ID, "sequence", r.Sequence, "error", err)
			return
		}
		if !l.view.put(a, r.Revision, r.Sequence) {
			return
		}
	}
	for _, f := range l.view.watchers.Of(string(a.ID)) {
		f(a.Clone())
	}
}

// Watch calls f with each approval of these tenants that any process writes from now on, until stop is
// called. Of writes in quick succession, f may see only the last. Calls of f are sequential, on one
// goroutine; f must not block, and may still run when stop returns. f is not called after
// [Ledger.Close].
func (l *Ledger) Watch(of schema.Tenants, f func(*Approval)) (stop func()) {
	return l.view.watchers.Add("", ofTenants(of, f))
}

// WatchOne is [Ledger.Watch] for one approval. Writes of other approvals cost nothing, regardless of the
// number of watchers.
func (l *Ledger) WatchOne(of schema.Tenants, id schema.ApprovalID, f func(*Approval)) (stop func()) {
	return l.view.watchers.Add(string(id), ofTenants(of, f))
}

// ofTenants returns a function that calls f for approvals of these tenants only.
func ofTenants(of schema.Tenants, f func(*Approval)) func(*Approval) {
	return func(a *Approval) {
		if of.Include(a.Binding.Tenant) {
			f(a)
		}
	}
}

// Filter selects approvals. An empty field matches all.
type Filter struct {
	States    []State
	Requester string
	Server    schema.ServerID
	Tool      string
	// Fits, if not nil, must also return true. It must not modify or keep its argument, or call the ledger.
	Fits func(*Approval) bool
	// OldestFirst reverses the order of a list, which is newest first.
	OldestFirst bool
	// Limit is the maximum length of a page. It defaults to 100 and is at most 1,000.
	Limit int
}

func (f *Filter) matches(a *Approval) bool {
	b := &a.Binding
	return (len(f.States) == 0 || slices.Contains(f.States, a.State)) &&
		(f.Requester == "" || f.Requester == b.Requester.Name) && (f.Server == "" || f.Server == b.Server) && (f.Tool == "" || f.Tool == b.Tool) &&
		(f.Fits == nil || f.Fits(a))
}

// unended reports whether only approvals that have not ended match.
func (f *Filter) unended() bool {
	return len(f.States) > 0 && !slices.ContainsFunc(f.States, State.Ended)
}

// List returns a page of the matching approvals of these tenants and the cursor of the next page, which is
// zero on the last page. The page begins after the given cursor. It reads this process's view: all
// approvals that wait or run, and the latest ended ones.
func (l *Ledger) List(of schema.Tenants, f Filter, after Cursor) (page []*Approval, next Cursor) {
	order := func(a, b Cursor) int { return b.Compare(a) }
	if f.OldestFirst {
		order = Cursor.Compare
	}
	limit := min(cmp.Or(max(f.Limit, 0), 100), 1000)
	sorted := func(some []*Approval) []*Approval {
		slices.SortFunc(some, func(a, b *Approval) int { return order(CursorOf(a), CursorOf(b)) })
		return some
	}
	// Sort only candidates for the page: before is the first one that is on a later page.
	var found []*Approval
	var before Cursor
	l.view.visit(f.unended(), func(a *Approval) {
		at := CursorOf(a)
		if !after.IsZero() && order(at, after) <= 0 || !before.IsZero() && order(at, before) > 0 || !of.Include(a.Binding.Tenant) || !f.matches(a) {
			return
		}
		if found = append(found, a); len(found) == 2*limit+1 {
			found = sorted(found)[:limit+1]
			before = CursorOf(found[limit])
		}
	})
	if found = sorted(found); len(found) > limit {
		found = found[:limit]
		next = CursorOf(found[limit-1])
	}
	return cloned(found), next
}

// Complete reports whether this process's view has every approval that was created after a time. It lacks
// those that ended before the latest ended ones.
func (l *Ledger) Complete(after time.Time) bool {
	l.view.mu.RLock()
	defer l.view.mu.RUnlock()
	return !l.view.dropped.After(after)
}

// CatchUp waits until the view of this process has every write that was acknowledged before.
func CatchUp(ctx context.Context, l *Ledger) error {
	last, err := l.store.records.Last(ctx, bus.SubjectApproval+"*.*", bus.Leader)
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	for err == nil && l.view.delivered.Load() < last.Sequence {
		if !sleep.For(catchUpAgain, ctx.Done()) {
			err = ctx.Err()
		}
	}
	if err != nil {
		return unavailable(err, "")
	}
	return nil
}

// catchUpAgain is the interval at which CatchUp looks at the view.
const catchUpAgain = 10 * time.Millisecond

// Where returns all matching approvals of these tenants in this process's view, in no particular order. fit
// must not modify or keep its argument.
func (l *Ledger) Where(of schema.Tenants, fit func(*Approval) bool) []*Approval {
	return cloned(l.view.fitting(false, func(a *Approval) bool { return of.Include(a.Binding.Tenant) && fit(a) }))
}

// Each calls visit with every approval of these tenants in this process's view, in no particular order. visit
// must not modify its argument, keep it without [Approval.Clone], or call the ledger.
func (l *Ledger) Each(of schema.Tenants, visit func(*Approval)) {
	l.view.visit(false, func(a *Approval) {
		if of.Include(a.Binding.Tenant) {
			visit(a)
		}
	})
}

// EachUnended calls visit with every approval of these tenants that waits or runs, in no particular order. visit
// must not modify its argument, or pass it on without [Approval.Clone]. The number of ended approvals does not
// matter.
func (l *Ledger) EachUnended(of schema.Tenants, visit func(*Approval)) {
	for _, a := range l.view.fitting(true, func(a *Approval) bool { return of.Include(a.Binding.Tenant) }) {
		visit(a)
	}
}

// EachPending calls visit with every pending approval of these tenants, oldest first. visit must not modify
// its argument, or pass it on without [Approval.Clone]: approvals are not copied, so that iterating over
// very many is cheap.
func (l *Ledger) EachPending(of schema.Tenants, visit func(*Approval)) {
	found := l.view.fitting(true, func(a *Approval) bool { return a.State == Pending && of.Include(a.Binding.Tenant) })
	slices.SortFunc(found, func(a, b *Approval) int { return CursorOf(a).Compare(CursorOf(b)) })
	for _, a := range found {
		visit(a)
	}
}

func cloned(all []*Approval) []*Approval {
	for i, a := range all {
		all[i] = a.Clone()
	}
	return all
}

// fitting returns the approvals for which fit returns true, or only those of them that have not ended.
func (v *view) fitting(unended bool, fit func(*Approval) bool) (found []*Approval) {
	v.visit(unended, func(a *Approval) {
		if fit(a) {
			found = append(found, a)
		}
	})
	return found
}

// visit calls f with all approvals, or with those that have not ended. f must not call the view.
func (v *view) visit(unended bool, f func(*Approval)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if unended {
		for _, a := range v.unended {
			f(a)
		}
		return
	}
	for _, r := range v.rows {
		f(r.a)
	}
}
