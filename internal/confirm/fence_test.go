package confirm_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// fence is a run of many confirmations, each asked for by many at once, with a
// fault of Redis in the middle.
type fence struct {
	l      *ledger.Ledger
	store  atomic.Pointer[confirm.Redis]
	ids    []string
	tokens []string
	runs   []atomic.Int32 // by approval
	takes  []atomic.Int32
}

const (
	fenceApprovals = 40
	fenceRacers    = 16
)

func newFence(t *testing.T, store *confirm.Redis) *fence {
	t.Helper()
	l, err := ledger.Open(t.Context(), bustest.Start(t).Connect(t, "test"), ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	f := &fence{l: l, runs: make([]atomic.Int32, fenceApprovals), takes: make([]atomic.Int32, fenceApprovals)}
	f.store.Store(store)
	for range fenceApprovals {
		a := &ledger.Approval{CallID: schema.NewCallID(), Expires: time.Now().Add(time.Hour)}
		if _, err := l.Create(t.Context(), a, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		token, err := store.Mint(t.Context(), a.ID, a.BindingDigest, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		f.ids, f.tokens = append(f.ids, a.ID), append(f.tokens, token)
	}
	return f
}

// confirm is what a front door does with a token: take, pass the fence, run.
func (f *fence) confirm(t *testing.T, n int, token, attempt string) error {
	g, err := f.store.Load().Take(t.Context(), token, attempt)
	if err != nil {
		return err // refused, or Redis is down: nothing runs
	}
	f.takes[n].Add(1)
	if g.ApprovalID != f.ids[n] {
		t.Errorf("a token of %s is for %s", f.ids[n], g.ApprovalID)
		return nil
	}
	_, err = f.l.Change(t.Context(), g.ApprovalID, func(a *ledger.Approval) error {
		if a.State != ledger.Pending {
			return schema.Errorf(schema.KindConflict, "It is %s.", a.State)
		}
		a.State, a.Spent = ledger.Running, &ledger.Spent{Attempt: attempt, At: time.Now()}
		a.Runner = &ledger.Runner{FrontDoor: attempt, Started: time.Now()}
		return nil
	})
	if err == nil {
		f.runs[n].Add(1)
	}
	return nil
}

// race has all racers confirm all approvals; fault happens when half of them
// are through.
func (f *fence) race(t *testing.T, fault func()) {
	t.Helper()
	var through atomic.Int32
	half := make(chan struct{})
	var all sync.WaitGroup
	for n := range fenceApprovals {
		for r := range fenceRacers {
			all.Go(func() {
				_ = f.confirm(t, n, f.tokens[n], fmt.Sprintf("%d/%d", n, r))
				if through.Add(1) == fenceApprovals*fenceRacers/2 {
					close(half)
				}
			})
		}
	}
	<-half
	fault()
	all.Wait()
	// Once more for each, with the token as Redis has it now.
	for n := range fenceApprovals {
		wait(t, func() bool { return !errors.Is(f.confirm(t, n, f.tokens[n], "late"), confirm.ErrDown) })
	}
}

// check asserts that nothing ran twice, and counts what Redis gave twice.
func (f *fence) check(t *testing.T) (again int) {
	t.Helper()
	for n := range f.runs {
		if got := f.runs[n].Load(); got > 1 {
			t.Errorf("approval %d ran %d times", n, got)
		}
		if f.takes[n].Load() > 1 {
			again++
		}
	}
	return again
}

func (f *fence) ran() (n int) {
	for i := range f.runs {
		n += int(f.runs[i].Load())
	}
	return n
}

func TestAFlushedRedisRunsNothingTwice(t *testing.T) {
	s := startRedis(t, "", "")
	f := newFence(t, s.store(t, nil))
	c := redis.NewClient(&redis.Options{Addr: s.address})
	defer c.Close()
	f.race(t, func() {
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		// What was lost is asked for anew: a second token for each approval.
		for n := range f.ids {
			token, err := f.store.Load().Mint(t.Context(), f.ids[n], "", time.Hour)
			if err != nil {
				t.Error(err)
				return
			}
			if err := f.confirm(t, n, token, "anew"); err != nil {
				t.Errorf("with a new token: %v", err)
			}
		}
	})
	if again := f.check(t); again == 0 {
		t.Error("no approval was granted twice: the test shows nothing")
	}
	if f.ran() != fenceApprovals {
		t.Errorf("%d of %d ran", f.ran(), fenceApprovals)
	}
}

func TestARestoredRedisRunsNothingTwice(t *testing.T) {
	s := startRedis(t, "", "")
	store := s.store(t, nil)
	f := newFence(t, store)
	c := redis.NewClient(&redis.Options{Addr: s.address})
	defer c.Close()
	if err := c.Save(t.Context()).Err(); err != nil { // a dump in which no token is spent
		t.Fatal(err)
	}
	f.race(t, func() {
		s.kill()
		if _, err := os.Stat(filepath.Join(s.dir, "dump.rdb")); err != nil {
			t.Error(err)
		}
		startRedis(t, s.dir, "")
	})
	if again := f.check(t); again == 0 {
		t.Error("the old dump gave no token twice: the test shows nothing")
	}
	if f.ran() != fenceApprovals {
		t.Errorf("%d of %d ran", f.ran(), fenceApprovals)
	}
}

func TestAPromotedReplicaRunsNothingTwice(t *testing.T) {
	at, other := freeAddress(t), freeAddress(t)
	main := startRedis(t, "", at)
	host, port := "127.0.0.1", at[len("127.0.0.1:"):]
	replica := startRedis(t, "", other, "--replicaof", host+" "+port)
	f := newFence(t, main.store(t, nil))
	c := redis.NewClient(&redis.Options{Addr: other})
	defer c.Close()
	wait(t, func() bool {
		n, err := c.DBSize(t.Context()).Result()
		return err == nil && n == fenceApprovals
	})
	// The link between the two is cut: what is spent from here on, the replica
	// does not know.
	if err := c.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	promoted := replica.store(t, nil)
	f.race(t, func() { f.store.Store(promoted) })
	if again := f.check(t); again == 0 {
		t.Error("the replica gave no token twice: the test shows nothing")
	}
	if f.ran() != fenceApprovals {
		t.Errorf("%d of %d ran", f.ran(), fenceApprovals)
	}
}

func TestWithoutTheFenceARestoredRedisWouldRunTwice(t *testing.T) {
	// The proof that the fence, and not Redis, keeps the promise above.
	s := startRedis(t, "", "")
	store := s.store(t, nil)
	token, err := store.Mint(t.Context(), "appr_1", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: s.address})
	defer c.Close()
	if err := c.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Take(t.Context(), token, "a"); err != nil {
		t.Fatal(err)
	}
	var spent *confirm.SpentError
	if _, err := store.Take(t.Context(), token, "b"); !errors.As(err, &spent) {
		t.Fatal(err)
	}
	s.kill()
	startRedis(t, s.dir, "")
	if _, err := store.Take(t.Context(), token, "b"); err != nil {
		t.Errorf("the old dump does not give the token again: %v", err)
	}
}
