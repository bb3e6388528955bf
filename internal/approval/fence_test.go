package approval_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/approval"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

// four returns two front doors and two approvers on one ledger, each with its own connection. If gate
// is not nil, it creates a gate before the ledger for each.
func four(t *testing.T, gate func() *confirm.Redis) [4]*fixture {
	t.Helper()
	srv := bustest.Start(t)
	var desks [4]*fixture
	var c *clock
	for i := range desks {
		desks[i] = open(t, srv, c, func(o *approval.Options) {
			if gate != nil {
				o.Tokens = confirm.New(o.Ledger, gate())
				t.Cleanup(o.Tokens.Close)
			}
		})
		c = desks[i].clock
	}
	return desks
}

// race confirms a token that number of times concurrently, spread over the desks, while the approvers
// reconcile. It returns the number of calls that ran.
func race(t *testing.T, desks [4]*fixture, h *approval.Held, racers int, lost func(error) bool) (ran int64) {
	t.Helper()
	var runs atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		desk := desks[i%len(desks)].desk
		all.Go(func() {
			<-start
			a, err := desk.Confirm(context.Background(), h.Token, true, agent, fmt.Sprint(i), "door")
			switch {
			case err == nil && a.State == ledger.Running && a.ID == h.Approval.ID:
				runs.Add(1)
			case schema.KindOf(err) == schema.KindNotFound && schema.AsError(err).CallID == h.Approval.CallID:
			case lost != nil && lost(err):
			default:
				t.Errorf("%v", err)
			}
		})
	}
	for _, r := range desks[2:] {
		all.Go(func() {
			<-start
			if _, err := r.desk.Reconcile(context.Background(), func(string) bool { return true }); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	return runs.Load()
}

// Of a hundred concurrent confirmations over two front doors and two approvers, exactly one runs, for
// each of two hundred tokens. The other ninety-nine callers learn the id of the call.
func TestExactlyOneOfConcurrentConfirmationsRuns(t *testing.T) {
	desks := four(t, nil)
	for n := range 200 {
		if ran := race(t, desks, desks[n%2].hold(byCaller()), 100, nil); ran != 1 {
			t.Fatalf("token %d: %d ran it", n, ran)
		}
	}
}

func TestAThousandConfirmationsOfOneTokenRunItOnce(t *testing.T) {
	desks := four(t, nil)
	// With a thousand concurrent writes, some may fail with a timeout.
	if ran := race(t, desks, desks[0].hold(byCaller()), 1000, down); ran != 1 {
		t.Errorf("%d ran it", ran)
	}
}

// down reports whether the error is one that callers may get while Redis is away. It must name the call
// too.
func down(err error) bool {
	return schema.KindOf(err) == schema.KindUnavailable && schema.AsError(err).CallID != ""
}

func TestNoFaultOfRedisRunsACallTwice(t *testing.T) {
	tokens, racers := 24, 100
	if testing.Short() {
		tokens = 6
	}
	for name, f := range map[string]func(*testing.T, *confirmtest.Redis) (fault func(), after func() *confirmtest.Redis){
		"flushed": func(t *testing.T, s *confirmtest.Redis) (func(), func() *confirmtest.Redis) {
			return func() {
				if err := s.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}, nil
		},
		"restarted from an old dump": func(t *testing.T, s *confirmtest.Redis) (func(), func() *confirmtest.Redis) {
			if err := s.Dump(t.Context()); err != nil {
				t.Fatal(err)
			}
			return func() { s.Restart(t) }, nil
		},
		"failed over": func(t *testing.T, s *confirmtest.Redis) (func(), func() *confirmtest.Redis) {
			replica := s.Replica(t)
			replica.Has(t, tokens)
			return func() {
				if err := replica.Promote(t.Context()); err != nil {
					t.Error(err)
				}
			}, func() *confirmtest.Redis { return replica }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := confirmtest.StartRedis(t, "", porttest.Address(t))
			desks := four(t, func() *confirm.Redis { return s.Gate(t, nil) })
			held := make([]*approval.Held, tokens)
			for i := range held {
				held[i] = desks[i%2].hold(byCaller())
			}
			fault, after := f(t, s)
			ran := make([]int64, tokens)
			var all sync.WaitGroup
			half := make(chan struct{})
			all.Go(func() { <-half; fault() })
			for i, h := range held {
				if i == tokens/2 {
					close(half) // the races continue in the meantime
				}
				ran[i] = race(t, desks, h, racers, down)
			}
			all.Wait()
			// This holds for every later answer of Redis, also for tokens that were spent long ago.
			if after != nil {
				promoted := after()
				for i := range desks {
					desks[i] = with(t, desks[i], promoted.Gate(t, nil))
				}
			}
			for i, h := range held {
				if ran[i] += race(t, desks, h, 8, down); ran[i] > 1 {
					t.Errorf("call %d ran %d times", i, ran[i])
				}
			}
		})
	}
}

// with returns a desk on the same ledger with another gate.
func with(t *testing.T, r *fixture, gate *confirm.Redis) *fixture {
	t.Helper()
	tokens := confirm.New(r.ledger, gate)
	t.Cleanup(tokens.Close)
	is := *r
	is.desk = approval.New(approval.Options{Ledger: r.ledger, Tokens: tokens, Now: r.clock.now, Log: quiet})
	return &is
}

func TestConfirmationWithoutRedisReturnsTheCallID(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	r := four(t, func() *confirm.Redis { return s.Gate(t, nil) })[0]
	h := r.hold(byCaller())
	s.Kill()
	_, err := r.desk.Confirm(context.Background(), h.Token, true, agent, "x", "door")
	if e := schema.AsError(err); e.Kind != schema.KindUnavailable || !e.Retryable || e.CallID != h.Approval.CallID {
		t.Errorf("%+v", e)
	}
	stranger := schema.Principal{Name: "somebody else"}
	if _, err := r.desk.Confirm(context.Background(), h.Token, true, stranger, "y", "door"); schema.KindOf(err) != schema.KindNotFound || schema.AsError(err).CallID != "" {
		t.Errorf("a stranger learns of the call: %v", err)
	}
	if state := r.state(h.Approval.ID); state != ledger.Pending {
		t.Errorf("the call is %s", state)
	}
}
