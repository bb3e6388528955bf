package web

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// approvals gives each person access to the approvals that they may see and decide. It is safe for
// concurrent use.
type approvals struct {
	o     *Options
	peeks peeks
	rules approval.Rules
}

// approvalView is an approval as one person sees it.
type approvalView struct {
	*ledger.Approval
	Rule *risk.Approval
	// Approvals is the number of people who approved the effective arguments.
	Approvals int
	// Blocked is the reason why this person may not decide, or "".
	Blocked string
	// ApprovedAt is the time at which this person approved the effective arguments, or zero.
	ApprovedAt time.Time
	// EscalatesAt is the time at which more groups will be asked, or zero if there are none or
	// they were asked already.
	EscalatesAt time.Time
	// Kinds lists the decisions that are possible in this state.
	Kinds []ledger.DecisionKind

	// The following fields are set only for a single approval.
	Arguments  []byte // the effective arguments
	Asked      []byte // the requested arguments, if they were edited
	Forgotten  string // the reason why Arguments are no longer stored, or ""
	Definition []byte
	// Change compares the tool's definition with the one last approved.
	Change *ToolChange
	// Peek is the beginning of the arguments, in lists of pending calls.
	Peek *preview
	// ToolChanged reports whether the definition changed, in lists of pending calls.
	ToolChanged bool
}

// errNotThere is the error for an approval that does not exist or that the person may not see.
func errNotThere(id schema.ApprovalID) error {
	return schema.Errorf(schema.KindNotFound, "The approval %s does not exist, or you may not see it.", id)
}

// visible returns the rule of the approval, or false if the person may not see the approval.
func (v *approvals) visible(a *ledger.Approval, who schema.Principal) (*risk.Approval, bool) {
	if !a.Binding.Tenant.Is(who.Tenant) {
		return nil, false
	}
	rule, err := v.rules.Of(a)
	if err != nil {
		v.o.Log.Error("an approval has no readable rule", "approval_id", a.ID, "error", err)
		return nil, false
	}
	concerned := overlap(rule.Groups, who.Groups) || overlap(rule.EscalateTo, who.Groups)
	return rule, concerned || approval.Requested(a, who) || approval.Took(a, who) || overlap(v.o.Observers, who.Groups) || v.o.open()
}

// see returns the approval as the person sees it, or false if they may not see it.
func (v *approvals) see(a *ledger.Approval, who schema.Principal) (*approvalView, bool) {
	rule, ok := v.visible(a, who)
	if !ok {
		return nil, false
	}
	q := &approvalView{Approval: a, Rule: rule, Approvals: approval.ApprovalCount(a), Kinds: kinds(a)}
	q.Blocked = blocked(q, who)
	q.ApprovedAt = approval.ApprovedAt(a, who)
	if a.State == ledger.Pending && a.Escalated.IsZero() {
		q.EscalatesAt = rule.EscalatesAt(a.Since(), a.Expires)
	}
	return q, true
}

// Missing returns the number of approvals still required.
func (q *approvalView) Missing() int { return max(max(q.Rule.Needed, 1)-q.Approvals, 0) }

// MayApprove reports whether an approval of this person would count: they may decide, and have not
// approved yet.
func (q *approvalView) MayApprove() bool { return q.Blocked == "" && q.ApprovedAt.IsZero() }

// find reads one approval, without its bytes, if the person may see it.
func (v *approvals) find(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	return v.found(id, who, func() (*ledger.Approval, error) {
		a, _, err := v.o.Ledger.Get(ctx, schema.OnlyTenant(who.Tenant), id)
		return a, err
	})
}

// current is like find, but has every recorded decision: a replica may not have the last one yet.
func (v *approvals) current(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	return v.found(id, who, func() (*ledger.Approval, error) { return v.o.Ledger.Current(ctx, schema.OnlyTenant(who.Tenant), id) })
}

// known is like find, but reads this process's local copy.
func (v *approvals) known(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	return v.found(id, who, func() (*ledger.Approval, error) { return v.o.Ledger.Known(ctx, schema.OnlyTenant(who.Tenant), id) })
}

