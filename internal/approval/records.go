package approval

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// records changes approvals and permissions in the ledger and records each step in the audit
// record. It is safe for concurrent use.
type records struct {
	ledger *ledger.Ledger
	audit  *audit.Log // if nil, nothing is recorded
	signer func(*ledger.Approval) ([]byte, error)
	now    func() time.Time
	expiry *expiryClock
	log    *slog.Logger
}

// change calls [ledger.Ledger.End], sets the end time of an approval that ends, and records the
// change in the audit record. result is that of the call, or nil.
func (r *records) change(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, result []byte, f func(*ledger.Approval) error) (*ledger.Approval, error) {
	var was ledger.Approval
	is, err := r.ledger.End(ctx, tenant, id, result, func(a *ledger.Approval) error {
		was = *a
		return r.closing(f)(a)
	})
	if err != nil {
		return nil, err
	}
	r.recordChange(ctx, &was, is)
	return is, nil
}

// closing wraps f and sets the end time of the approval if f ends it.
func (r *records) closing(f func(*ledger.Approval) error) func(*ledger.Approval) error {
	return func(a *ledger.Approval) error {
		was := a.State
		err := f(a)
		if err == nil && a.State != was && a.State.Ended() {
			a.Ended = r.wall()
		}
		return err
	}
}

// sign creates the warrant of an approval that has just become approved or that runs at once.
func (r *records) sign(a *ledger.Approval) error {
	if r.signer == nil {
		return nil
	}
	warrant, err := r.signer(a)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The approval could not be signed, so it does not count; check the signing key. (%w)", err).WithCall(a.CallID)
	}
	a.Warrant = warrant
	return nil
}

// over reports whether the approval has expired.
func (r *records) over(a *ledger.Approval) bool {
	return r.expiry.over(string(a.ID), a.Created, a.Expires, r.now())
}

// wall returns the wall-clock time in the precision and zone of records.
func (r *records) wall() time.Time { return r.now().UTC().Round(0) }

// permissionOver reports whether the permission has expired.
func (r *records) permissionOver(p *ledger.Permission) bool {
	return r.expiry.over(p.ID, p.Given, p.Until, r.now())
}

// recordChange writes the audit entries for the difference between two versions of a record.
// was is nil for a new record.
func (r *records) recordChange(ctx context.Context, was, is *ledger.Approval) {
	if r.audit == nil {
		return
	}
	recorded := map[line]bool{}
	if was != nil {
		for _, e := range history(was) {
			recorded[lineOf(&e)] = true
		}
	}
	for _, e := range history(is) {
		if !recorded[lineOf(&e)] {
			r.write(ctx, e)
		}
	}
}

func (r *records) recordPermission(ctx context.Context, p *ledger.Permission) {
	if r.audit != nil {
		all := permissionHistory(p)
		r.write(ctx, all[len(all)-1])
	}
}

// write queues one entry, even if the caller's context has ended.
func (r *records) write(ctx context.Context, e audit.Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWait)
	defer cancel()
	if err := r.audit.Append(ctx, e); err != nil {
		r.log.Error("an audit line could not be written; it will be restored from the approval's record", "kind", e.Kind, "approval_id", e.ApprovalID, "error", err)
	}
}
