package confirm

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Tokens mints and spends tokens. It is safe for concurrent use.
type Tokens struct {
	ledger *ledger.Ledger
	gate   *Redis
}

// New returns the tokens of the ledger's approvals. If gate is not nil, it is checked before
// the ledger and [Tokens.Close] closes it. The caller owns the ledger.
func New(l *ledger.Ledger, gate *Redis) *Tokens { return &Tokens{l, gate} }

var (
	// ErrUnknown means that the token was never minted, or is forgotten.
	ErrUnknown = errors.New("this token is unknown")
	// ErrDown means that Redis does not answer or refuses. Nothing was spent in the ledger, and
	// the same attempt may try again.
	ErrDown = errors.New("the store of confirmation tokens is not available")
)

// SpentError means that the token was spent, or that its approval was decided.
type SpentError struct{ Approval *ledger.Approval }

func (e *SpentError) Error() string {
	return "this token has already been used, for approval " + string(e.Approval.ID)
}

// ExpiredError means that the token has expired.
type ExpiredError struct{ Approval *ledger.Approval }

func (e *ExpiredError) Error() string {
	return "this token has expired, for approval " + string(e.Approval.ID)
}

// LostError means that the token is genuine and valid, but Redis no longer has it. The caller
// must request the call again.
type LostError struct{ Approval *ledger.Approval }

func (e *LostError) Error() string {
	return "Redis has lost the token of approval " + string(e.Approval.ID)
}

// Mint creates the token of an approval that is about to be held. The token is valid for ttl.
// Its [Hash] must be stored in the approval's record; without that the token is useless.
// Errors: [ErrDown].
func (t *Tokens) Mint(ctx context.Context, approvalID schema.ApprovalID, ttl time.Duration) (string, error) {
	if !plainID(approvalID) || ttl <= 0 {
		return "", fmt.Errorf("a token needs an approval (%q) and time to be spent in (%s)", approvalID, ttl)
	}
	token := newToken(approvalID)
	if t.gate == nil {
		return token, nil
	}
	return token, t.gate.put(ctx, Hash(token), approvalID, ttl)
}

// Spend spends a token of a tenant's call for the attempt in mark, and changes the approval
// with apply in the same step. If several attempts spend one token, one succeeds. may is
// checked before anything is spent. Both functions may be called several times: may must have
// no side effects, and apply may change only its argument. Their errors are returned
// unchanged. Other errors: [ErrUnknown], [SpentError], [ExpiredError], [LostError], [ErrDown],
// and those of [ledger.Ledger.Change].
//
// The caller chooses a text that identifies the attempt, and repeats it when it retries because
// no answer arrived. A token that Redis released to another attempt can still be spent as long
// as it is unspent in the ledger: the other attempt may have lost the ledger in between.
func (t *Tokens) Spend(ctx context.Context, tenant schema.TenantID, token string, mark ledger.TokenUse, may, apply func(*ledger.Approval) error) (*ledger.Approval, error) {
	id := ApprovalOf(token)
	if id == "" {
		return nil, ErrUnknown
	}
	if mark.Attempt == "" {
		return nil, errors.New("a token is spent by an attempt, and none was named")
	}
	hash := Hash(token)
	look := func(a *ledger.Approval) error {
		if subtle.ConstantTimeCompare([]byte(a.TokenHash), []byte(hash)) != 1 {
			return ErrUnknown
		}
		if err := may(a); err != nil {
			return err
		}
		switch {
		case a.State == ledger.Expired:
			return &ExpiredError{a}
		case a.State != ledger.Pending || a.Spent != nil:
			return &SpentError{a}
		case !mark.At.Before(a.Expires):
			return &ExpiredError{a}
		}
		return nil
	}
	if t.gate != nil {
		a, err := t.ledger.Check(ctx, tenant, id, look)
		if err == nil {
			err = t.gate.take(ctx, hash, mark.Attempt, a)
		}
		if errors.As(err, new(*SpentError)) || errors.As(err, new(*ExpiredError)) {
			err = t.checkUnspent(ctx, tenant, id, look)
		}
		if err != nil {
			return nil, unknown(err)
		}
	}
	a, err := t.ledger.Change(ctx, tenant, id, func(a *ledger.Approval) error {
		if err := look(a); err != nil {
			return err
		}
		a.Spent = &mark
		return apply(a)
	})
	return a, unknown(err)
}

// checkUnspent checks in the ledger, with everything that was acknowledged, whether a token
// that Redis released or that has expired there can be spent. The process that took it may have
// died or lost the ledger before it could spend the token, and an approval that started again
// under another rule has a later deadline than Redis knows. The ledger decides.
func (t *Tokens) checkUnspent(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, look func(*ledger.Approval) error) error {
	a, err := t.ledger.Current(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return err
	}
	return look(a)
}

// unknown returns [ErrUnknown] for a missing approval, and other errors unchanged.
func unknown(err error) error {
	if schema.KindOf(err) == schema.KindNotFound {
		return ErrUnknown
	}
	return err
}

// Close closes the gate, if there is one.
func (t *Tokens) Close() {
	if t.gate != nil {
		t.gate.Close()
	}
}

// Up reports whether tokens can be minted and spent. Without Redis it is always true.
func (t *Tokens) Up() bool { return t.gate == nil || !t.gate.health.down.Load() }
