package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/batch"
	"github.com/callyard/callyard/internal/calls/records"
	"github.com/callyard/callyard/internal/kit/sleep"
	"github.com/callyard/callyard/internal/store/journal"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Get returns the status of a call of the principal. Errors: KindNotFound for a call that does
// not exist, is no longer stored, or belongs to another principal; KindOutcomeUnknown for a call
// whose records were lost with a damaged data folder; KindUnavailable.
func (c *Calls) Get(ctx context.Context, id schema.CallID, who schema.Principal) (*Status, error) {
	return c.wait(ctx, id, who, 0, false)
}

// Wait is Get, but waits until the call has ended, d has passed or ctx ends.
func (c *Calls) Wait(ctx context.Context, id schema.CallID, who schema.Principal, d time.Duration) (*Status, error) {
	return c.wait(ctx, id, who, d, false)
}

// WaitSuspended is Wait, but also returns if the call is suspended.
func (c *Calls) WaitSuspended(ctx context.Context, id schema.CallID, who schema.Principal, d time.Duration) (*Status, error) {
	return c.wait(ctx, id, who, d, true)
}

// Durable reports whether the id is that of a durable or batch call. Only it parses ids.
func Durable(id schema.CallID) bool {
	_, _, ok := batch.ParseCallID(id)
	return ok
}

// OwnerOf returns the front door that owns, or last owned, the journal of a durable call, and whether the
// journal has ended; see [journal.Owner].
func OwnerOf(s *journal.Store, id schema.CallID) (frontDoor string, ended bool) {
	of, _, ok := batch.ParseCallID(id)
	if !ok {
		return "", false
	}
	return journal.Owner(s, schema.AllTenants(), of)
}

// stored reports whether the call is in a journal.
func (c *Calls) stored(id schema.CallID) bool { return Durable(id) && c.o.Durable != nil }

func (c *Calls) wait(ctx context.Context, id schema.CallID, who schema.Principal, d time.Duration, suspended bool) (*Status, error) {
	if c.stored(id) {
		return c.waitStored(ctx, id, who, d, suspended)
	}
	a, err := c.waitApproval(ctx, id, who, d)
	if schema.KindOf(err) == schema.KindNotFound && c.o.ApprovalLost != nil && c.o.ApprovalLost(id) {
		err = c.neverHeld(ctx, id, who)
	}
	switch {
	case schema.KindOf(err) == schema.KindNotFound && c.o.Records != nil:
		return recorded(ctx, c.o.Records, id, who, err)
	case err != nil:
		return nil, err
	}
	return OfApproval(a), nil
}

// suspendedPoll is the poll interval of waiters for a suspended call. Nothing announces that the
// call was resumed.
const suspendedPoll = 500 * time.Millisecond

func (c *Calls) waitStored(ctx context.Context, id schema.CallID, who schema.Principal, d time.Duration, suspended bool) (*Status, error) {
	until := time.Now().Add(d)
	for {
		b, err := c.o.Durable.Calls.Status(ctx, id, who, max(time.Until(until), 0))
		if err != nil {
			return nil, err
		}
		if b.State != schema.StateSuspended || suspended || time.Until(until) <= 0 {
			return ofStored(b), nil
		}
		if !sleep.For(min(suspendedPoll, time.Until(until)), ctx.Done()) {
			return ofStored(b), nil
		}
	}
}

// waitApproval waits until a held call of the principal has ended or d has passed, and returns
// its approval.
func (c *Calls) waitApproval(ctx context.Context, id schema.CallID, who schema.Principal, d time.Duration) (*ledger.Approval, error) {
	none := schema.Errorf(schema.KindNotFound, "You have no held or durable call %q.", id)
	if c.o.Ledger == nil || id == "" || len(id) > maxID {
		return nil, none
	}
	changed := make(chan struct{}, 1)
	if d > 0 {
		defer c.o.Ledger.WatchOne(schema.OnlyTenant(who.Tenant), ledger.IDFor(id), func(*ledger.Approval) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})()
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		a, err := latest(ctx, c.o.Ledger, schema.OnlyTenant(who.Tenant), id)
		switch {
		case schema.KindOf(err) == schema.KindNotFound, err == nil && !a.Binding.Of(&who):
			return nil, none // same answer as for a call that does not exist
		case err != nil || a.State.Ended() || d <= 0:
			return a, err
		}
		select {
		case <-changed:
		case <-over.C:
			d = 0
		case <-ctx.Done():
			return nil, schema.Errorf(schema.KindCanceled, "The caller disconnected.")
		}
	}
}

