// Package confirmtest provides the test suite for confirmation tokens with and without a gate
// before the ledger, and the Redis servers that tests use as that gate. It must not be used
// outside tests.
package confirmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/schema"
)

// Clock is a clock that moves only with [Clock.Advance]. It is safe for concurrent use.
type Clock struct{ ahead atomic.Int64 }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.ahead.Load()))
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Store holds tokens and the ledger on which they are spent.
type Store struct {
	Tokens *confirm.Tokens
	Ledger *ledger.Ledger
}

// Run runs the suite. open returns a store whose gate, if any, uses now as its clock. open must
// also arrange to close the store.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) Store) {
	for name, f := range map[string]func(*testing.T, *testBench){
		"TokenIsSpentOnceByConcurrentConfirmations": func(t *testing.T, b *testBench) { confirmConcurrently(t, b, 200, 100) },
		"RefusedAttemptLeavesTheTokenValid":         testForeignTokens,
		"TokenBelongsToOneApproval":                 bound,
		"TokenOfADecidedCallIsSpent":                decided,
		"RepeatedAttemptSpendsOnce":                 retries,
		"TokenExpires":                              expiry,
		"TokenThatWasNotMintedIsUnknown":            unknown,
		"RefusalByTheLedgerSpendsNothing":           refused,
		"LostAnswerNeverAllowsASecondRun":           testLostTokens,
	} {
		t.Run(name, func(t *testing.T) {
			clock := new(Clock)
			f(t, &testBench{open(t, clock.Now), clock})
		})
	}
}

type testBench struct {
	Store
	*Clock
}

