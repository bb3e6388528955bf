package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tally counts the responses to the racers of one call.
type tally struct {
	won  atomic.Int64 // their decision was accepted
	told atomic.Int64 // it was not, and the response named the call
	away atomic.Int64 // Redis was down and the response named the call; they tried again
}

// try makes the n-th racer decide a call, alternating over both front
// doors and both approvers. If the caller must confirm, the approvers refuse the decision
// with that reason.
func (b *approvalFleet) try(q *heldCall, n int) (answer, error) {
	switch {
	case q.people:
		return b.decides(b.approvers[n%len(b.approvers)], q, deciders[n/len(b.approvers)%len(deciders)], "approve")
	case n%5 == 4:
		return b.decides(b.approvers[n/5%len(b.approvers)], q, auditor, "approve")
	}
	return b.confirms(b.doors[n%len(b.doors)], q, true)
}

// again is the pause before the next try when Redis is down.
const again = 250 * time.Millisecond

// decideConcurrently makes that number of racers decide a call concurrently. If whole is not nil, Redis has a
// fault until it is closed: racers that get that error try again, together with all others, when
// it has ended.
func (b *approvalFleet) decideConcurrently(t *testing.T, q *heldCall, racers int, whole <-chan struct{}) (all *tally) {
	t.Helper()
	all = &tally{}
	var wait sync.WaitGroup
	start := make(chan struct{})
	for n := range racers {
		wait.Go(func() {
			<-start
			if err := b.racer(q, n, whole, all); err != nil {
				t.Errorf("%s: %v", q.id, err)
			}
		})
	}
	close(start)
	wait.Wait()
	return all
}

// racer tries until its decision was accepted or refused. It returns an error for any
// unexpected response.
func (b *approvalFleet) racer(q *heldCall, n int, whole <-chan struct{}, all *tally) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	deadline := time.NewTimer(answerWithin)
	defer deadline.Stop()
	for {
		a, err := b.try(q, n)
		if err != nil {
			return err
		}
		if a.status == http.StatusOK {
			all.won.Add(1)
			return nil
		}
		var p problem
		if err := json.Unmarshal(a.body, &p); err != nil {
			return fmt.Errorf("%w: %d %s", err, a.status, a.body)
		}
		if p.CallID != q.CallID {
			return fmt.Errorf("a loser is not told of call %s: %d %s", q.CallID, a.status, a.body)
		}
		switch {
		case a.status == http.StatusNotFound && !q.people, a.status == http.StatusForbidden && !q.people, a.status == http.StatusConflict && q.people:
			all.told.Add(1)
			return nil
		case a.status != http.StatusServiceUnavailable || whole == nil || a.header.Get("Retry-After") == "":
			return &refusal{a}
		}
		all.away.Add(1)
		select {
		case <-whole:
		case <-deadline.C:
			return &refusal{a}
		}
		<-tick.C
	}
}

// raceAll runs a race for every call, atOnce of them concurrently. strike, if not
// nil, is called when half of them were decided, while others are in flight. When it
// returns, the fault has ended.
func (b *approvalFleet) raceAll(t *testing.T, all []*heldCall, racers, atOnce int, strike func()) []*tally {
	t.Helper()
	tallies := make([]*tally, len(all))
	next := make(chan int)
	var through atomic.Int64
	var wait sync.WaitGroup
	defer wait.Wait()
	half := make(chan struct{})
	var whole chan struct{}
	if strike != nil {
		whole = make(chan struct{})
	}
	for range atOnce {
		wait.Go(func() {
			for i := range next {
				tallies[i] = b.decideConcurrently(t, all[i], racers, whole)
				if through.Add(1) == int64(len(all)/2) {
					close(half)
				}
			}
		})
	}
	wait.Go(func() {
		defer close(next)
		for i := range all {
			next <- i
		}
	})
	<-half
	if strike != nil {
		func() {
			defer close(whole)
			strike()
		}()
	}
	wait.Wait()
	return tallies
}

