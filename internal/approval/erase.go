package approval

import (
	"context"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// EndTenant withdraws every held call of a tenant that is being deleted, and removes its
// standing permissions. running is the number of approved calls that are running; they end on
// their own. A call that ends in the meantime is not an error.
func (d *Desk) EndTenant(ctx context.Context, tenant schema.TenantID) (ended, running, permissions int, err error) {
	of, book := schema.OnlyTenant(tenant), d.records.ledger
	for _, open := range book.Where(of, func(a *ledger.Approval) bool { return !a.State.Ended() }) {
		if open.State == ledger.Running {
			running++
			continue
		}
		_, err = d.records.change(ctx, tenant, open.ID, nil, func(a *ledger.Approval) error {
			if a.State == ledger.Running || a.State.Ended() {
				return schema.Errorf(schema.KindConflict, "It has begun.")
			}
			a.State = ledger.Canceled
			return nil
		})
		switch schema.KindOf(err) {
		case "":
			ended++
		case schema.KindConflict:
			running++ // it has ended, or will
		default:
			return ended, running, 0, err
		}
	}
	for _, p := range book.Permissions(of) {
		if err := book.ForgetPermission(ctx, tenant, p.ID); err != nil {
			return ended, running, permissions, err
		}
		permissions++
	}
	return ended, running, permissions, nil
}
