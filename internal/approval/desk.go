package approval

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/store/audit"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Options configures a [Desk].
type Options struct {
	Ledger *ledger.Ledger
	// Tokens spends confirmation tokens. If nil, only the ledger does.
	Tokens *confirm.Tokens
	// Sign returns the warrant of an approval when it becomes approved, or when it runs by its
	// token or a standing permission. It receives the approval in its stored form;
	// [ledger.Approval.Bound] returns the call that may run. Sign may be called several times
	// for one approval and must have no side effects. If it returns an error, the approval does
	// not count. If Sign is nil, no warrants are made.
	Sign func(a *ledger.Approval) ([]byte, error)
	// Assess assesses held calls again when they are edited, approved and claimed. If nil, the
	// desk keeps the rule under which they were held. A desk that claims calls must set it.
	Assess AssessFunc
	// NoPermission returns the reason why calls of a server cannot run by a standing
	// permission, such as a worker that does not trust the signing key. Such calls are held.
	// It returns "" if they can run. If NoPermission is nil, calls of all servers can.
	NoPermission func(server schema.ServerID) string
	// Runner is the name under which this process runs calls. If empty, no call runs by a
	// standing permission here and every call waits for an approver.
	Runner string
	// Audit records every step. If nil, nothing is recorded. The caller owns it.
	Audit *audit.Log
	// Now returns the current time. If nil, time.Now is used.
	Now func() time.Time
	// Traces creates a span for each decision. If nil, no spans are created.
	Traces *telemetry.Traces
	Log    *slog.Logger
}

// Desk opens, decides and closes approvals. It is safe for concurrent use, and any number of
// desks can share one ledger.
type Desk struct {
	// Permissions holds the standing permissions, which are granted with approvals.
	Permissions *Permissions

	records    *records
	reassessor *reassessor
	tokens     *confirm.Tokens
	traces     *telemetry.Traces
	rules      Rules
	repaired   atomic.Bool // reports whether the last Repair succeeded
}

// New returns a desk.
func New(o Options) *Desk {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Tokens == nil {
		o.Tokens = confirm.New(o.Ledger, nil)
	}
	r := &records{ledger: o.Ledger, audit: o.Audit, signer: o.Sign, now: o.Now, expiry: newExpiryClock(), log: o.Log}
	return &Desk{
		Permissions: &Permissions{records: r, runner: o.Runner, noPermit: o.NoPermission},
		records:     r, reassessor: &reassessor{r, o.Assess}, tokens: o.Tokens, traces: o.Traces,
	}
}

// Held is a call that waits for an approval.
type Held struct {
	Approval *ledger.Approval
	// Token is the single-use secret with which the caller confirms the call. It is empty if
	// people decide. Only this process and the caller know it.
	Token string
	// Run reports whether a standing permission already approved the call. The approval is
	// then running, and the caller of [Desk.Open] must run the call now.
	Run bool
}

