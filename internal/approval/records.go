package approval

import (
	"context"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// records changes approvals and permissions in the ledger, and writes each step down in
// the audit record. It is safe for concurrent use.
type records struct {
	ledger   *ledger.Ledger
	audit    *audit.Log // nil: nothing is written down
	signer   func(*ledger.Approval) ([]byte, error)
	now      func() time.Time
	patience *patience
	log      *slog.Logger
}

// change is [ledger.Ledger.Change] with the end of the approval and the audit
// record looked after. result is that of the call, nil for none.
func (r *records) change(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, result []byte, f func(*ledger.Approval) error) (*ledger.Approval, error) {
	var was ledger.Approval
	is, err := r.ledger.End(ctx, tenant, id, result, func(a *ledger.Approval) error {
		was = *a
		return r.closing(f)(a)
	})
	if err != nil {
		return nil, err
	}
	r.tell(ctx, &was, is)
	return is, nil
}

// closing notes when an approval ends by f.
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

// sign makes the warrant of an approval that has just become approved, or runs at
// once.
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
	return r.patience.over(string(a.ID), a.Created, a.Expires, r.now())
}

// wall is the time as records have it.
func (r *records) wall() time.Time { return r.now().UTC().Round(0) }

// permissionOver reports whether the permission has expired.
func (r *records) permissionOver(p *ledger.Permission) bool {
	return r.patience.over(p.ID, p.Given, p.Until, r.now())
}

// tell writes down what happened between two versions of a record; was is nil
// where there was none.
func (r *records) tell(ctx context.Context, was, is *ledger.Approval) {
	if r.audit == nil {
		return
	}
	told := map[line]bool{}
	if was != nil {
		for _, e := range history(was) {
			told[lineOf(&e)] = true
		}
	}
	for _, e := range history(is) {
		if !told[lineOf(&e)] {
			r.write(ctx, e)
		}
	}
}

func (r *records) tellPermission(ctx context.Context, p *ledger.Permission) {
	if r.audit != nil {
		all := permissionHistory(p)
		r.write(ctx, all[len(all)-1])
	}
}

// write queues one entry. The caller's end must not keep it from being written.
func (r *records) write(ctx context.Context, e audit.Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendWait)
	defer cancel()
	if err := r.audit.Append(ctx, e); err != nil {
		r.log.Error("an audit line could not be written; it will be restored from the approval's record", "kind", e.Kind, "approval_id", e.ApprovalID, "error", err)
	}
}
