package batch

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/pkg/schema"
)

// Status is the state of a durable call.
type Status struct {
	CallID schema.CallID
	Batch  schema.BatchID // "" for a single call
	Index  uint64
	State  schema.State
	Call   *journal.CallRecord
	// Result is set once the call has ended.
	Result *journal.ResultRecord
	// InputRequest is the result by which the server requested input at Asked, while the
	// call is suspended. Round counts the requests from 1. Head is the latest call of the
	// conversation; see [Calls.Answer].
	InputRequest []byte
	Asked        time.Time
	Round        int
	Head         schema.CallID
	head         *journal.CallRecord
	lost         bool // its record is lost
	ended        bool // its journal has ended
	// Principal is the requester.
	Principal schema.Principal
}

// Ended reports whether there is a result.
func (s *Status) Ended() bool { return s.Result != nil }

// finder reads the state of a durable call, from the journal that runs here or from the store. It
// is safe for concurrent use.
type finder struct {
	o    *Options
	ids  *IDs
	jobs *jobs
}

// lookFor limits the wait for the result of a call whose journal has ended, because a replica may
// be behind.
const lookFor = 2 * time.Second

// standing returns the state of one call of a conversation, without the calls that follow it.
func (f *finder) standing(ctx context.Context, id schema.CallID, who schema.Principal, wait time.Duration) (*Status, error) {
	s, err := f.find(ctx, id, who)
	if err != nil {
		return nil, err
	}
	if s.Call != nil && s.Call.Method == methodAnswers {
		// The record is its own result: the remaining input request is open from the moment
		// the answer is stored, not from when the job reads the record.
		s.Result = &journal.ResultRecord{
			Index: s.Index, CallID: id, Tenant: s.Principal.Tenant, Outcome: journal.Succeeded, Input: true,
			Ended: s.Call.Accepted, Body: s.Call.Arguments, BodyObject: s.Call.ArgumentsObject,
		}
		return s.withResultState(), nil
	}
	if it := f.local(s); it != nil {
		if s.State = schema.StateQueued; it.begun.Load() {
			s.State = schema.StateRunning
		}
		if it.waits.Load() {
			s.State = schema.StateHeld
		}
		s.Result = over(ctx, it, wait)
		return s.withResultState(), nil
	}
	if s.Result, err = f.o.Store.FindResult(ctx, who.Tenant, journalOf(s), s.Index, journal.Cursor{}); err == nil || schema.KindOf(err) != schema.KindNotFound {
		return s.withResultState(), err
	}
	if s.lost {
		s.Result = new(lostResult(id, s.Index))
		return s.withResultState(), nil
	}
	if s.State = schema.StateQueued; f.isHeld(ctx, who.Tenant, id) {
		s.State = schema.StateHeld
	}
	if s.ended {
		wait = max(wait, lookFor) // its result exists or existed, so the wait is short
	}
	if wait <= 0 {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.Result, err = f.awaitResult(ctx, who.Tenant, id)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return s.withResultState(), err
}

func (s *Status) withResultState() *Status {
	if s.Result != nil {
		s.State = StateOf(s.Result.Outcome)
	}
	return s
}

// StateOf returns the state of a call with the given outcome.
func StateOf(o journal.Outcome) schema.State {
	if o == journal.Dead {
		return schema.StateFailed
	}
	return schema.State(o.String())
}

// ErrorOf returns the error of a durable call that did not succeed.
func ErrorOf(id schema.CallID, r *journal.ResultRecord) *schema.Error {
	e := &schema.Error{}
	if json.Unmarshal(r.Error, e) != nil || e.Kind == "" {
		e = schema.Errorf(schema.KindInternal, "The call ended as %s, and its error cannot be read.", r.Outcome)
	}
	return e.WithCall(id)
}

func journalOf(s *Status) schema.BatchID {
	id, _, _ := ParseCallID(s.CallID)
	return id
}

// over waits for the end of a call that runs here.
func over(ctx context.Context, it *item, wait time.Duration) *journal.ResultRecord {
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-it.over:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	select {
	case <-it.over:
		return it.result
	default:
		return nil
	}
}

// owner returns the principal of a call of these tenants, or KindNotFound.
func (f *finder) owner(ctx context.Context, of schema.Tenants, id schema.CallID) (schema.Principal, error) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return schema.Principal{}, noCall(id)
	}
	m, err := journal.Find(ctx, f.o.Store, of, journalID)
	if err != nil {
		return schema.Principal{}, err
	}
	who := m.Principal
	if m.Kind == journal.Lane {
		c, err := f.o.Store.FindCall(ctx, of, journalID, index)
		if err != nil {
			return schema.Principal{}, err
		}
		who = c.Principal
	}
	if _, _, ok := f.ids.Find(id, who.Name); !ok || !of.Include(who.Tenant) {
		return schema.Principal{}, noCall(id)
	}
	return who, nil
}

