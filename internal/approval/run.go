package approval

import (
	"context"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Claim assigns an approved call of the tenant to a runner. If several runners claim it, one
// wins and the others get KindConflict. If the current policy requires more than the approval
// satisfies, the approval starts again and Claim returns KindConflict.
func (d *Desk) Claim(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, runner string) (*ledger.Approval, error) {
	switch restarted, err := d.reassessor.renew(ctx, tenant, id); {
	case restarted:
		return nil, schema.Errorf(schema.KindConflict, "Approval %s started again: the policy in force has stricter requirements.", id)
	case err != nil && schema.KindOf(err) != schema.KindForbidden: // a call that the policy denies is claimed; its runner refuses it
		return nil, err
	}
	return d.records.change(ctx, tenant, id, nil, func(a *ledger.Approval) error {
		if a.State != ledger.Approved {
			return schema.Errorf(schema.KindConflict, "Approval %s is %s, so its call cannot be claimed.", a.ID, a.State).WithCall(a.CallID)
		}
		if d.records.over(a) {
			return errConfirmationExpired(a)
		}
		a.State, a.Runner = ledger.Running, &ledger.Runner{FrontDoor: runner, Started: d.records.wall()}
		return nil
	})
}

// Cancel withdraws a call for its requester; the call never runs. Errors: KindNotFound if who
// has no such call; KindConflict if it is running or has ended.
func (d *Desk) Cancel(ctx context.Context, callID schema.CallID, who schema.Principal) (*ledger.Approval, error) {
	none := schema.Errorf(schema.KindNotFound, "You have no held call %q.", callID)
	a, err := d.records.change(ctx, who.Tenant, ledger.IDFor(callID), nil, func(a *ledger.Approval) error {
		switch {
		case a.CallID != callID || !a.Binding.Of(&who):
			return none // do not reveal that the call exists
		case a.State == ledger.Running:
			return schema.Errorf(schema.KindConflict, "The call is already running and cannot be withdrawn; GET /calls/%s returns its outcome.", a.CallID).WithCall(a.CallID)
		case a.State.Ended():
			return schema.Errorf(schema.KindConflict, "The call has already ended: it is %s.", a.State).WithCall(a.CallID)
		}
		a.State = ledger.Canceled
		return nil
	})
	if schema.KindOf(err) == schema.KindNotFound {
		return nil, none
	}
	return a, err
}

// Call returns the call of an approval that this runner claimed, with exactly the bytes that
// were approved. It returns KindInternal if the stored bytes are not those of the approval;
// the call must not run then.
func (d *Desk) Call(ctx context.Context, a *ledger.Approval) (*schema.Call, error) {
	args, err := d.records.ledger.ArgumentsOf(ctx, a)
	if err != nil {
		return nil, err
	}
	b := a.Binding
	return &schema.Call{
		ID: a.CallID, Server: b.Server, Tool: b.Tool, Arguments: args, ToolDigest: b.ToolDefinitionDigest,
		Timeout: a.Timeout, Safe: a.Safe, Approval: a.ID, Warrant: a.Warrant, Trace: schema.Trace{Parent: a.Trace, State: a.TraceState}, Principal: Requester(a),
	}, nil
}

// Finish records the outcome of a running call of the tenant. The outcome is written once. A
// late result still replaces [ledger.Unknown].
func (d *Desk) Finish(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, res *schema.Result, callErr error) (*ledger.Approval, error) {
	var result []byte
	if callErr == nil {
		if result = res.Body; result == nil {
			result = []byte{} // an empty result is a result too
		}
	}
	return d.records.change(ctx, tenant, id, result, func(a *ledger.Approval) error {
		switch {
		case callErr == nil:
			a.State, a.ToolError = ledger.Succeeded, res.ToolError
		case schema.KindOf(callErr) == schema.KindOutcomeUnknown:
			a.State, a.Error = ledger.Unknown, schema.AsError(callErr)
		default:
			a.State, a.Error = ledger.Failed, schema.AsError(callErr)
		}
		return nil
	})
}

// Reconcile expires and escalates approvals that are due, and marks the calls of lost runners
// as unknown. alive reports whether a runner is alive. Reconcile returns the number of
// approvals that changed. Any number of processes may call it at once.
func (d *Desk) Reconcile(ctx context.Context, alive func(runner string) bool) (changed int, err error) {
	now := d.records.wall()
	open, _ := d.records.ledger.Held()
	waits := make(map[string]bool, open)
	d.records.ledger.EachUnended(schema.AllTenants(), func(a *ledger.Approval) {
		waits[string(a.ID)] = true
		next := d.due(a, now, alive)
		if next == nil {
			return
		}
		if _, changeErr := d.records.change(ctx, a.Binding.Tenant, a.ID, nil, next); changeErr == nil {
			changed++
		} else if schema.KindOf(changeErr) != schema.KindConflict && err == nil {
			err = changeErr
		}
	})
	for _, p := range d.records.ledger.Permissions(schema.AllTenants()) {
		waits[p.ID] = true
		d.records.permissionOver(&p)
	}
	d.records.expiry.keep(waits)
	return changed, err
}

const (
	// runGrace is the time without a sign of life from a runner after which the outcome of its
	// call counts as unknown. waitGrace is the time that a call of a live runner may exceed its
	// timeout, because the timeout starts only when a worker takes the call.
	runGrace  = 15 * time.Second
	waitGrace = 2 * time.Minute
	// longestRun applies to calls without a timeout.
	longestRun = 2 * time.Hour
)

// due returns the change that an approval needs now, or nil. The change checks the current
// record again before it applies.
func (d *Desk) due(a *ledger.Approval, now time.Time, alive func(string) bool) func(*ledger.Approval) error {
	switch a.State {
	case ledger.Pending, ledger.Approved:
		if d.records.over(a) {
			return func(a *ledger.Approval) error {
				if a.State != ledger.Pending && a.State != ledger.Approved || !d.records.over(a) {
					return errUnchanged
				}
				a.State = ledger.Expired
				return nil
			}
		}
		rule, err := d.rules.Of(a)
		if err != nil || a.State != ledger.Pending || !a.Escalated.IsZero() {
			return nil
		}
		if at := rule.EscalatesAt(a.Since(), a.Expires); at.IsZero() || now.Before(at) {
			return nil
		}
		return func(a *ledger.Approval) error {
			if a.State != ledger.Pending || !a.Escalated.IsZero() {
				return errUnchanged
			}
			a.Escalated = now
			return nil
		}
	case ledger.Running:
		if a.Runner == nil {
			return nil
		}
		most := longestRun
		if a.Timeout > 0 {
			most = a.Timeout
		}
		if took := now.Sub(a.Runner.Started); took < runGrace || alive(a.Runner.FrontDoor) && took < most+waitGrace {
			return nil
		}
		return func(a *ledger.Approval) error {
			if a.State != ledger.Running {
				return errUnchanged
			}
			a.State = ledger.Unknown
			why := "was lost before it reported the outcome"
			if alive(a.Runner.FrontDoor) {
				why = "did not report the outcome in time"
			}
			a.Error = schema.Errorf(schema.KindOutcomeUnknown, "The process that ran the call %s; the call may have run.", why).WithCall(a.CallID)
			return nil
		}
	}
	return nil
}

// Renew assesses every held call that has not started, and restarts the approvals whose rule
// no longer suffices. Call it when the policy has changed. It returns the error of the first
// call that could not be assessed.
func (d *Desk) Renew(ctx context.Context) error { return d.reassessor.renewAll(ctx) }
