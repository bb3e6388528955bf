package approval

import (
	"context"

	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// change is [ledger.Ledger.Change] with the end of the approval and the audit
// record looked after. result is that of the call, nil for none.
func (d *Desk) change(ctx context.Context, id string, result []byte, f func(*ledger.Approval) error) (*ledger.Approval, error) {
	var was ledger.Approval
	is, err := d.ledger.End(ctx, id, result, func(a *ledger.Approval) error {
		was = *a
		return d.closing(f)(a)
	})
	if err != nil {
		return nil, err
	}
	d.tell(ctx, &was, is)
	return is, nil
}

// closing notes when an approval ends by f.
func (d *Desk) closing(f func(*ledger.Approval) error) func(*ledger.Approval) error {
	return func(a *ledger.Approval) error {
		was := a.State
		err := f(a)
		if err == nil && a.State != was && a.State.Ended() {
			a.Ended = d.wall()
		}
		return err
	}
}

// sign makes the warrant of an approval that has just become approved, or runs at
// once.
func (d *Desk) sign(a *ledger.Approval) error {
	if d.signer == nil {
		return nil
	}
	warrant, err := d.signer(a)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The approval could not be signed, so it does not count; see the key that signs. (%w)", err).WithCall(a.CallID)
	}
	a.Warrant = warrant
	return nil
}
