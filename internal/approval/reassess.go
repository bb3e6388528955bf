package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// AssessFunc assesses a held call with the given arguments under the current policy. It must
// be safe for concurrent use. It returns KindNotFound if the tool is currently unknown.
type AssessFunc func(ctx context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error)

// byPolicy assesses calls using the record's properties of the server and the tool, for a
// process that knows no servers.
func byPolicy(book *ledger.Ledger, policy *risk.Holder) AssessFunc {
	return func(ctx context.Context, a *ledger.Approval, args []byte) (risk.Assessment, error) {
		definition, err := book.Definition(ctx, a.Binding.Tenant, a.ID)
		if err != nil {
			return risk.Assessment{}, err
		}
		return policy.Assess(&risk.Input{
			Server: string(a.Binding.Server), Tool: a.Binding.Tool, ServerRisk: a.ServerRisk, TrustAnnotations: a.TrustAnnotations,
			Definition: definition, Arguments: args, Principal: Requester(a),
		}), nil
	}
}

// Requester returns the principal that requested the call.
func Requester(a *ledger.Approval) schema.Principal {
	r := a.Binding.Requester
	return schema.Principal{Name: r.Name, Owner: r.Owner, Groups: a.Groups, Tenant: a.Binding.Tenant}
}

// requirement returns the requirement that the approvals counting under the record's rule
// satisfy. Groups that were not asked yet cannot have satisfied anything.
func requirement(a *ledger.Approval, rule *risk.Approval) risk.Requirement {
	r := rule.Requirement()
	if a.Escalated.IsZero() {
		r.EscalateTo = nil
	}
	return r
}

// Covered reports whether the rule of the approval, once satisfied, meets everything that the
// call requires now.
func Covered(a *ledger.Approval, now *risk.Assessment) bool {
	if now.Approval == nil {
		return true
	}
	rule, err := Rule(a)
	bound := a.Bound()
	return err == nil && now.Level <= bound.Level && requirement(a, rule).Covers(now.Approval.Requirement())
}

// forbidden returns an error if the policy now denies the call.
func forbidden(a *ledger.Approval, now *risk.Assessment) error {
	if !now.Deny {
		return nil
	}
	return schema.Errorf(schema.KindForbidden, "The policy in force forbids this call: %s", risk.JoinReasons(now.Reasons)).WithCall(a.CallID)
}

// reassessor assesses held calls again under the current policy, and restarts approvals whose
// rule no longer suffices. It is safe for concurrent use.
type reassessor struct {
	records *records
	assess  AssessFunc // if nil, nothing is assessed here
}

// restart starts the approval again under the rule of now. by is the editor of the arguments,
// or nil if the policy changed. from is the first decision that counts.
func (r *reassessor) restart(a *ledger.Approval, now *risk.Assessment, by *schema.Principal, from int) error {
	rule, err := json.Marshal(now.Approval)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The approval rule cannot be stored: %w", err).WithCall(a.CallID)
	}
	bound, at := a.Bound(), r.records.wall()
	again := ledger.Restart{At: at, From: from, Level: max(now.Level, bound.Level), PolicyVersion: now.Version}
	if by != nil {
		again.By, again.Owner = by.Name, by.Owner
		again.Reason = fmt.Sprintf("The edited arguments require %s.", needs(now.Approval))
	} else {
		again.Reason = fmt.Sprintf("The policy has changed since the call was held: it now requires %s.", needs(now.Approval))
	}
	a.Restart(again, rule, now.Reasons, deadline(a, at.Add(now.Approval.Expires)))
	return nil
}

// needs describes the requirement of a rule in words.
func needs(rule *risk.Approval) string {
	if rule.By == risk.ByCaller {
		return "a confirmation by its caller"
	}
	text := "1 approval from "
	if rule.Needed > 1 {
		text = fmt.Sprintf("%d approvals from ", rule.Needed)
	}
	text += strings.Join(rule.Groups, ", ")
	if rule.FreshLogin {
		text += " with a fresh sign-in"
	}
	return text
}