// Open holds a call, or lets it run if a standing permission covers it ([Held].Run).
// definition is the tool's definition as the server sent it. The assessment must require an
// approval. Open returns KindUnavailable if d is nil or if the ledger or the token store does
// not answer; no approvable call is held then.
func (d *Desk) Open(ctx context.Context, call *schema.Call, definition json.RawMessage, a *risk.Assessment, callbackURL string) (*Held, error) {
	if d == nil {
		return nil, schema.Errorf(schema.KindUnavailable, "This call requires a confirmation, and confirmations are not available here.")
	}
	rule := a.Approval
	if rule == nil || a.Deny {
		return nil, schema.Errorf(schema.KindInternal, "An approval was opened for a call that does not require one, or that the policy forbids.").WithCall(call.ID)
	}
	encoded, err := json.Marshal(rule)
	if err != nil {
		return nil, schema.Errorf(schema.KindInternal, "The approval rule cannot be stored: %w", err)
	}
	now := d.records.wall()
	expires := now.Add(rule.Expires)
	record := &ledger.Approval{
		ID: ledger.IDFor(call.ID), CallID: call.ID, State: ledger.Pending, Groups: call.Principal.Groups, Reasons: a.Reasons, Rule: encoded, Definition: definition,
		Binding: ledger.Binding{
			Tenant:    call.Principal.Tenant.Stored(),
			Requester: ledger.Requester{Name: call.Principal.Name, Owner: call.Principal.Owner},
			Server:    call.Server, Tool: call.Tool, ToolDefinitionDigest: call.ToolDigest, ArgumentsDigest: schema.Digest(call.Arguments),
			PolicyVersion: a.Version, Level: a.Level, Deadline: expires, CallID: call.ID, ApprovalID: ledger.IDFor(call.ID),
		},
		ServerRisk: a.ServerRisk, TrustAnnotations: a.TrustAnnotations,
		ArgumentsSize: int64(len(call.Arguments)), Created: now, Expires: expires, Safe: call.Safe, Timeout: call.Timeout, CallbackURL: callbackURL,
		Trace: call.Trace.Parent, TraceState: call.Trace.State, ReplayOf: call.ReplayOf,
	}
	if record.Binding.ToolDefinitionDigest == "" && len(definition) > 0 {
		record.Binding.ToolDefinitionDigest = schema.Digest(definition)
	}
	record.BindingDigest = record.Binding.Digest()
	held := &Held{Approval: record}
	if err := ledger.MayHold(d.records.ledger, record); err != nil { // a refused call leaves no token, and uses no permission
		return nil, err
	}
	if rule.By == risk.ByCaller {
		// Mint the token first: a record without its token could never be spent, but a token
		// without its record is harmless.
		if held.Token, err = d.tokens.Mint(ctx, record.ID, rule.Expires); err != nil {
			return nil, tokensDown(call.ID)
		}
		record.TokenHash = confirm.Hash(held.Token)
	} else if record.NoPermission = d.Permissions.noPermission(call.Server); record.NoPermission != "" {
		d.records.log.Debug("standing permissions are ignored; people are asked", "server", call.Server, "reason", record.NoPermission)
	} else if held.Run, err = d.Permissions.standing(ctx, record, call.Arguments); err != nil {
		return nil, err
	}
	if _, err := d.records.ledger.Create(ctx, record, call.Arguments); err != nil {
		return nil, err
	}
	d.records.over(record) // starts its expiry clock
	d.records.recordChange(ctx, nil, record)
	return held, nil
}

func tokensDown(callID schema.CallID) error {
	// The error of Redis is logged; it does not help the caller.
	e := schema.Errorf(schema.KindUnavailable, "The store of confirmation tokens is not available at the moment: calls that require a confirmation are neither accepted nor confirmed. This call did not run; try again later.").RetryableAfter(5 * time.Second)
	return e.WithCall(callID)
}

// Rule returns the approval rule that was effective when the call was held.
func Rule(a *ledger.Approval) (*risk.Approval, error) {
	rule := &risk.Approval{}
	if err := json.Unmarshal(a.Rule, rule); err != nil {
		return nil, schema.Errorf(schema.KindInternal, "The approval rule of %s cannot be read: %w", a.ID, err)
	}
	return rule, nil
}

// ByCaller reports whether the caller confirms the call; otherwise people decide. The answer
// can change while the call is held, if the policy changes.
func ByCaller(a *ledger.Approval) bool {
	rule, err := Rule(a)
	return err == nil && rule.By == risk.ByCaller
}

// Confirm spends a caller's token. If approve is true, the returned approval is running and
// the caller of Confirm must run the call at once; otherwise the call is denied. attempt
// identifies the request: if it is unknown whether Redis released the token, the same attempt
// may ask again. Errors: KindNotFound if the token is unknown, spent, or belongs to another
// principal, with the call it belonged to if who may see it; KindExpired; KindForbidden if a
// person must decide; KindUnavailable.
func (d *Desk) Confirm(ctx context.Context, token string, approve bool, who schema.Principal, attempt, runner string) (*ledger.Approval, error) {
	if approve {
		if err := d.reassessor.renewForCaller(ctx, confirm.ApprovalOf(token), who); err != nil {
			return nil, err
		}
	}
	mark := ledger.TokenUse{Attempt: attempt, At: d.records.wall(), By: who.Name}
	var was ledger.Approval
	is, err := d.tokens.Spend(ctx, who.Tenant, token, mark, func(a *ledger.Approval) error {
		was = *a
		return mayConfirm(a, who)
	}, d.records.closing(func(a *ledger.Approval) error {
		if d.records.over(a) {
			return errConfirmationExpired(a)
		}
		answer := ledger.Decision{By: who.Name, Owner: who.Owner, Groups: who.Groups, Kind: ledger.Approve, At: mark.At, Channel: ledger.ChannelToken}
		a.State = ledger.Running
		if !approve {
			answer.Kind, a.State = ledger.Deny, ledger.Denied
		} else {
			a.Runner = &ledger.Runner{FrontDoor: runner, Started: mark.At}
		}
		a.Decisions = append(a.Decisions, answer)
		if approve {
			return d.records.sign(a)
		}
		return nil
	}))
	if err != nil {
		return nil, tokenError(err, was.CallID)
	}
	d.records.recordChange(ctx, &was, is)
	return is, nil
}