func noCall(id schema.CallID) error {
	return schema.Errorf(schema.KindNotFound, "There is no call %q, or it has been deleted.", id)
}

// find reads the call and checks that it belongs to the principal.
func (f *finder) find(ctx context.Context, id schema.CallID, who schema.Principal) (*Status, error) {
	none := noCall(id)
	journalID, index, ok := f.ids.Find(id, who.Name)
	if !ok && f.lostID(id) {
		return nil, journal.LostCall(id)
	}
	if !ok {
		return nil, none // without disclosing whether there is such a call
	}
	m, err := f.o.Store.Get(ctx, who.Tenant, journalID)
	if schema.KindOf(err) == schema.KindNotFound {
		if f.o.lostBefore(journalID) {
			return nil, journal.LostCall(id)
		}
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	if m.Forgotten {
		// The id contains only the principal's name. The record with the tenant is deleted.
		if m.Kind == journal.Lane && m.LaneTenant.Is(who.Tenant) || m.Kind == journal.Batch && m.Principal.Same(&who) {
			return nil, journal.ForgottenCall(id)
		}
		return nil, none
	}
	s := &Status{CallID: id, Head: id, Index: index, Principal: m.Principal, ended: m.State == journal.Ended}
	if m.Kind == journal.Batch {
		s.Batch = m.ID
	}
	s.Call, err = f.findCall(ctx, who.Tenant, m, index)
	_, lost := gapOf(err)
	switch {
	case lost && m.Kind == journal.Lane: // its principal is lost too
		return nil, journal.LostCall(id)
	case lost:
		s.lost = true
	case schema.KindOf(err) == schema.KindNotFound:
		if m.Kind == journal.Lane || !m.Purged {
			return nil, none
		}
	case err != nil:
		return nil, err
	case s.Call.Principal.Name != "":
		s.Principal = s.Call.Principal
	}
	if !s.Principal.Same(&who) {
		return nil, none
	}
	return s, nil
}

// findCall reads a call. The call is lost if the journal counts it and the log does not have it.
// The number of calls is unknown for a journal that was not sealed before a loss.
func (f *finder) findCall(ctx context.Context, tenant schema.TenantID, m *journal.Manifest, index uint64) (*journal.CallRecord, error) {
	c, err := f.o.Store.FindCall(ctx, schema.OnlyTenant(tenant), m.ID, index)
	counted := !f.o.lost(m) || !m.Sealed.IsZero() && m.Sealed.Before(f.o.LostBefore)
	if schema.KindOf(err) != schema.KindNotFound || m.Purged || counted && index >= m.Calls {
		return c, err
	}
	stored, again := f.o.Store.Accepted(ctx, tenant, m.ID)
	if again != nil {
		return nil, again
	}
	if stored > index {
		return nil, err // only a replica does not have it yet
	}
	return nil, &journal.GapError{Journal: m.ID, First: index, Next: index + 1}
}

// local returns the call if it is in progress or held here.
func (f *finder) local(s *Status) *item {
	j := f.jobs.find(journalOf(s))
	if j == nil {
		return nil
	}
	return j.l.calls.find(s.Index)
}

func (f *finder) isHeld(ctx context.Context, tenant schema.TenantID, id schema.CallID) bool {
	a, _, err := f.o.Ledger.ByCall(ctx, schema.OnlyTenant(tenant), id)
	return err == nil && !a.State.Ended()
}

// awaitResult waits for the result of a call of the tenant.
func (f *finder) awaitResult(ctx context.Context, tenant schema.TenantID, id schema.CallID) (*journal.ResultRecord, error) {
	journalID, index, ok := ParseCallID(id)
	if !ok {
		return nil, schema.Errorf(schema.KindNotFound, "There is no call %q.", id)
	}
	found, err := f.o.Store.WaitResult(ctx, tenant, journalID, index)
	if schema.KindOf(err) == schema.KindNotFound {
		err = schema.Errorf(schema.KindNotFound, "The result of call %q has been deleted.", id)
	}
	return found, err
}

// lostID reports whether an id may have been issued before a loss, with a secret that is lost too.
func (f *finder) lostID(id schema.CallID) bool {
	journalID, _, ok := ParseCallID(id)
	if !ok || !f.o.lostBefore(journalID) {
		return false
	}
	made, _ := schema.IDTime(string(journalID))
	return made.Before(f.o.Store.SecretMade())
}
