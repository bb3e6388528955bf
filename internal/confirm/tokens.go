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

// New returns the tokens of the ledger's approvals. gate, when not nil, stands
// before the ledger and is closed by [Tokens.Close]; the ledger stays the
// caller's.
func New(l *ledger.Ledger, gate *Redis) *Tokens { return &Tokens{l, gate} }

var (
	// ErrUnknown means that no such token was minted, or that it is forgotten.
	ErrUnknown = errors.New("this token is unknown")
	// ErrDown means that Redis does not answer, or refuses; nothing was spent in the ledger, and
	// the same attempt may ask again.
	ErrDown = errors.New("the store of confirmation tokens is not available")
)

// SpentError says that the token was spent, or that its approval was decided.
type SpentError struct{ Approval *ledger.Approval }

func (e *SpentError) Error() string {
	return "this token has already been used, for approval " + string(e.Approval.ID)
}

// ExpiredError says that the token's time has expired.
type ExpiredError struct{ Approval *ledger.Approval }

func (e *ExpiredError) Error() string {
	return "this token has expired, for approval " + string(e.Approval.ID)
}

// LostError says that the token is one of ours and good, and that Redis does not
// know it any more. The call must be asked for again.
type LostError struct{ Approval *ledger.Approval }

func (e *LostError) Error() string {
	return "Redis has lost the token of approval " + string(e.Approval.ID)
}

// Mint makes the token of an approval that is about to be held, good for ttl.
// Its [Hash] belongs into the approval's record, and without that it is worth
// nothing. Errors: [ErrDown].
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

// Spend spends a token of a tenant's call for the attempt that mark names, and has apply change the
// approval in the same step: of all who try one succeeds. may is asked before
// anything is spent; like apply it may be called several times and must only
// look (apply: only change its argument). Errors of both are returned as they
// are. Others: [ErrUnknown], [SpentError], [ExpiredError], [LostError],
// [ErrDown], and those of [ledger.Ledger.Change].
//
// The attempt is a text that the caller makes up for one request and repeats
// when it asks again because no answer came. A token that Redis gave to another
// attempt can be spent for as long as the ledger says that it was not: the other
// attempt may have lost the ledger in between.
func (t *Tokens) Spend(ctx context.Context, tenant schema.TenantID, token string, mark ledger.Spent, may, apply func(*ledger.Approval) error) (*ledger.Approval, error) {
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
		if errors.As(err, new(*SpentError)) {
			err = t.takenInVain(ctx, tenant, id, look)
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

// takenInVain looks in the ledger, with all that was acknowledged, whether a token
// that Redis gave away was spent: the process that took it may have died or lost the
// ledger before it could spend it. Where it is unspent, the ledger decides.
func (t *Tokens) takenInVain(ctx context.Context, tenant schema.TenantID, id schema.ApprovalID, look func(*ledger.Approval) error) error {
	a, err := t.ledger.Current(ctx, schema.OnlyTenant(tenant), id)
	if err != nil {
		return err
	}
	return look(a)
}

// unknown makes one of the two ways in which a token belongs to no approval.
func unknown(err error) error {
	if schema.KindOf(err) == schema.KindNotFound {
		return ErrUnknown
	}
	return err
}

// Close closes what stands before the ledger.
func (t *Tokens) Close() {
	if t.gate != nil {
		t.gate.Close()
	}
}

// Up says that tokens are minted and spent: always without Redis, and with it while Redis
// takes them.
func (t *Tokens) Up() bool { return t.gate == nil || !t.gate.health.down.Load() }
