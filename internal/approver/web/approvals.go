package web

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// approvals are the approvals as each person may see and decide them. It is safe for
// concurrent use.
type approvals struct {
	o     *Options
	peeks peeks
	rules rules
}

// rules are the rules of approvals, read once each: of many calls that wait, most have the same
// one. They are not changed. It is safe for concurrent use; the zero value is empty.
type rules struct {
	mu   sync.RWMutex
	read map[string]*risk.Approval // by text
}

// maxKeptRules bounds the rules that are kept, maxKeptRule the text of one.
const (
	maxKeptRules = 1000
	maxKeptRule  = 4 << 10
)

// of returns the rule of an approval; see [approval.Rule].
func (r *rules) of(a *ledger.Approval) (*risk.Approval, error) {
	r.mu.RLock()
	rule := r.read[string(a.Rule)]
	r.mu.RUnlock()
	if rule != nil {
		return rule, nil
	}
	rule, err := approval.Rule(a)
	if err != nil || len(a.Rule) > maxKeptRule {
		return rule, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil || len(r.read) >= maxKeptRules {
		r.read = make(map[string]*risk.Approval)
	}
	r.read[string(a.Rule)] = rule
	return rule, nil
}

// approvalView is an approval as one person sees it.
type approvalView struct {
	*ledger.Approval
	Rule *risk.Approval
	// Approvals is how many people approved what would run now.
	Approvals int
	// Blocked says why this person's answer would not count; empty when it would.
	Blocked string
	// ApprovedAt is when this person approved what would run now; zero: they have not.
	ApprovedAt time.Time
	// EscalatesAt is when more groups will be asked; zero where none are, or were already.
	EscalatesAt time.Time
	// Kinds are the answers that can be given in this state.
	Kinds []ledger.DecisionKind

	// What follows is there for a single approval only.
	Arguments  []byte // what would run now
	Asked      []byte // what was asked for, where it was edited since
	Forgotten  string // why there are no Arguments any more; empty where there are
	Definition []byte
	// Change is how the tool's definition stands to the last time.
	Change *ToolChange
	// Peek is the beginning of the arguments, in lists of what waits.
	Peek *peek
	// ToolChanged is the gist of that, in lists of what waits.
	ToolChanged bool
}

// errNotThere is the answer for what does not exist and for what is not yours.
func errNotThere(id schema.ApprovalID) error {
	return schema.Errorf(schema.KindNotFound, "The approval %s does not exist, or you may not see it.", id)
}

// see returns the approval as the person sees it; false where it is not theirs.
func (v *approvals) see(a *ledger.Approval, who schema.Principal) (*approvalView, bool) {
	if !a.Binding.Tenant.Is(who.Tenant) {
		return nil, false
	}
	rule, err := v.rules.of(a)
	if err != nil {
		v.o.Log.Error("an approval has no readable rule", "approval_id", a.ID, "error", err)
		return nil, false
	}
	concerned := overlap(rule.Groups, who.Groups) || overlap(rule.EscalateTo, who.Groups)
	if !concerned && !approval.Requested(a, who) && !approval.Took(a, who) && !overlap(v.o.Observers, who.Groups) && !v.o.open() {
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

// Missing is how many approvals are still needed.
func (q *approvalView) Missing() int { return max(max(q.Rule.Needed, 1)-q.Approvals, 0) }

// MayApprove reports whether an approval of this person would count: they may decide, and
// have not approved yet.
func (q *approvalView) MayApprove() bool { return q.Blocked == "" && q.ApprovedAt.IsZero() }

// find loads one approval, without its bytes, if the person may see it.
func (v *approvals) find(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	return v.found(id, who, func() (*ledger.Approval, error) {
		a, _, err := v.o.Ledger.Get(ctx, schema.OnlyTenant(who.Tenant), id)
		return a, err
	})
}

// known is find from this process's view.
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

// read loads one approval with its bytes, and how its tool has changed.
func (v *approvals) read(ctx context.Context, id schema.ApprovalID, who schema.Principal) (*approvalView, error) {
	q, err := v.find(ctx, id, who)
	if err != nil {
		return nil, err
	}
	if err := v.addBytes(ctx, q, v.lastAllowed(who.Tenant, q)); err != nil {
		return nil, err
	}
	return q, nil
}

// addBytes adds the bytes of an approval, and how its tool has changed since the last one.
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

// addAsked holds the arguments against the record, and adds those that were asked for
// where they were edited since.
func (v *approvals) addAsked(ctx context.Context, q *approvalView) error {
	// The bytes and the record are read one after the other; an edit in between
	// must not show new bytes under the old digest.
	bound := q.Bound()
	if schema.Digest(q.Arguments) != bound.ArgumentsDigest {
		e := schema.Errorf(schema.KindConflict, "The approval is being changed; reload it.").RetryableAfter(0)
		return e.WithCall(q.CallID)
	}
	if q.Edited == nil {
		return nil
	}
	var err error
	// Small edited arguments are kept when large ones that were asked for are not.
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

// blocked explains before anybody tries; the desk says the same, and decides.
func blocked(q *approvalView, who schema.Principal) string {
	if len(q.Kinds) == 0 {
		return "This request has already been decided: the call is " + string(q.State) + "."
	}
	return approval.WhyNot(q.Approval, q.Rule, who)
}

// decide takes an answer from a page or from the API.
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

const maxReason = 4 << 10

// mayEdit refuses before anything is stored: an edit's bytes go into the ledger
// ahead of the decision.
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
	return fits(definition, answer.Arguments)
}

// fits checks edited arguments against the tool's own schema. A schema that
// cannot be used checks nothing, as at the front door.
func fits(definition, args []byte) error {
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

// left is how much time there is, never below zero.
func left(a *ledger.Approval, now time.Time) time.Duration { return max(a.Expires.Sub(now), 0) }

// indented is the JSON with line breaks and its values untouched; nil where it is
// none, or where it would grow beyond all measure.
func indented(raw []byte) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil || b.Len() > 4*len(raw)+1<<20 {
		return nil
	}
	return b.Bytes()
}

// outcome is what came of one of several decisions.
type outcome struct {
	ID     schema.ApprovalID
	Server schema.ServerID
	Tool   string
	After  *approvalView // nil where it was refused
	Err    error
}

// Refusal is the sentence of a refusal; empty where there was none.
func (o outcome) Refusal() string {
	if o.Err == nil {
		return ""
	}
	return problem.Of(o.Err).Detail
}

// decideOne takes one of several decisions.
func (v *approvals) decideOne(ctx context.Context, id schema.ApprovalID, answer approval.Answer, who schema.Principal, channel string) outcome {
	o := outcome{ID: id}
	if o.After, o.Err = v.decide(ctx, id, answer, who, channel); o.Err != nil {
		v.o.fault(ctx, "decision", o.Err)
		if q, err := v.find(ctx, id, who); err == nil { // what a refused one was about, where the person may know
			o.Server, o.Tool = q.Binding.Server, q.Binding.Tool
		}
		return o
	}
	o.Server, o.Tool = o.After.Binding.Server, o.After.Binding.Tool
	return o
}