// Confirmed returns the approval on which the same attempt of the same principal spent this
// token earlier, and whether it approved. It returns nil if there is none. It reads the ledger
// and changes nothing.
func (d *Desk) Confirmed(ctx context.Context, token string, who schema.Principal, attempt string) (a *ledger.Approval, approve bool, err error) {
	id := confirm.ApprovalOf(token)
	if id == "" {
		return nil, false, nil
	}
	switch a, err = d.records.ledger.Current(ctx, schema.OnlyTenant(who.Tenant), id); {
	case schema.KindOf(err) == schema.KindNotFound:
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case a.TokenHash != confirm.Hash(token) || !a.Binding.Of(&who) || a.Spent == nil || a.Spent.Attempt != attempt:
		return nil, false, nil
	}
	return a, a.Runner != nil, nil
}

// ConfirmOwn is [Desk.Confirm] for a call that was held when no client could receive its
// token, such as a call of a batch. The caller identifies the call by its id. If approve is
// true, the call is approved and the front door that claims it runs it. Errors: KindNotFound
// if the call does not belong to who; KindForbidden if a person must decide; KindConflict if
// it is decided; KindExpired; KindUnavailable.
func (d *Desk) ConfirmOwn(ctx context.Context, callID schema.CallID, approve bool, who schema.Principal) (*ledger.Approval, error) {
	none := schema.Errorf(schema.KindNotFound, "You have no held call %q.", callID)
	if approve {
		if err := d.reassessor.renewForCaller(ctx, ledger.IDFor(callID), who); err != nil {
			return nil, err
		}
	}
	a, err := d.records.change(ctx, who.Tenant, ledger.IDFor(callID), nil, func(a *ledger.Approval) error {
		if a.CallID != callID || !a.Binding.Of(&who) {
			return none // do not reveal that the call exists
		}
		if err := mayConfirm(a, who); err != nil {
			return err
		}
		switch {
		case a.State == ledger.Pending && d.records.over(a):
			return errConfirmationExpired(a)
		case a.State != ledger.Pending:
			return schema.Errorf(schema.KindConflict, "%s", WhyClosed(a)).WithCall(a.CallID)
		}
		answer := ledger.Decision{By: who.Name, Owner: who.Owner, Groups: who.Groups, Kind: ledger.Approve, At: d.records.wall(), Channel: ledger.ChannelCaller}
		if a.State = ledger.Approved; !approve {
			answer.Kind, a.State = ledger.Deny, ledger.Denied
		}
		a.Decisions = append(a.Decisions, answer)
		if approve {
			return d.records.sign(a)
		}
		return nil
	})
	if schema.KindOf(err) == schema.KindNotFound {
		return nil, none
	}
	return a, err
}

// mayConfirm runs before the token is spent, so that another principal's attempt does not
// burn it.
func mayConfirm(a *ledger.Approval, who schema.Principal) error {
	if !a.Binding.Of(&who) {
		return schema.Errorf(schema.KindNotFound, "The confirmation does not exist.")
	}
	rule, err := Rule(a)
	if err != nil {
		return err
	}
	if rule.By != risk.ByCaller {
		return schema.Errorf(schema.KindForbidden, "Somebody else must approve this call; the caller cannot confirm it.").WithCall(a.CallID)
	}
	return nil
}

// tokenError returns the reason why a token was not spent. callID is the call that the token
// belongs to, if known.
func tokenError(err error, callID schema.CallID) error {
	var used *confirm.SpentError
	var late *confirm.ExpiredError
	var lost *confirm.LostError
	switch {
	case errors.As(err, &used):
		return errTokenUsed(used.Approval)
	case errors.As(err, &late):
		return errConfirmationExpired(late.Approval)
	case errors.As(err, &lost):
		return schema.Errorf(schema.KindNotFound, "The store of confirmation tokens lost this confirmation, and the call was not run. Send the call again to get a new confirmation.").WithCall(lost.Approval.CallID)
	case errors.Is(err, confirm.ErrUnknown):
		return schema.Errorf(schema.KindNotFound, "The confirmation does not exist, or ended long ago.")
	case errors.Is(err, confirm.ErrDown):
		return tokensDown(callID)
	}
	return err
}

func errTokenUsed(a *ledger.Approval) error {
	return schema.Errorf(schema.KindNotFound, "This confirmation has already been used; GET /calls/%s returns the outcome.", a.CallID).WithCall(a.CallID)
}

func errConfirmationExpired(a *ledger.Approval) error {
	return schema.Errorf(schema.KindExpired, "This confirmation has expired; the call was not run. Send the call again to get a new confirmation.").WithCall(a.CallID)
}
