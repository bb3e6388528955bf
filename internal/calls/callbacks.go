package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// maxCallbackAge is the maximum time since the end of a held call at which a late callback is
// still delivered.
const maxCallbackAge = 24 * time.Hour

// callbackDue reports whether a held call has ended and its callback has not been delivered.
func callbackDue(a *ledger.Approval) bool {
	return a.CallbackURL != "" && a.State.Ended() && a.Told.IsZero()
}

// WatchCallbacks calls ended for each held call that ends with an undelivered callback, until
// stop is called. ended must not block; pass its id to [Calls.TellCallback]. Every front door
// sees every end. Calls must be able to hold calls.
func (c *Calls) WatchCallbacks(ended func(id schema.ApprovalID)) (stop func()) {
	return c.o.Ledger.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if callbackDue(a) {
			ended(a.ID)
		}
	})
}

// DueCallbacks returns the held calls with undelivered callbacks that ended more than after
// ago, but less than a day ago.
func (c *Calls) DueCallbacks(after time.Duration) (ids []schema.ApprovalID) {
	for _, a := range c.o.Ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool {
		return callbackDue(a) && time.Since(a.Ended) > after && time.Since(a.Ended) < maxCallbackAge
	}) {
		ids = append(ids, a.ID)
	}
	return ids
}

// TellCallback sends the final status of a held call to its callback URL with send, unless it was
// delivered before, and records the delivery. Several front doors may send at the same time, so
// send must produce the same request for the same status.
func (c *Calls) TellCallback(ctx context.Context, id schema.ApprovalID, send func(s *Status, url string) error) error {
	a, err := c.o.Ledger.Known(ctx, schema.AllTenants(), id) // a replica may not have its end yet
	if err != nil {
		return err
	}
	if !callbackDue(a) {
		return nil
	}
	if err := send(OfApproval(a.Clone()), a.CallbackURL); err != nil {
		return err
	}
	_, err = c.o.Ledger.Change(ctx, a.Binding.Tenant, id, func(a *ledger.Approval) error {
		if !a.Told.IsZero() {
			return schema.Errorf(schema.KindConflict, "It was delivered in the meantime.")
		}
		a.Told = time.Now().UTC()
		return nil
	})
	if schema.KindOf(err) == schema.KindConflict {
		return nil // another front door recorded the delivery
	}
	return err
}