// renew restarts an approval that has not started running if the current policy requires more
// than its rule, and reports whether it did. It returns KindForbidden if the policy now denies
// the call.
func (r *reassessor) renew(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID) (restarted bool, err error) {
	if r.assess == nil {
		return false, nil
	}
	for range maxRenewals {
		known, err := r.records.ledger.Check(ctx, tenant, id, func(*ledger.Approval) error { return nil })
		if err != nil || !renewable(known) {
			return false, err
		}
		args, err := r.records.ledger.ArgumentsOf(ctx, known)
		if err != nil {
			return false, err
		}
		now, err := r.assess(ctx, known, args)
		if schema.KindOf(err) == schema.KindNotFound {
			return false, nil // the call does not run either; see the releaser
		}
		if err == nil {
			err = forbidden(known, &now)
		}
		if err != nil || Covered(known, &now) {
			return false, err
		}
		sum, again := schema.Digest(args), false
		_, err = r.records.change(ctx, tenant, id, nil, func(a *ledger.Approval) error {
			bound := a.Bound()
			again = bound.ArgumentsDigest != sum || !renewable(a)
			if again || Covered(a, &now) {
				return errUnchanged
			}
			return r.restart(a, &now, nil, len(a.Decisions))
		})
		if !again {
			if schema.KindOf(err) == schema.KindConflict {
				return false, nil // another process was faster
			}
			return err == nil, err
		}
	}
	return false, nil
}

// maxRenewals limits the attempts to renew an approval that others keep changing.
const maxRenewals = 8

var errUnchanged = schema.Errorf(schema.KindConflict, "It has changed in the meantime.")

func renewable(a *ledger.Approval) bool {
	return a.Permission == "" && (a.State == ledger.Pending || a.State == ledger.Approved)
}

// renewAll assesses every held call that has not started, and restarts the approvals whose rule
// no longer suffices. It returns the error of the first call that could not be assessed.
func (r *reassessor) renewAll(ctx context.Context) (err error) {
	for _, a := range r.records.ledger.Where(schema.AllTenants(), renewable) {
		if _, renewErr := r.renew(ctx, a.Binding.Tenant, a.ID); renewErr != nil && schema.KindOf(renewErr) != schema.KindForbidden && err == nil {
			err = renewErr
		}
	}
	return err
}

// reassessed assesses the call of a decision with edited arguments. It returns nil if this desk
// does not assess calls; the process that claims the call does it then.
func (r *reassessor) reassessed(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, args []byte) (*risk.Assessment, error) {
	if r.assess == nil {
		return nil, nil
	}
	a, _, err := r.records.ledger.Get(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return nil, err
	}
	now, err := r.assess(ctx, a, args)
	if err == nil {
		err = forbidden(a, &now)
	}
	return &now, err
}

// errRestarted explains why an answer that was given for another rule is refused.
func errRestarted(a *ledger.Approval, why error) error {
	reason := "The policy has changed since the call was held."
	if n := len(a.Restarts); n > 0 {
		reason = a.Restarts[n-1].Reason
	}
	if why != nil {
		reason += " " + schema.AsError(why).Detail
	}
	return schema.Errorf(schema.KindForbidden, "%s", reason).WithCall(a.CallID)
}

// Took reports whether the person has taken part in the decision about this approval.
func Took(a *ledger.Approval, who schema.Principal) bool {
	return slices.ContainsFunc(a.Decisions, func(dec ledger.Decision) bool {
		return person(dec.By, dec.Owner) == person(who.Name, who.Owner)
	})
}

// assessFor assesses the call before an answer that may let it run. For an edit it returns the
// assessment of the edited arguments in now. For an approval it restarts the approval if its
// rule no longer suffices.
func (r *reassessor) assessFor(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, answer *Answer) (restarted bool, now *risk.Assessment, err error) {
	switch answer.Kind {
	case ledger.Approve:
		restarted, err = r.renew(ctx, tenant, id)
	case ledger.Edit:
		now, err = r.reassessed(ctx, tenant, id, answer.Arguments)
	}
	return restarted, now, err
}

// restartEdited restarts an approval whose edited arguments require more than its rule. The
// edit itself counts as an approval if its author may also approve under the new rule.
func (r *reassessor) restartEdited(a *ledger.Approval, now *risk.Assessment, answer *Answer, who schema.Principal) error {
	a.State, a.Escalated = ledger.Pending, time.Time{}
	from := len(a.Decisions)
	if may(a, now.Approval, answer, who, false) == nil {
		from--
	}
	if err := r.restart(a, now, &who, from); err != nil {
		return err
	}
	settle(a, now.Approval)
	return nil
}

// renewForCaller is renew for a call that the caller confirms. Faults of the confirmation
// itself are reported later.
func (r *reassessor) renewForCaller(ctx context.Context, id schema.ApprovalID, who schema.Principal) error {
	if r.assess == nil || id == "" {
		return nil
	}
	a, err := r.records.ledger.Check(ctx, who.Tenant, id, func(a *ledger.Approval) error { return mayConfirm(a, who) })
	if err != nil || a.State != ledger.Pending || r.records.over(a) {
		return nil
	}
	restarted, err := r.renew(ctx, who.Tenant, id)
	if err != nil || !restarted {
		return err
	}
	if a, err = r.records.ledger.Current(ctx, schema.OnlyTenant(who.Tenant), id); err != nil {
		return err
	}
	return errRestarted(a, nil)
}
