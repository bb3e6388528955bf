package calls

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// toldWithin is how old the end of a held call may be that its callback is told of late.
const toldWithin = 24 * time.Hour

// untold says that the callback of a held call has not been told of its end.
func untold(a *ledger.Approval) bool {
	return a.CallbackURL != "" && a.State.Ended() && a.Told.IsZero()
}

// WatchCallbacks calls ended, which must not block, with each held call that ends and
// whose callback is to be told; stop ends that. The id is for [Calls.TellCallback]. Every
// front door sees every end. Calls must be able to hold calls.
func (c *Calls) WatchCallbacks(ended func(id schema.ApprovalID)) (stop func()) {
	return c.o.Ledger.Watch(schema.AllTenants(), func(a *ledger.Approval) {
		if untold(a) {
			ended(a.ID)
		}
	})
}

// DueCallbacks returns the held calls that ended at least the time after ago and whose
// callbacks nobody has told yet; those that ended a day ago or earlier are left out.
func (c *Calls) DueCallbacks(after time.Duration) (ids []schema.ApprovalID) {
	for _, a := range c.o.Ledger.Where(schema.AllTenants(), func(a *ledger.Approval) bool {
		return untold(a) && time.Since(a.Ended) > after && time.Since(a.Ended) < toldWithin
	}) {
		ids = append(ids, a.ID)
	}
	return ids
}

// TellCallback has send tell the callback URL how a held call ended, unless it was told,
// and stores that it was. Several front doors may tell at once: what send makes of a
// status must be the same each time.
func (c *Calls) TellCallback(ctx context.Context, id schema.ApprovalID, send func(s *Status, url string) error) error {
	a, _, err := c.o.Ledger.Get(ctx, schema.AllTenants(), id)
	if err != nil {
		return err
	}
	if !a.Told.IsZero() {
		return nil
	}
	if err := send(OfApproval(a), a.CallbackURL); err != nil {
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
		return nil // another front door stored it
	}
	return err
}
