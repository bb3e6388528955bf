package approval

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/digest"
)

// Options says what a desk works on.
type Options struct {
	Ledger *ledger.Ledger
	Tokens confirm.Store
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Desk opens, decides and closes approvals. It is safe for concurrent use, by
// any number of desks on the same ledger.
type Desk struct {
	ledger *ledger.Ledger
	tokens confirm.Store
	now    func() time.Time
	log    *slog.Logger
}

// New returns a desk.
func New(o Options) *Desk {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Desk{ledger: o.Ledger, tokens: o.Tokens, now: o.Now, log: o.Log}
}

// Held is a call that waits for a yes.
type Held struct {
	Approval *ledger.Approval
	// Token is the single-use secret with which the caller itself confirms; empty
	// where people decide. It is known here and to the caller, and to nobody else.
	Token string
}

// Open holds a call. definition is the tool's definition as the server sent it;
// the assessment must ask for an approval. Errors are of KindUnavailable when
// the ledger or the token store does not answer; then nothing is held that
// anybody could approve.
func (d *Desk) Open(ctx context.Context, call *schema.Call, definition json.RawMessage, a *risk.Assessment, callbackURL string) (*Held, error) {
	rule := a.Approval
	if rule == nil {
		return nil, schema.Errorf(schema.KindInternal, "An approval was opened for a call that needs none.")
	}
	encoded, err := json.Marshal(rule)
	if err != nil {
		return nil, schema.Errorf(schema.KindInternal, "The approval rule cannot be stored: %w", err)
	}
	now := d.now().UTC()
	expires := now.Add(rule.Expires)
	record := &ledger.Approval{
		ID: ledger.IDFor(call.ID), CallID: call.ID, Reasons: a.Reasons, Rule: encoded, Definition: definition,
		Binding: ledger.Binding{
			Requester: ledger.Requester{Name: call.Principal.Name, Owner: call.Principal.Owner},
			Server:    call.Server, Tool: call.Tool, ToolDefinitionDigest: call.ToolDigest, ArgumentsDigest: digest.Of(call.Arguments),
			PolicyVersion: a.Version, Level: a.Level, Deadline: expires,
		},
		Created: now, Expires: expires, Safe: call.Safe, Timeout: call.Timeout, CallbackURL: callbackURL,
	}
	held := &Held{Approval: record}
	if rule.By == risk.ByCaller {
		// The token comes first: a record without its token could never be spent,
		// a token without its record is worth nothing.
		if held.Token, err = d.tokens.Mint(ctx, record.ID, "", rule.Expires); err != nil {
			return nil, tokensDown(err, call.ID)
		}
		record.TokenHash = confirm.Hash(held.Token)
	}
	if _, err := d.ledger.Create(ctx, record, call.Arguments); err != nil {
		return nil, err
	}
	return held, nil
}

func tokensDown(err error, callID string) error {
	e := schema.Errorf(schema.KindUnavailable, "Calls that need a confirmation cannot be taken at the moment, because the store of confirmation tokens does not answer; calls of low risk run. (%w)", err)
	e.Retryable, e.RetryAfter = true, 5*time.Second
	return e.WithCall(callID)
}

// Rule returns the approval rule that was in force when the call was held.
func Rule(a *ledger.Approval) (*risk.Approval, error) {
	rule := &risk.Approval{}
	if err := json.Unmarshal(a.Rule, rule); err != nil {
		return nil, schema.Errorf(schema.KindInternal, "The approval rule of %s cannot be read: %w", a.ID, err)
	}
	return rule, nil
}

// Confirm spends a caller's token: with yes the call goes to the runner at once,
// without it is denied. attempt names the request, so that a repetition of the
// same request is not refused. The returned approval is running (and the caller
// of Confirm must run it) or denied. Errors: KindNotFound for a token that is
// unknown or spent, with the call that it belonged to where that is known;
// KindGone when its time is over; KindForbidden when it is not who's, or when a
// person must decide; KindUnavailable.
func (d *Desk) Confirm(ctx context.Context, token string, yes bool, who schema.Principal, attempt, runner string) (*ledger.Approval, error) {
	grant, err := d.tokens.Find(ctx, token)
	if err == nil {
		err = d.mayConfirm(ctx, grant.ApprovalID, who)
	}
	if err == nil {
		grant, err = d.tokens.Take(ctx, token, attempt)
	}
	if err != nil {
		return nil, d.tokenError(ctx, err)
	}
	hash := confirm.Hash(token)
	return d.ledger.Change(ctx, grant.ApprovalID, func(a *ledger.Approval) error {
		if a.State != ledger.Pending || a.Spent != nil || a.TokenHash != hash {
			return spent(a)
		}
		now := d.now().UTC()
		if !now.Before(a.Expires) {
			return expired(a)
		}
		a.Spent = &ledger.Spent{Attempt: attempt, At: now, By: who.Name}
		answer := ledger.Decision{By: who.Name, Owner: who.Owner, Groups: who.Groups, Kind: ledger.Approve, At: now, Channel: "token"}
		a.State = ledger.Running
		if !yes {
			answer.Kind, a.State = ledger.Deny, ledger.Denied
		} else {
			a.Runner = &ledger.Runner{FrontDoor: runner, Started: now}
		}
		a.Decisions = append(a.Decisions, answer)
		return nil
	})
}

// mayConfirm checks before the token is spent, so that a stranger's try does not
// burn it.
func (d *Desk) mayConfirm(ctx context.Context, id string, who schema.Principal) error {
	a, _, err := d.ledger.Get(ctx, id)
	if err != nil {
		return err
	}
	rule, err := Rule(a)
	if err != nil {
		return err
	}
	if rule.By != risk.ByCaller {
		return schema.Errorf(schema.KindForbidden, "Somebody else must approve this call; the caller cannot confirm it.").WithCall(a.CallID)
	}
	if a.Binding.Requester.Name != who.Name {
		return schema.Errorf(schema.KindNotFound, "There is no such confirmation.")
	}
	return nil
}

func (d *Desk) tokenError(ctx context.Context, err error) error {
	var used *confirm.SpentError
	var late *confirm.ExpiredError
	switch {
	case errors.As(err, &used):
		if a, _, getErr := d.ledger.Get(ctx, used.ApprovalID); getErr == nil {
			return spent(a)
		}
		return schema.Errorf(schema.KindNotFound, "This confirmation was used already.")
	case errors.As(err, &late):
		if a, _, getErr := d.ledger.Get(ctx, late.ApprovalID); getErr == nil {
			return expired(a)
		}
		return schema.Errorf(schema.KindExpired, "This confirmation has expired; nothing was run.")
	case errors.Is(err, confirm.ErrUnknown):
		return schema.Errorf(schema.KindNotFound, "There is no such confirmation, or it is long over.")
	case errors.Is(err, confirm.ErrDown):
		return tokensDown(err, "")
	}
	return err
}

func spent(a *ledger.Approval) error {
	return schema.Errorf(schema.KindNotFound, "This confirmation was used already; GET /calls/%s tells what came of it.", a.CallID).WithCall(a.CallID)
}

func expired(a *ledger.Approval) error {
	return schema.Errorf(schema.KindExpired, "This confirmation has expired; the call was not run. Send the call again to be asked again.").WithCall(a.CallID)
}
