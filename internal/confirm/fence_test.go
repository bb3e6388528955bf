package confirm_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// faultRun is a run with many tokens, each confirmed by many racers at once, with a fault of Redis in the
// middle.
type faultRun struct {
	house  atomic.Pointer[confirmtest.Store]
	tokens []string
	runs   []atomic.Int32 // by token
}

const (
	fenceTokens = 200
	fenceRacers = 100
)

func newFaultRun(t *testing.T, h confirmtest.Store) *faultRun {
	t.Helper()
	f := &faultRun{runs: make([]atomic.Int32, fenceTokens)}
	f.house.Store(&h)
	for range fenceTokens {
		_, token := h.Hold(t, time.Now(), time.Hour)
		f.tokens = append(f.tokens, token)
	}
	return f
}

func (f *faultRun) confirm(t *testing.T, n int, attempt string) error {
	_, err := f.house.Load().Spend(t.Context(), f.tokens[n], attempt, time.Now())
	if err == nil {
		f.runs[n].Add(1)
	}
	return err
}

// race makes all racers confirm with all tokens, a hundred at a time. fault happens after half of them,
// while others are in flight. The last quarter of the tokens is confirmed after it. Racers that failed
// because of the fault retry at the end.
func (f *faultRun) race(t *testing.T, fault func()) {
	t.Helper()
	var through atomic.Int32
	half, after := make(chan struct{}), make(chan struct{})
	work := make(chan [2]int)
	var all sync.WaitGroup
	for range fenceRacers {
		all.Go(func() {
			for at := range work {
				_ = f.confirm(t, at[0], fmt.Sprintf("%d/%d", at[0], at[1]))
				if through.Add(1) == fenceTokens*fenceRacers/2 {
					close(half)
				}
			}
		})
	}
	all.Go(func() {
		defer close(work)
		for n := range fenceTokens {
			if n == fenceTokens*3/4 {
				<-after
			}
			for r := range fenceRacers {
				work <- [2]int{n, r}
			}
		}
	})
	<-half
	fault()
	close(after)
	all.Wait()
	for n := range fenceTokens {
		polltest.Until(t, "Redis answers", func() bool { return !errors.Is(f.confirm(t, n, "late"), confirm.ErrDown) })
	}
}

// check asserts that no call ran twice, and returns the number of calls that ran.
func (f *faultRun) check(t *testing.T) (ran int) {
	t.Helper()
	for n := range f.runs {
		got := int(f.runs[n].Load())
		if ran += got; got > 1 {
			t.Errorf("token %d ran %d times", n, got)
		}
	}
	return ran
}

func TestNoCallRunsTwiceAfterRedisFlush(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	f := newFaultRun(t, newTokenStore(t, openLedger(t, bustest.Start(t)), s.Gate(t, nil)))
	f.race(t, func() {
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
	// Tokens that were lost before they were spent cannot be spent: the calls must be requested again.
	if ran := f.check(t); ran < fenceTokens/4 || ran >= fenceTokens {
		t.Errorf("%d of %d ran", ran, fenceTokens)
	}
}

func TestNoCallRunsTwiceAfterRedisRestore(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	f := newFaultRun(t, newTokenStore(t, openLedger(t, bustest.Start(t)), s.Gate(t, nil)))
	if err := s.Dump(t.Context()); err != nil { // during which no token is spent
		t.Fatal(err)
	}
	f.race(t, func() { s = s.Restart(t) })
	if ran := f.check(t); ran != fenceTokens {
		t.Errorf("%d of %d ran", ran, fenceTokens)
	}
}

func TestNoCallRunsTwiceAfterReplicaPromotion(t *testing.T) {
	main := confirmtest.StartRedis(t, "", porttest.Address(t))
	replica := main.Replica(t)
	l := openLedger(t, bustest.Start(t))
	f := newFaultRun(t, newTokenStore(t, l, main.Gate(t, nil)))
	replica.Has(t, fenceTokens)
	// The replication link is cut: the replica does not receive later spends.
	if err := replica.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := newTokenStore(t, l, replica.Gate(t, nil))
	f.race(t, func() { f.house.Store(&promoted) })
	if ran := f.check(t); ran != fenceTokens {
		t.Errorf("%d of %d ran", ran, fenceTokens)
	}
}

func TestTokenIsSpentTwiceWithoutASharedLedger(t *testing.T) {
	// Control experiment: with two independent ledgers behind one Redis, calls run twice. So the
	// guarantee above comes from the ledger and not from Redis.
	s := confirmtest.StartRedis(t, "", "")
	one, two := newTokenStore(t, openLedger(t, bustest.Start(t)), s.Gate(t, nil)), openLedger(t, bustest.Start(t))
	a, token := one.Hold(t, time.Now(), time.Hour)
	again := a.Clone()
	if _, err := two.Create(t.Context(), again, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var spent *confirm.SpentError
	for _, h := range []confirmtest.Store{one, newTokenStore(t, two, s.Gate(t, nil))} {
		if _, err := h.Spend(t.Context(), token, "a", time.Now()); err != nil {
			t.Errorf("a ledger that says that it is unspent: %v", err)
		}
		if _, err := h.Spend(t.Context(), token, "b", time.Now()); !errors.As(err, &spent) {
			t.Errorf("a ledger that says that it is spent: %v", err)
		}
	}
}