func (v *approvals) found(id schema.ApprovalID, who schema.Principal, read func() (*ledger.Approval, error)) (*approvalView, error) {
	if !plainID(id) {
		return nil, errNotThere("with that id")
	}
	a, err := read()
	if schema.KindOf(err) == schema.KindNotFound {
		return nil, errNotThere(id)
	}
	if err != nil {
		return nil, err
	}
	q, ok := v.see(a, who)
	if !ok {
		return nil, errNotThere(id)
	}
	return q, nil
}

// read reads one approval with its bytes, and the change of its tool.
func (v *approvals) read(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	return v.readWith(ctx, id, who, v.find)
}

// readWith is read with another way to find the approval.
func (v *approvals) readWith(ctx context.Context, id schema.ApprovalID, who schema.Principal, find func(context.Context, schema.ApprovalID, schema.Principal) (*approvalView, error)) (*approvalView, error) {
	q, err := find(ctx, id, who)
	if err == nil {
		err = v.addBytes(ctx, q, v.lastAllowed(who.Tenant, q))
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

// addBytes adds the bytes of an approval, and the change of its tool since the last approval.
func (v *approvals) addBytes(ctx context.Context, q *approvalView, last lastAllowed) (err error) {
	content := v.o.Ledger.ContentOf(q.Approval)
	if q.Arguments, err = content.Arguments(ctx); schema.KindOf(err) == schema.KindNotFound && q.State.Ended() {
		q.Forgotten = schema.AsError(err).Detail
	} else if err == nil {
		err = v.addAsked(ctx, q)
	}
	if err != nil && q.Forgotten == "" {
		return err
	}
	if q.Definition, err = content.Definition(ctx); err != nil {
		return err
	}
	q.Change, err = v.change(ctx, q, last.of(q.Approval))
	return err
}

// addAsked verifies the arguments against the record. If they were edited, it also adds the
// requested ones.
func (v *approvals) addAsked(ctx context.Context, q *approvalView) error {
	// The bytes and the record are read separately. An edit in between must not show new bytes
	// with the old digest.
	bound := q.Bound()
	if schema.Digest(q.Arguments) != bound.ArgumentsDigest {
		e := schema.Errorf(schema.KindConflict, "The approval is being changed; reload it.").RetryableAfter(0)
		return e.WithCall(q.CallID)
	}
	if q.Edited == nil {
		return nil
	}
	var err error
	// Small edited arguments may still be stored when large requested ones are not.
	if q.Asked, err = v.o.Ledger.Asked(ctx, q.Binding.Tenant, q.ID); schema.KindOf(err) == schema.KindNotFound && q.State.Ended() {
		return nil
	}
	return err
}

func plainID(id schema.ApprovalID) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func kinds(a *ledger.Approval) []ledger.DecisionKind {
	switch a.State {
	case ledger.Pending:
		return []ledger.DecisionKind{ledger.Approve, ledger.Deny, ledger.Edit, ledger.Extend, ledger.Revoke}
	case ledger.Approved:
		return []ledger.DecisionKind{ledger.Deny, ledger.Revoke}
	}
	return nil
}

// blocked returns the reason why a person may not decide, to explain it in advance. [approval.Desk]
// makes the final decision.
func blocked(q *approvalView, who schema.Principal) string {
	if len(q.Kinds) == 0 {
		return approval.WhyClosed(q.Approval)
	}
	return approval.RefusalReason(q.Approval, q.Rule, who)
}

// decide records a decision from a page or the API.
func (v *approvals) decide(ctx context.Context, id schema.ApprovalID, answer approval.Answer, who schema.Principal, channel string) (*approvalView, error) {
	q, err := v.find(ctx, id, who)
	if err != nil {
		return nil, err
	}
	switch answer.Kind {
	case ledger.Approve, ledger.Deny, ledger.Extend, ledger.Revoke:
	case ledger.Edit:
		if err := v.mayEdit(ctx, q, &answer); err != nil {
			return nil, err
		}
	default:
		return nil, schema.Errorf(schema.KindInvalidRequest, "The kind of a decision must be approve, deny, edit, extend or revoke.")
	}
	if len(answer.Reason) > maxReason {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The comment is longer than %d bytes; shorten it.", maxReason)
	}
	after, err := v.o.Desk.Decide(ctx, id, answer, who, channel)
	if err != nil {
		return nil, err
	}
	q, ok := v.see(after, who)
	if !ok {
		return nil, errNotThere(id)
	}
	return q, nil
}

// repeats reports whether the person's decision is already recorded, and returns the approval. A
// double click submits a form twice, and the browser shows the second response.
func (v *approvals) repeats(ctx context.Context, id schema.ApprovalID, answer approval.Answer, who schema.Principal) (*approvalView, bool) {
	q, err := v.find(ctx, id, who)
	if err != nil || answer.Kind == ledger.Edit || answer.Kind == ledger.Extend {
		return nil, false
	}
	// A decision before a restart is void: it does not count, so it must not look recorded.
	last := approval.LastDecision(q.Approval, who)
	return q, last != nil && last.Kind == answer.Kind && last.Reason == answer.Reason && (last.Allow != nil) == (answer.Allow != nil)
}

const maxReason = 4 << 10

// mayEdit checks an edit before its bytes are stored in the ledger, which happens before the
// decision.
func (v *approvals) mayEdit(ctx context.Context, q *approvalView, answer *approval.Answer) error {
	if q.Blocked != "" {
		return schema.Errorf(schema.KindForbidden, "%s", q.Blocked).WithCall(q.CallID)
	}
	if bound := q.Bound(); q.State != ledger.Pending || answer.Digest != bound.ArgumentsDigest {
		return schema.Errorf(schema.KindConflict, "The call was decided, or its arguments changed, since you opened it; review it again.").WithCall(q.CallID)
	}
	if len(answer.Arguments) == 0 {
		return schema.Errorf(schema.KindInvalidRequest, "An edit requires the new arguments.")
	}
	if err := validate.Arguments(answer.Arguments, v.o.ArgumentBytes, 0); err != nil {
		return err
	}
	definition, err := v.o.Ledger.Definition(ctx, q.Binding.Tenant, q.ID)
	if err != nil {
		return err
	}
	return validateArguments(definition, answer.Arguments)
}

// validateArguments validates edited arguments against the tool's schema. As at the front door, an unusable
// schema accepts everything.
func validateArguments(definition, args []byte) error {
	var tool struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &tool) != nil {
		return nil
	}
	s, err := validate.Compile(tool.Input)
	if err != nil {
		return nil
	}
	if faults := s.Validate(args); len(faults) > 0 {
		e := schema.Errorf(schema.KindInvalidArguments, "The edited arguments do not match the input schema of the tool; each fault is listed.")
		e.Faults = faults
		return e
	}
	return nil
}

// timeLeft returns the remaining time, at least zero.
func timeLeft(a *ledger.Approval, now time.Time) time.Duration { return max(a.Expires.Sub(now), 0) }

// indented returns indented JSON with unchanged values, or nil if raw is not JSON or would grow too
// much.
func indented(raw []byte) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil || b.Len() > 4*len(raw)+1<<20 {
		return nil
	}
	return b.Bytes()
}

// outcome is the outcome of one of several decisions.
type outcome struct {
	ID     schema.ApprovalID
	Server schema.ServerID
	Tool   string
	After  *approvalView // nil if it was refused
	Err    error
}

// Refusal returns the user-facing reason of a refusal, or "".
func (o outcome) Refusal() string {
	if o.Err == nil {
		return ""
	}
	return problem.Of(o.Err).Detail
}

// decideOne records one of several decisions.
func (v *approvals) decideOne(ctx context.Context, id schema.ApprovalID, answer approval.Answer, who schema.Principal, channel string) outcome {
	o := outcome{ID: id}
	if o.After, o.Err = v.decide(ctx, id, answer, who, channel); o.Err != nil {
		v.o.fault(ctx, "decision", o.Err)
		if q, err := v.find(ctx, id, who); err == nil { // describe the refused approval if the person may see it
			o.Server, o.Tool = q.Binding.Server, q.Binding.Tool
		}
		return o
	}
	o.Server, o.Tool = o.After.Binding.Server, o.After.Binding.Tool
	return o
}
