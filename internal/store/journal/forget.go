package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// The payloads of a journal are deleted after the retention period of its tenant. The manifest remains
// and is marked as forgotten first, so that no process claims the journal or misses its records from
// then on. It is marked as emptied after the deletion. A process that finds only the first mark
// resumes the deletion.

// errMarked means that a manifest already has the mark.
var errMarked = errors.New("the manifest is marked")

// ForgottenCall returns the error for a call whose payloads were deleted because of the retention of its
// tenant.
func ForgottenCall(id schema.CallID) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "The arguments and the result of call %s have been deleted, because the retention of its tenant has ended.", id).WithCall(id)
}

// ForgottenKey returns the error for a request with an idempotency key of such a call.
func ForgottenKey(id schema.CallID) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "A call was accepted under this Idempotency-Key, and its result has been deleted, because the retention of its tenant has ended. It is not run again; use a new key to run it.").WithCall(id)
}

// payloadsOf returns the tenant that owns the payloads of the journal. ok is false for a lane that
// several tenants share.
func (m *Manifest) payloadsOf() (tenant schema.TenantID, ok bool) {
	if m.Kind == Lane {
		return m.LaneTenant, m.LaneTenant != ""
	}
	return m.Principal.Tenant, true
}

// Payloads deletes the payloads of journals after their retention period. It is safe for concurrent
// use.
type Payloads struct{ s *Store }

// Retention returns how long payloads of the tenant's calls are kept after the end of their journal. 0
// means the same time as for all tenants.
func (p *Payloads) Retention(tenant schema.TenantID) time.Duration {
	return p.s.view.retention.Within(tenant, p.s.view.keepPayloads)
}

// Overdue is an ended journal with data to delete.
type Overdue struct {
	Tenant schema.TenantID // for [Payloads.Forget] and [Store.PurgeCalls]
	ID     schema.BatchID
	Ended  time.Time
}

// Overdue returns the journals with payloads whose retention period has ended at a time, according to
// this process's view, oldest end first.
func (p *Payloads) Overdue(now time.Time) []Overdue {
	v := p.s.view
	v.mu.RLock()
	var all []Overdue
	for id, d := range v.due {
		if v.retention.Over(d.tenant, d.ended, now) {
			all = append(all, Overdue{d.access, id, d.ended})
		}
	}
	v.mu.RUnlock()
	slices.SortFunc(all, byEnd)
	return all
}

func byEnd(a, b Overdue) int { return a.Ended.Compare(b.Ended) }

// WithCalls returns the journals that ended before a time and whose calls are not deleted yet, according
// to this process's view, oldest end first.
func (p *Payloads) WithCalls(before time.Time) []Overdue {
	v := p.s.view
	v.mu.RLock()
	var all []Overdue
	for _, o := range v.withCalls {
		if o.Ended.Before(before) {
			all = append(all, o)
		}
	}
	v.mu.RUnlock()
	slices.SortFunc(all, byEnd)
	return all
}

// due is an ended journal whose payloads will be deleted because of a retention.
type due struct {
	tenant, access schema.TenantID // owner of the payloads, and owner of the manifest
	ended          time.Time
}

// noteLocked records whether the calls and the payloads of a journal must be deleted at some time.
func (v *view) noteLocked(m *Manifest) {
	if m.State != Ended || m.CallsDeleted || m.Emptied || m.Deleted {
		delete(v.withCalls, m.ID)
	} else {
		v.withCalls[m.ID] = Overdue{m.Principal.Tenant, m.ID, m.Ended}
	}
	tenant, ok := m.payloadsOf()
	if !ok || m.State != Ended || m.Emptied || m.Deleted || v.retention.Within(tenant, v.keepPayloads) == 0 {
		delete(v.due, m.ID)
		return
	}
	v.due[m.ID] = due{tenant, m.Principal.Tenant, m.Ended}
}

// drop removes a journal of the tenant from the lists of data to delete.
func (v *view) drop(tenant schema.TenantID, id schema.BatchID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if o, ok := v.withCalls[id]; ok && o.Tenant.Is(tenant) {
		delete(v.withCalls, id)
	}
	if v.due[id].access.Is(tenant) {
		delete(v.due, id)
	}
}

// Forget deletes calls, intents, results and objects of an ended journal of the tenant. Its manifest
// remains. It is idempotent and may run in several processes concurrently.
func (p *Payloads) Forget(ctx context.Context, tenant schema.TenantID, id schema.BatchID) error {
	s := p.s
	if err := p.mark(ctx, tenant, id, "payloads", func(m *Manifest) []*bool { return []*bool{&m.Purged, &m.Forgotten} }); err != nil {
		return err
	}
	// A process that claimed it before the mark, to settle a call, may still append to the logs.
	held, revision, err := s.leases.of(ctx, id)
	switch {
	case err != nil:
		return unavailable(err)
	case revision != 0:
		return taken(id, held.Owner)
	}
	if err := errors.Join(s.logs.purge(ctx, id, LogCalls), s.logs.purge(ctx, id, LogIntents), s.logs.purge(ctx, id, LogResults), s.objects.purge(ctx, id)); err != nil {
		return unavailable(err)
	}
	return p.mark(ctx, tenant, id, "payloads", func(m *Manifest) []*bool { return []*bool{&m.Emptied} })
}

// mark sets marks of an ended journal, which say that a part of it is to be deleted, or has been. It is
// idempotent. The error is of KindConflict if the journal has not ended.
func (p *Payloads) mark(ctx context.Context, tenant schema.TenantID, id schema.BatchID, part string, marks func(*Manifest) []*bool) error {
	_, err := p.s.Change(ctx, tenant, id, func(m *Manifest) error {
		if m.State != Ended {
			return schema.Errorf(schema.KindConflict, "Journal %s is %s; its %s can be deleted when it has ended.", id, m.State, part)
		}
		set := false
		for _, mark := range marks(m) {
			set = set || !*mark
			*mark = true
		}
		if !set {
			return errMarked
		}
		return nil
	})
	if schema.KindOf(err) == schema.KindNotFound {
		p.s.view.drop(tenant, id) // expired, or of another tenant
	}
	if errors.Is(err, errMarked) {
		return nil
	}
	return err
}