// questions holds n calls, alternating over the front doors. If people is set, every second
// one waits for approvers.
func (b *approvalFleet) questions(t *testing.T, n int, people bool) []*heldCall {
	t.Helper()
	all := make([]*heldCall, n)
	for i := range all {
		id := fmt.Sprint("one ", i)
		mine := people && i%2 == 1
		if mine {
			id = fmt.Sprint("two ", i)
		}
		all[i] = b.asked(t, b.doors[i/2%len(b.doors)], mine, id, 0)
	}
	for i, q := range all {
		if q.people {
			b.shown(t, b.approvers[i%len(b.approvers)], q)
		}
	}
	return all
}

// The decisive check, with real processes: two front doors, two approvers, two
// workers (a single one would remember its runs, and hide a faulty fence).
// Half of the calls wait for their caller, half for two approvers.
func TestCallRunsOnceWithAHundredConcurrentDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		calls int
		redis bool
	}{
		"with tokens on Redis":      {calls: 400, redis: true},
		"with tokens in the ledger": {calls: 60},
	} {
		t.Run(name, func(t *testing.T) {
			const racers = 100
			s := staff{doors: 2, approvers: 2, workers: 2}
			if c.redis {
				s.redis = "redis: {url: \"" + startRedis(t) + "\"}\n"
			}
			b := openApprovalFleet(t, s)
			all := b.questions(t, c.calls, true)
			began := time.Now()
			tallies := b.raceAll(t, all, racers, 4, nil)
			took := time.Since(began)
			for i, q := range all {
				want := int64(1)
				if q.people {
					want = 2 // approvals required
				}
				if got := tallies[i]; got.won.Load() != want || got.told.Load() != racers-want {
					t.Errorf("%s: the answers of %d counted, want %d; %d were told that theirs did not", q.id, got.won.Load(), want, got.told.Load())
				}
			}
			b.check(t, all)
			ran := 0
			for _, n := range readEffects(t, b.effects) {
				ran += n
			}
			if ran != len(all) {
				t.Errorf("%d calls had %d effects", len(all), ran)
			}
			t.Logf("%d calls × %d racers: %d effects, %s", len(all), racers, ran, took.Round(time.Millisecond))
		})
	}
}

// check reads every call at each front door, and compares the states with
// the effects. It returns the number of runs.
func (b *approvalFleet) check(t *testing.T, all []*heldCall) (ran int) {
	t.Helper()
	states := make([]callState, len(all))
	for i, q := range all {
		states[i] = b.ended(t, b.doors[i%len(b.doors)], q)
	}
	effects := readEffects(t, b.effects)
	for i, q := range all {
		if err := q.checkState(states[i], effects[q.id]); err != nil {
			t.Error(err)
		}
		if states[i].State != "succeeded" {
			t.Errorf("%s is %s: %s", q.id, states[i].State, states[i].Problem)
			continue
		}
		ran++
	}
	return ran
}

func TestOneOfAThousandConfirmationsRunsTheCall(t *testing.T) {
	const racers = 1000
	b := openApprovalFleet(t, staff{doors: 2, workers: 2, redis: "redis: {url: \"" + startRedis(t) + "\"}\n"})
	q := b.asked(t, b.doors[0], false, "the one", 0)
	var ran, told atomic.Int64
	var wait sync.WaitGroup
	start := make(chan struct{})
	for n := range racers {
		wait.Go(func() {
			<-start
			a, err := b.confirms(b.doors[n%2], q, true)
			var p problem
			switch {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusOK:
				ran.Add(1)
			case a.status == http.StatusNotFound && json.Unmarshal(a.body, &p) == nil && p.CallID == q.CallID && p.Type == "/problems/not-found":
				told.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	close(start)
	wait.Wait()
	if ran.Load() != 1 || told.Load() != racers-1 {
		t.Errorf("%d ran it, %d were told which call it was", ran.Load(), told.Load())
	}
	b.check(t, []*heldCall{q})
}