// Hold stores an approval with a token in the ledger.
func (h Store) Hold(t testing.TB, now time.Time, ttl time.Duration) (*ledger.Approval, string) {
	t.Helper()
	call := schema.NewCallID()
	token, err := h.Tokens.Mint(t.Context(), ledger.IDFor(call), ttl)
	if err != nil {
		t.Fatal(err)
	}
	a := &ledger.Approval{CallID: call, Created: now.UTC(), Expires: now.Add(ttl).UTC(), TokenHash: confirm.Hash(token)}
	if _, err := h.Ledger.Create(t.Context(), a, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return a, token
}

func (b *testBench) hold(t *testing.T) (*ledger.Approval, string) {
	t.Helper()
	return b.Hold(t, b.Now(), time.Minute)
}

func noCheck(*ledger.Approval) error { return nil }

// Running returns the change that a front door makes when it spends a token.
func Running(runner string) func(*ledger.Approval) error {
	return func(a *ledger.Approval) error {
		a.State, a.Runner = ledger.Running, &ledger.Runner{FrontDoor: runner, Started: time.Now().UTC()}
		return nil
	}
}

// Spend spends a token as a front door does.
func (h Store) Spend(ctx context.Context, token, attempt string, at time.Time) (*ledger.Approval, error) {
	return h.Tokens.Spend(ctx, schema.DefaultTenant, token, ledger.TokenUse{Attempt: attempt, At: at.UTC(), By: "ann"}, noCheck, Running(attempt))
}

func (b *testBench) spend(t *testing.T, token, attempt string) (*ledger.Approval, error) {
	t.Helper()
	return b.Spend(t.Context(), token, attempt, b.Now())
}

func confirmConcurrently(t *testing.T, b *testBench, tokens, racers int) {
	for i := range tokens {
		a, token := b.hold(t)
		var won, spent atomic.Int32
		var ready, all sync.WaitGroup
		ready.Add(racers)
		for r := range racers {
			all.Go(func() {
				ready.Done()
				ready.Wait()
				got, err := b.spend(t, token, fmt.Sprint("attempt ", r))
				var already *confirm.SpentError
				switch {
				case err == nil && got.ID == a.ID && got.State == ledger.Running:
					won.Add(1)
				case errors.As(err, &already) && already.Approval.CallID == a.CallID:
					spent.Add(1)
				default:
					t.Errorf("token %d: %v, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || int(spent.Load()) != racers-1 {
			t.Fatalf("token %d: %d spent it, %d found it spent, of %d", i, won.Load(), spent.Load(), racers)
		}
	}
}

func testForeignTokens(t *testing.T, b *testBench) {
	_, token := b.hold(t)
	no := errors.New("not yours")
	for i := range 3 {
		mark := ledger.TokenUse{Attempt: fmt.Sprint("stranger ", i), At: b.Now()}
		if _, err := b.Tokens.Spend(t.Context(), schema.DefaultTenant, token, mark, func(*ledger.Approval) error { return no }, Running("x")); !errors.Is(err, no) {
			t.Errorf("a stranger: %v", err)
		}
	}
	if got, err := b.spend(t, token, "mine"); err != nil || got.Spent.Attempt != "mine" || got.Spent.By != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
}

func bound(t *testing.T, b *testBench) {
	one, first := b.hold(t)
	two, second := b.hold(t)
	if first == second || confirm.ApprovalOf(first) != one.ID || confirm.ApprovalOf(second) != two.ID || !strings.HasPrefix(first, "cyt_") {
		t.Errorf("tokens %q and %q", first, second)
	}
	// The name of one token with the secret of the other.
	crossed := "cyt_" + string(two.ID) + first[len("cyt_")+len(one.ID):]
	if _, err := b.spend(t, crossed, "a"); !errors.Is(err, confirm.ErrUnknown) {
		t.Errorf("a crossed token: %v", err)
	}
	for _, token := range []string{first, second} {
		if _, err := b.spend(t, token, "a"); err != nil {
			t.Error(err)
		}
	}
	for name, err := range map[string]error{
		"no time":     second2(b.Tokens.Mint(t.Context(), "appr_1", 0)),
		"no approval": second2(b.Tokens.Mint(t.Context(), "", time.Minute)),
		"no name":     second2(b.Tokens.Mint(t.Context(), "a.b", time.Minute)),
		"no attempt":  second2(b.spend(t, first, "")),
	} {
		if err == nil || errors.Is(err, confirm.ErrDown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second2[T any](_ T, err error) error { return err }

func decided(t *testing.T, b *testBench) {
	for _, state := range []ledger.State{ledger.Denied, ledger.Canceled, ledger.Revoked, ledger.Expired} {
		a, token := b.hold(t)
		if _, err := b.Ledger.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error { a.State = state; return nil }); err != nil {
			t.Fatal(err)
		}
		var spent *confirm.SpentError
		var expired *confirm.ExpiredError
		if _, err := b.spend(t, token, "a"); !errors.As(err, &spent) && !(state == ledger.Expired && errors.As(err, &expired)) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func retries(t *testing.T, b *testBench) {
	a, token := b.hold(t)
	var all sync.WaitGroup
	var won atomic.Int32
	for range 50 {
		all.Go(func() {
			_, err := b.spend(t, token, "mine")
			var spent *confirm.SpentError
			if err == nil {
				won.Add(1)
			} else if !errors.As(err, &spent) || spent.Approval.ID != a.ID {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d tries of one attempt spent it", won.Load())
	}
}

func expiry(t *testing.T, b *testBench) {
	_, early := b.hold(t)
	late, lateToken := b.hold(t)
	b.Advance(time.Minute - time.Millisecond)
	if _, err := b.spend(t, early, "a"); err != nil {
		t.Errorf("just in time: %v", err)
	}
	b.Advance(time.Millisecond)
	for range 2 {
		var expired *confirm.ExpiredError
		if _, err := b.spend(t, lateToken, "a"); !errors.As(err, &expired) || expired.Approval.ID != late.ID {
			t.Errorf("just too late: %v", err)
		}
	}
}

func unknown(t *testing.T, b *testBench) {
	a, token := b.hold(t)
	flipped := []byte(token)
	if flipped[len(token)-3]++; flipped[len(token)-3] > 'z' || flipped[len(token)-3] == '[' || flipped[len(token)-3] == ':' {
		flipped[len(token)-3] = 'b'
	}
	for _, other := range []string{
		"", "cyt_", string(flipped), token + "A", token[:len(token)-1], strings.ToUpper(token), " " + token, token + "\n",
		confirm.Hash(token), "cyt_{}*>.$", "cyt_" + string(a.ID) + "_", "cyt_" + string(a.ID), "cyt_appr_none" + token[len("cyt_")+len(a.ID):],
		"cyt_" + strings.Repeat("a", 65) + token[len("cyt_")+len(a.ID):], "cyt_>" + token[len("cyt_")+len(a.ID):],
	} {
		if _, err := b.spend(t, other, "a"); !errors.Is(err, confirm.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
	}
	// No token fits an approval that has none.
	call := schema.NewCallID()
	tokenless := &ledger.Approval{CallID: call, Created: b.Now(), Expires: b.Now().Add(time.Minute)}
	if _, err := b.Ledger.Create(t.Context(), tokenless, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.spend(t, "cyt_"+string(tokenless.ID)+token[len("cyt_")+len(a.ID):], "a"); !errors.Is(err, confirm.ErrUnknown) {
		t.Errorf("an approval without a token: %v", err)
	}
	if _, err := b.spend(t, token, "a"); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

func refused(t *testing.T, b *testBench) {
	_, token := b.hold(t)
	no := errors.New("not now")
	mark := ledger.TokenUse{Attempt: "mine", At: b.Now()}
	if _, err := b.Tokens.Spend(t.Context(), schema.DefaultTenant, token, mark, noCheck, func(*ledger.Approval) error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if _, err := b.spend(t, token, "mine"); err != nil {
		t.Errorf("the same attempt again: %v", err)
	}
}

func testLostTokens(t *testing.T, b *testBench) {
	for range 20 {
		a, token := b.hold(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, first := b.Spend(ctx, token, "gone", b.Now())
		if first != nil && !errors.Is(first, confirm.ErrDown) && schema.KindOf(first) != schema.KindUnavailable {
			t.Errorf("the caller that is gone: %v", first)
		}
		_, again := b.spend(t, token, "again")
		var spent *confirm.SpentError
		if first == nil && again == nil || again != nil && !errors.As(again, &spent) {
			t.Errorf("first %v, then %v", first, again)
		}
		if got, err := b.Ledger.Current(t.Context(), schema.AllTenants(), a.ID); err != nil || got.State != ledger.Running {
			t.Errorf("%v, %v", got, err)
		}
	}
}
