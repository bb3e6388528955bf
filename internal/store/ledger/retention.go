package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/tenants/retention"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/schema"
)

// What people, callers and servers said of a call that was held is forgotten when the retention
// of its tenant has ended. Its record is not removed: it is replaced by one that says which call
// it was, that this has ended, and nothing else, and counts like none. So nobody whose view is
// old writes to it as if nobody had been faster, and the call stays ended whatever happens in
// between. The order is:
//
//  1. The state is replaced, by compare-and-set. From then on the record is forgotten.
//  2. The parts are emptied: edited arguments, large results and definitions.
//  3. The opening is replaced, with the arguments and the definition in it.
//
// Whoever finds a forgotten state and another opening continues there. No role may purge the
// ledger, and none needs to for this.

// due is an approval whose opening is there, of a tenant with a retention.
type due struct {
	tenant schema.TenantID
	ended  time.Time // zero: it has not ended
}

// noteLocked notes what is to be forgotten of a record some day.
func (v *view) noteLocked(a *Approval, revision uint64) {
	tenant := a.Binding.Tenant
	if v.retention.Within(tenant, v.maxAge) == 0 {
		return
	}
	_, opened := v.due[a.ID]
	switch {
	case a.Forgotten && revision == 0:
		delete(v.due, a.ID) // nothing is left
	case !a.Forgotten, opened:
		v.due[a.ID] = due{tenant, a.Ended}
	}
}

// overdue returns the approvals that are to be forgotten at a time.
func (v *view) overdue(now time.Time) (ids []schema.ApprovalID) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for id, d := range v.due {
		if v.retention.Over(d.tenant, d.ended, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// drop forgets that an approval is to be forgotten.
func (v *view) drop(id schema.ApprovalID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.due, id)
}

// removeLocked takes an approval that was forgotten out of the view.
func (v *view) removeLocked(id schema.ApprovalID) {
	v.releaseLocked(id)
	r, ok := v.rows[id]
	if !ok {
		return
	}
	if !r.a.State.Ended() {
		v.countLocked(r.a, -1)
	}
	v.argBytes -= len(r.args)
	delete(v.rows, id)
}

// Payloads forgets held calls whose retention has ended. It is safe for concurrent use.
type Payloads struct{ l *Ledger }

// Forgets reports whether what is known of a call of the tenant that was held at a time may be
// forgotten by now, because its retention has ended.
func (p *Payloads) Forgets(tenant schema.TenantID, held, now time.Time) bool {
	return p.l.view.retention.Over(tenant, held, now)
}

// Forget forgets the calls that were held, have ended, and of which the retention has ended at a
// time. Those for which needed is true are left for later. It may be repeated, also by several
// processes at once. The process must have [Options.Retention].
func (p *Payloads) Forget(ctx context.Context, now time.Time, needed func(context.Context, *Approval) (bool, error)) error {
	var all []error
	for _, id := range p.l.view.overdue(now) {
		if ctx.Err() != nil {
			break
		}
		bounded, cancel := context.WithTimeout(ctx, forgetTimeout)
		err := p.forgetOne(bounded, id, now, needed)
		cancel()
		if err != nil {
			all = append(all, fmt.Errorf("approval %s: %w", id, err))
		}
	}
	return errors.Join(all...)
}

func (p *Payloads) forgetOne(ctx context.Context, id schema.ApprovalID, now time.Time, needed func(context.Context, *Approval) (bool, error)) error {
	l := p.l
	r, err := l.store.get(ctx, id, bus.Leader)
	if errors.Is(err, bus.ErrNotFound) {
		l.view.drop(id) // it grew too old
		return nil
	}
	if err != nil {
		return err
	}
	a, err := decode(r.Head)
	switch {
	case err != nil:
		return err
	case a.Forgotten:
	case !a.State.Ended(), !l.view.retention.Over(a.Binding.Tenant, a.Ended, now):
		return nil // the view is behind, or ahead of the leader's
	default:
		if keep, err := needed(ctx, a); keep || err != nil {
			return err
		}
		if a, err = p.forgetState(ctx, a, r.Revision); err != nil {
			return err
		}
	}
	if err := l.store.forgetParts(ctx, id); err != nil {
		return err
	}
	if err := l.store.forgetOpening(ctx, a); err != nil {
		return err
	}
	l.view.drop(id)
	return nil
}

// forgetState replaces the record, and returns what it is from then on.
func (p *Payloads) forgetState(ctx context.Context, a *Approval, revision uint64) (*Approval, error) {
	l := p.l
	a = forgotten(a)
	head, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encoding the approval: %w", err)
	}
	at, err := l.store.replace(ctx, a.ID, head, nil, revision)
	if err != nil {
		return nil, err // somebody wrote to it, or nobody knows: the next time tells
	}
	l.view.put(a, at, at)
	return a, nil
}

// forgotten is the record of a call that is forgotten.
func forgotten(a *Approval) *Approval {
	return &Approval{
		ID: a.ID, CallID: a.CallID, State: a.State, Binding: Binding{CallID: a.CallID, ApprovalID: a.ID, Tenant: a.Binding.Tenant},
		Created: a.Created, Expires: a.Expires, Ended: a.Ended, Forgotten: true,
	}
}

// forgetParts empties the parts of a record.
func (r *Records) forgetParts(ctx context.Context, id schema.ApprovalID) error {
	subjects, err := r.records.Subjects(ctx, bus.SubjectPart+bus.Token(id)+".>")
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		if _, err := r.records.Put(ctx, bus.Message{Subject: subject}); err != nil {
			return err
		}
	}
	return r.purgeHeld(ctx, id)
}

// forgetOpening replaces the opening of a record that is forgotten. It comes last: it says that
// nothing is left.
func (r *Records) forgetOpening(ctx context.Context, a *Approval) error {
	head, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the approval: %w", err)
	}
	_, err = r.records.Put(ctx, bus.Message{Subject: openingOf(a.ID), Record: head})
	return err
}

// retains is what a view has to know of retentions.
type retains struct {
	retention retention.Periods
	maxAge    time.Duration // how long the ledger keeps records
	due       map[schema.ApprovalID]due
}
