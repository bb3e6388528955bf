package approval

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Answer is one person's decision on an approval.
type Answer struct {
	Kind   ledger.DecisionKind
	Reason string
	// Digest is the digest of the arguments that the person was shown. The answer is refused
	// if the call would run with others.
	Digest string
	// Arguments are the edited arguments, for [ledger.Edit].
	Arguments []byte
	// Fresh reports whether the person has just signed in.
	Fresh bool
	// Allow, with [ledger.Approve], grants a standing permission: later calls like this one run
	// without a question. A pattern of values needs only the pointers. See [Permissions].
	Allow *ledger.Allow
}

// maxExtensions limits how often the deadline of one approval can be extended.
const maxExtensions = 6

// Decide records a person's answer and returns the resulting approval, which is still pending
// if more approvers are needed. Errors: KindForbidden if the person may not decide;
// KindConflict if the approval is decided already or the answer is for other arguments;
// KindExpired; KindInvalidRequest if a reason is missing.
func (d *Desk) Decide(ctx context.Context, id schema.ApprovalID, answer Answer, who schema.Principal, channel string) (*ledger.Approval, error) {
	if d.traces == nil {
		return d.decide(ctx, id, answer, who, channel)
	}
	span := d.traces.Begin(telemetry.Carried(ctx), telemetry.Internal, "decide approval")
	defer span.End()
	span.Text(telemetry.KeyApproval, string(id))
	span.Text(telemetry.KeyDecision, string(answer.Kind))
	is, err := d.decide(ctx, id, answer, who, channel)
	if err != nil {
		span.Outcome(nil, err)
		return nil, err
	}
	span.Text(telemetry.KeyCall, string(is.CallID))
	span.Link(schema.Trace{Parent: is.Trace, State: is.TraceState})
	return is, nil
}

