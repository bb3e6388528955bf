package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Payloads of a journal are forgotten when the retention of its tenant has ended. The manifest
// stays, and says so: it is marked first, so that nobody claims the journal or misses its
// records from then on, and again when nothing is left. Who finds one with the first mark
// alone continues there.

// errMarked says that a manifest says already what it is to say.
var errMarked = errors.New("the manifest is marked")

// ForgottenCall is the answer for a call whose payloads are gone with the retention of its tenant.
func ForgottenCall(id schema.CallID) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "The arguments and the result of call %s have been deleted, because the retention of its tenant has ended.", id).WithCall(id)
}

// ForgottenKey is the answer for a request under an idempotency key that stands for such a call.
func ForgottenKey(id schema.CallID) *schema.Error {
	return schema.Errorf(schema.KindNotFound, "A call was accepted under this Idempotency-Key, and its result has been deleted, because the retention of its tenant has ended. It is not run again; use a new key to run it.").WithCall(id)
}

// payloadsOf returns the tenant whose payloads the journal has; ok is false for a lane that
// several tenants share.
func (m *Manifest) payloadsOf() (tenant schema.TenantID, ok bool) {
	if m.Kind == Lane {
		return m.LaneTenant, m.LaneTenant != ""
	}
	return m.Principal.Tenant, true
}

// Payloads forgets the payloads of journals whose retention has ended. It is safe for concurrent
// use.
type Payloads struct{ s *Store }

// Retention is how long payloads of the tenant's calls are kept after the end of their journal; 0:
// as long as those of all tenants.
func (p *Payloads) Retention(tenant schema.TenantID) time.Duration {
	return p.s.view.retention.Within(tenant, p.s.view.keepPayloads)
}

// Overdue is a journal whose payloads are to be forgotten.
type Overdue struct {
	Tenant schema.TenantID // for [Payloads.Forget]
	ID     schema.BatchID
	Ended  time.Time
}

// Overdue returns the journals of which the retention has ended at a time and that have payloads, by
// this process's view; the oldest end first.
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
	slices.SortFunc(all, func(a, b Overdue) int { return a.Ended.Compare(b.Ended) })
	return all
}

// due is a journal that has ended, and whose payloads a retention has not taken yet.
type due struct {
	tenant, access schema.TenantID // whose payloads it has, and whose the manifest is
	ended          time.Time
}

// noteLocked notes whether the payloads of a journal are to be forgotten some day.
func (v *view) noteLocked(m *Manifest) {
	tenant, ok := m.payloadsOf()
	if !ok || m.State != Ended || m.Emptied || m.Deleted || v.retention.Within(tenant, v.keepPayloads) == 0 {
		delete(v.due, m.ID)
		return
	}
	v.due[m.ID] = due{tenant, m.Principal.Tenant, m.Ended}
}

// drop forgets that payloads of a journal of the tenant are to be forgotten.
func (v *view) drop(tenant schema.TenantID, id schema.BatchID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.due[id].access.Is(tenant) {
		delete(v.due, id)
	}
}

// Forget forgets calls, intents, results and objects of a journal of the tenant that has ended.
// Its manifest stays. It may be repeated, also by several processes at once.
func (p *Payloads) Forget(ctx context.Context, tenant schema.TenantID, id schema.BatchID) error {
	s := p.s
	_, err := s.Change(ctx, tenant, id, func(m *Manifest) error {
		switch {
		case m.State != Ended:
			return schema.Errorf(schema.KindConflict, "Journal %s is %s; its payloads can be deleted when it has ended.", id, m.State)
		case m.Forgotten:
			return errMarked
		}
		m.Purged, m.Forgotten = true, true
		return nil
	})
	if schema.KindOf(err) == schema.KindNotFound {
		s.view.drop(tenant, id) // it grew too old, or is not the tenant's
	}
	if err != nil && !errors.Is(err, errMarked) {
		return err
	}
	// Who claimed it before the mark, to settle a call, may still write to the logs.
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
	_, err = s.Change(ctx, tenant, id, func(m *Manifest) error {
		if m.Emptied {
			return errMarked
		}
		m.Emptied = true
		return nil
	})
	if errors.Is(err, errMarked) {
		return nil
	}
	return err
}
