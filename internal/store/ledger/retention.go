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

// The text of people, callers and servers about a held call is deleted after the retention period of its
// tenant. The record is not removed. It is replaced by one that contains only the ids, the state and the
// times of the call, and is treated as nonexistent. So a process with a stale view cannot write to it as
// if it did not exist, and the call remains ended. The order is:
//
//  1. The state is replaced, by compare-and-set. From then on the record is forgotten.
//  2. The parts are emptied: edited arguments, large results and definitions.
//  3. The opening is replaced, with the arguments and the definition in it.
//
// A process that finds a forgotten state but not the last step resumes there. No role may purge the
// ledger, and none needs to for this.

// due is an approval with an opening to delete, of a tenant with a retention.
type due struct {
	tenant schema.TenantID
	ended  time.Time // zero if it has not ended
}

// noteLocked records whether data of an approval must be deleted at some time.
func (v *view) noteLocked(a *Approval, revision uint64) {
	tenant := a.Binding.Tenant
	if v.retention.Within(tenant, v.maxAge) == 0 {
		return
	}
	_, opened := v.due[a.ID]
	switch {
	case a.Forgotten && revision == 0:
		delete(v.due, a.ID) // everything is deleted
	case !a.Forgotten, opened:
		v.due[a.ID] = due{tenant, a.Ended}
	}
}

// overdue returns the approvals to delete at a time.
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

// drop removes an approval from the list of approvals to delete.
func (v *view) drop(id schema.ApprovalID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.due, id)
}

// removeLocked removes a forgotten approval from the view.
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
	delete(v.unended, id)
}

// Payloads deletes held calls after their retention period. It is safe for concurrent use.
type Payloads struct{ l *Ledger }

// Forgets reports whether the data of a call of the tenant that was held at the given time may have been
// deleted by now, because its retention period has ended.
func (p *Payloads) Forgets(tenant schema.TenantID, held, now time.Time) bool {
	return p.l.view.retention.Over(tenant, held, now)
}

// Forget deletes the data of held calls that have ended and whose retention period has ended at a time. It
// skips calls for which needed returns true. It is idempotent and may run in several processes
// concurrently. The process must have set [Options.Retention].
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
		l.view.drop(id) // it expired
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
		return nil // the view differs from the leader
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

// forgetState replaces the record, and returns the new one.
func (p *Payloads) forgetState(ctx context.Context, a *Approval, revision uint64) (*Approval, error) {
	l := p.l
	a = forgotten(a)
	head, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encoding the approval: %w", err)
	}
	at, err := l.store.replace(ctx, a.ID, head, nil, revision)
	if err != nil {
		return nil, err // a concurrent write, or unknown; retried next time
	}
	l.view.put(a, at, at)
	return a, nil
}

// forgotten returns the record that replaces a.
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

// forgetOpening replaces the opening of a forgotten record. It is the last step and marks that nothing is
// left to delete.
func (r *Records) forgetOpening(ctx context.Context, a *Approval) error {
	head, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the approval: %w", err)
	}
	_, err = r.records.Put(ctx, bus.Message{Subject: openingOf(a.ID), Record: head})
	return err
}

// retentionView is the part of a view for retentions.
type retentionView struct {
	retention retention.Periods
	maxAge    time.Duration // retention of records in the ledger
	due       map[schema.ApprovalID]due
}