// latest returns the approval of a call. A replica may not have its end yet, which is announced only once.
func latest(ctx context.Context, book *ledger.Ledger, of schema.Tenants, id schema.CallID) (*ledger.Approval, error) {
	a, _, err := book.ByCall(ctx, of, id)
	if err == nil && !a.State.Ended() {
		if known, knownErr := book.Known(ctx, of, a.ID); knownErr == nil && known.State.Ended() {
			return known.Clone(), nil
		}
	}
	return a, err
}

// maxID exceeds the length of every call id, in bytes.
const maxID = 256

// neverHeld is for calls from before a loss of approvals. It returns KindNotFound if the
// call records prove that the call was not held, else an error for a lost record.
func (c *Calls) neverHeld(ctx context.Context, id schema.CallID, who schema.Principal) error {
	if c.o.Records != nil {
		rec, err := c.o.Records.Get(ctx, schema.OnlyTenant(who.Tenant), id)
		if err == nil && (rec.Principal != who.Name || rec.State != schema.StateHeld && rec.Approval == "") {
			return schema.Errorf(schema.KindNotFound, "You have no held or durable call %q.", id)
		}
		if err != nil && schema.KindOf(err) != schema.KindNotFound {
			return err
		}
	}
	return journal.LostCall(id)
}

// recorded returns the status of a call that only the call records have, or the error none.
func recorded(ctx context.Context, log *records.Recorder, id schema.CallID, who schema.Principal, none error) (*Status, error) {
	rec, err := log.Get(ctx, schema.OnlyTenant(who.Tenant), id)
	switch {
	case schema.KindOf(err) == schema.KindNotFound, err == nil && rec.Principal != who.Name:
		return nil, none
	case err != nil:
		return nil, err
	}
	return ofRecord(rec), nil
}

// Watch calls changed after each change of a held call of the tenant, until stop is called.
// changed must not block. If announced is false, changes of the call are not announced and the
// caller must poll. Watch does not check which principal owns the call.
func (c *Calls) Watch(tenant schema.TenantID, id schema.CallID, changed func()) (announced bool, stop func()) {
	if c.o.Ledger == nil {
		return false, func() {}
	}
	return !c.stored(id), c.o.Ledger.WatchOne(schema.OnlyTenant(tenant), ledger.IDFor(id), func(*ledger.Approval) { changed() })
}

// Filter selects call records.
type Filter = records.Filter

// View is a call record as the API returns it.
type View = records.View

// ViewError is the reason why a call has no result.
type ViewError = records.ViewError

// Page is a page of call records.
type Page = records.Page

// List returns a page of call records, newest first. It selects calls of the
// given tenants that match the filter; if the filter names no principals, calls of all principals
// match. It returns at most limit calls, starting at the cursor of the previous page. A page may be
// short and still have a next cursor. List does not check permissions; its caller must. Errors:
// KindInvalidRequest for a bad state or cursor; KindUnavailable.
func (c *Calls) List(ctx context.Context, of schema.Tenants, f Filter, cursor string, limit int) (Page, error) {
	if of == (schema.Tenants{}) { // no tenants: nothing to read
		return Page{Calls: []View{}}, nil
	}
	found, next, err := c.o.Records.List(ctx, of, f, cursor, limit)
	if err != nil {
		return Page{}, err
	}
	page := Page{Calls: make([]View, 0, len(found)), Next: next}
	for i := range found {
		page.Calls = append(page.Calls, found[i].View())
	}
	return page, nil
}