func (d *Desk) decide(ctx context.Context, id schema.ApprovalID, answer Answer, who schema.Principal, channel string) (*ledger.Approval, error) {
	answer.Reason = strings.TrimSpace(answer.Reason) // blanks are no reason
	var edited string
	if answer.Kind == ledger.Edit || answer.Allow != nil {
		// Only a person who may decide can store bytes here or learn about stored ones. The change
		// below checks again.
		if err := d.mayDecide(ctx, id, &answer, who); err != nil {
			return nil, err
		}
	}
	if answer.Kind == ledger.Edit {
		if len(answer.Arguments) == 0 {
			return nil, schema.Errorf(schema.KindInvalidRequest, "An edit requires the new arguments.")
		}
		var err error
		if edited, err = d.records.ledger.PutEdited(ctx, who.Tenant, id, answer.Arguments); err != nil {
			return nil, err
		}
	}
	allow, err := d.Permissions.requestedPermission(ctx, who.Tenant, id, &answer)
	if err != nil {
		return nil, err
	}
	restarted, now, err := d.reassessor.assessFor(ctx, who.Tenant, id, &answer)
	if err != nil {
		return nil, err
	}
	is, err := d.records.change(ctx, who.Tenant, id, nil, func(a *ledger.Approval) error {
		rule, err := Rule(a)
		if err != nil {
			return err
		}
		if err := may(a, rule, &answer, who, d.records.over(a)); err != nil {
			if restarted && schema.KindOf(err) == schema.KindForbidden {
				return errRestarted(a, err)
			}
			return err
		}
		at := d.records.wall()
		a.Decisions = append(a.Decisions, ledger.Decision{
			By: who.Name, Owner: who.Owner, Groups: who.Groups, Kind: answer.Kind, Reason: answer.Reason, At: at, Channel: channel, Allow: allow,
		})
		apply(a, rule, &answer, edited, who, at)
		if answer.Kind == ledger.Edit && now != nil && !Covered(a, now) {
			if err := d.reassessor.restartEdited(a, now, &answer, who); err != nil {
				return err
			}
		}
		if a.State == ledger.Approved {
			return d.records.sign(a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// If a consequence of the decision fails, [Desk.Repair] makes up for it.
	if err := d.Permissions.permit(ctx, is); err != nil {
		d.records.log.Warn("a standing permission that was granted or revoked could not be stored; it will be tried again", "approval_id", is.ID, "error", err)
	}
	return is, nil
}

// mayDecide calls may before anything is changed.
func (d *Desk) mayDecide(ctx context.Context, id schema.ApprovalID, answer *Answer, who schema.Principal) error {
	now, _, err := d.records.ledger.Get(ctx, schema.OnlyTenant(who.Tenant), id)
	if err != nil {
		return err
	}
	rule, err := Rule(now)
	if err != nil {
		return err
	}
	return may(now, rule, answer, who, d.records.over(now))
}

// may returns the reason why the answer does not count, or nil if it does. over reports
// whether the approval has expired.
func may(a *ledger.Approval, rule *risk.Approval, answer *Answer, who schema.Principal, over bool) error {
	if !a.Binding.Tenant.Is(who.Tenant) {
		return ledger.NoApproval(a.ID) // treat another tenant's approval as nonexistent
	}
	if why := RefusalReason(a, rule, who); why != "" {
		return schema.Errorf(schema.KindForbidden, "%s", why).WithCall(a.CallID)
	}
	switch {
	case answer.Kind == ledger.Revoke && (a.State == ledger.Pending || a.State == ledger.Approved):
	case answer.Kind == ledger.Deny && a.State == ledger.Approved: // a denial counts until the call runs
	case a.State != ledger.Pending:
		return schema.Errorf(schema.KindConflict, "%s", WhyClosed(a)).WithCall(a.CallID)
	}
	if over && a.State == ledger.Pending {
		return schema.Errorf(schema.KindExpired, "%s", lateForPeople).WithCall(a.CallID)
	}
	if rule.Reasons && answer.Reason == "" && answer.Kind != ledger.Extend {
		return schema.Errorf(schema.KindInvalidRequest, "This decision requires a reason.").WithCall(a.CallID)
	}
	if rule.FreshLogin && !answer.Fresh && (answer.Kind == ledger.Approve || answer.Kind == ledger.Edit) {
		return schema.Errorf(schema.KindForbidden, "This decision requires a fresh sign-in.").WithCall(a.CallID)
	}
	if answer.Allow != nil {
		if err := mayAllow(a, rule, answer); err != nil {
			return err
		}
	}
	return mayRepeat(a, answer, who)
}

// lateForPeople is the reason for people who decide after the deadline. They cannot send the call
// again.
const lateForPeople = "This request has expired: its deadline passed before it was decided. The call was not run."

// WhyClosed returns the reason why an approval that is not pending takes no answer.
func WhyClosed(a *ledger.Approval) string {
	if a.State == ledger.Expired {
		return lateForPeople
	}
	return "This request has already been decided: the state of the call is " + string(a.State) + "."
}

// RefusalReason returns the reason why no answer of this person can count, or "" if one can. Pages,
// the API and decisions all show this reason.
func RefusalReason(a *ledger.Approval, rule *risk.Approval, who schema.Principal) string {
	switch {
	case rule.By != risk.ByGroups:
		return "Only the caller can confirm this call, with its token."
	case Requested(a, who):
		return "You requested this call, directly or with a key of yours; somebody else must decide it."
	case !Asked(a, rule, who):
		return "You are not in any of the groups that can decide this call: " + strings.Join(rule.Groups, ", ") + "."
	}
	return ""
}

func mayRepeat(a *ledger.Approval, answer *Answer, who schema.Principal) error {
	switch answer.Kind {
	case ledger.Approve:
		if bound := a.Bound(); answer.Digest != bound.ArgumentsDigest {
			return schema.Errorf(schema.KindConflict, "The arguments have changed since they were shown to you; review them again.").WithCall(a.CallID)
		}
		if counts(a, who) {
			return schema.Errorf(schema.KindConflict, "You have already approved this call; another person must approve it too.").WithCall(a.CallID)
		}
	case ledger.Extend:
		n := 0
		for _, dec := range a.Counting() {
			if dec.Kind == ledger.Extend {
				n++
			}
		}
		if n >= maxExtensions {
			return schema.Errorf(schema.KindConflict, "The deadline of this approval has already been extended %d times.", n).WithCall(a.CallID)
		}
		if !a.Expires.Before(latest(a)) {
			return schema.Errorf(schema.KindConflict, "The deadline of this approval cannot be extended further: a call is held for at most 30 days.").WithCall(a.CallID)
		}
	case ledger.Deny, ledger.Revoke, ledger.Edit:
	default:
		return schema.Errorf(schema.KindInvalidRequest, "A decision must be approve, deny, edit, extend or revoke.")
	}
	return nil
}

// apply applies a counting decision to the approval.
func apply(a *ledger.Approval, rule *risk.Approval, answer *Answer, edited string, who schema.Principal, now time.Time) {
	switch answer.Kind {
	case ledger.Deny:
		a.State = ledger.Denied
	case ledger.Revoke:
		a.State = ledger.Revoked
	case ledger.Extend:
		a.Expires = deadline(a, a.Expires.Add(rule.Expires))
	case ledger.Edit:
		// Earlier approvals were for other arguments, so those approvers must review again.
		a.Edited = &ledger.Edited{By: who.Name, ArgumentsDigest: edited, Size: int64(len(answer.Arguments)), At: now, Reason: answer.Reason}
		settle(a, rule)
	case ledger.Approve:
		settle(a, rule)
	}
}

// latest returns the latest deadline of an approval.
func latest(a *ledger.Approval) time.Time { return a.Created.Add(ledger.MaxHeld) }

// deadline returns t, or the latest deadline of the approval if that is earlier.
func deadline(a *ledger.Approval, t time.Time) time.Time {
	if last := latest(a); last.Before(t) {
		return last
	}
	return t
}

// settle marks the call as approved once enough people have approved it.
func settle(a *ledger.Approval, rule *risk.Approval) {
	if len(approvers(a)) >= max(rule.Needed, 1) {
		a.State = ledger.Approved
	}
}

// person returns the identity behind a principal in a canonical spelling. Spellings that
// differ in case only count as one person. That can refuse an approval, but never make one
// count.
func person(name, owner string) string {
	if owner != "" {
		name = owner
	}
	return folded(name)
}

func folded(name string) string {
	return strings.Map(func(r rune) rune {
		// Use the smallest of the letters that differ in case only.
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// Requested reports whether who is the requester of the call, under any of the owner's keys.
func Requested(a *ledger.Approval, who schema.Principal) bool {
	r := a.Binding.Requester
	asked := []string{folded(r.Name), person(r.Name, r.Owner)}
	return slices.Contains(asked, folded(who.Name)) || slices.Contains(asked, person(who.Name, who.Owner))
}

// Asked reports whether the person is in a group that is currently asked.
func Asked(a *ledger.Approval, rule *risk.Approval, who schema.Principal) bool {
	in := func(groups []string) bool {
		return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(who.Groups, g) })
	}
	return in(rule.Groups) || !a.Escalated.IsZero() && in(rule.EscalateTo)
}

// ApprovalCount returns the number of people who approved the call in its current form.
func ApprovalCount(a *ledger.Approval) int { return len(approvers(a)) }

// ApprovedAt returns the time at which this person approved the call in its current form, or
// the zero time.
func ApprovedAt(a *ledger.Approval, who schema.Principal) time.Time {
	return approvers(a)[person(who.Name, who.Owner)]
}

// LastDecision returns the last decision of this person since the last restart and the last edit of
// somebody else, or nil. Earlier ones are void.
func LastDecision(a *ledger.Approval, who schema.Principal) *ledger.Decision {
	counting := a.Counting()
	for i := len(counting) - 1; i >= 0; i-- {
		switch dec := &counting[i]; {
		case person(dec.By, dec.Owner) == person(who.Name, who.Owner):
			return dec
		case dec.Kind == ledger.Edit:
			return nil
		}
	}
	return nil
}

// approvers returns the persons whose approval counts for the current arguments, and when each
// approved. An edit counts as its author's approval and voids earlier ones.
func approvers(a *ledger.Approval) map[string]time.Time {
	approve := make(map[string]time.Time)
	for _, dec := range a.Counting() {
		switch dec.Kind {
		case ledger.Edit:
			clear(approve)
			approve[person(dec.By, dec.Owner)] = dec.At
		case ledger.Approve:
			approve[person(dec.By, dec.Owner)] = dec.At
		}
	}
	return approve
}

func counts(a *ledger.Approval, who schema.Principal) bool {
	_, approve := approvers(a)[person(who.Name, who.Owner)]
	return approve
}
