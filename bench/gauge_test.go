package bench

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
)

// scripted is a target whose calls have a duration and an outcome that the test sets.
type scripted struct {
	name string
	call func(ctx context.Context, lane, call int) error
	fail error // the error of Dial
	log  *[]string
}

func (s *scripted) Name() string         { return s.name }
func (s *scripted) PIDs() map[string]int { return nil }
func (s *scripted) Close() error         { return nil }
func (s *scripted) Dial(ctx context.Context, n, _ int) (Lane, error) {
	if s.log != nil && n == 0 {
		*s.log = append(*s.log, s.name)
	}
	if s.fail != nil {
		return nil, s.fail
	}
	return &scriptedLane{ctx: ctx, s: s, lane: n}, nil
}

type scriptedLane struct {
	ctx        context.Context
	s          *scripted
	lane, done int
}

func (l *scriptedLane) Call() error {
	l.done++
	return l.s.call(l.ctx, l.lane, l.done-1)
}
func (l *scriptedLane) Close() error { return nil }

// taking makes each call take d.
func taking(d time.Duration) func(context.Context, int, int) error {
	return func(ctx context.Context, _, _ int) error {
		sleep.For(d, ctx.Done())
		return nil
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestRateAndLatencyOfAKnownTargetAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		s, err := g.measure(t.Context(), &scripted{call: taking(2 * time.Millisecond)}, 200, 10, 100*time.Millisecond, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the rate", s.Rate, 10/0.002, 0.01)
		near(t, "the count", float64(s.Calls), 10*1000, 0.01)
		near(t, "p50", s.P50, 2000, 0.002)
		near(t, "max", s.Max, 2000, 0.002)
		if s.Errors != 0 {
			t.Errorf("%d errors", s.Errors)
		}
	})
}

func TestPercentilesIncludeTheSlowestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 85 of 100 calls take 1 ms, 10 take 10 ms, 4 take 50 ms, one 200 ms.
		target := &scripted{call: func(ctx context.Context, _, call int) error {
			switch n := call % 100; {
			case n < 85:
				sleep.For(time.Millisecond, ctx.Done())
			case n < 95:
				sleep.For(10*time.Millisecond, ctx.Done())
			case n < 99:
				sleep.For(50*time.Millisecond, ctx.Done())
			default:
				sleep.For(200*time.Millisecond, ctx.Done())
			}
			return nil
		}}
		var g gauge
		s, err := g.measure(t.Context(), target, 200, 1, 0, 585*100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "p50", s.P50, 1000, 0.002)
		near(t, "p90", s.P90, 10_000, 0.002)
		near(t, "p99", s.P99, 50_000, 0.002)
		near(t, "max", s.Max, 200_000, 0.002)
	})
}

func TestTheWarmupIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Slow and failing at first, then fast.
		target := &scripted{call: func(ctx context.Context, _, call int) error {
			if call == 0 {
				sleep.For(300*time.Millisecond, ctx.Done())
				return errors.New("still starting")
			}
			sleep.For(time.Millisecond, ctx.Done())
			return nil
		}}
		var g gauge
		s, err := g.measure(t.Context(), target, 200, 4, 500*time.Millisecond, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if s.Errors != 0 || s.Max > 1100 {
			t.Errorf("%d errors, max %g", s.Errors, s.Max)
		}
	})
}

func TestErrorsAreCountedByMessageAndNotAsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{call: func(ctx context.Context, lane, _ int) error {
			sleep.For(time.Millisecond, ctx.Done())
			if lane == 1 {
				return errors.New("status 503")
			}
			return nil
		}}
		var g gauge
		s, err := g.measure(t.Context(), target, 200, 2, 0, 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the calls", float64(s.Calls), 300, 0.02)
		near(t, "the errors", float64(s.Errors), 100, 0.02) // the pause follows each error
		if s.Failures["status 503"] != s.Errors || len(s.Failures) != 1 {
			t.Errorf("failures %v of %d", s.Failures, s.Errors)
		}
		// The records of the first measurement do not leak into the second.
		s, err = g.measure(t.Context(), &scripted{call: taking(time.Millisecond)}, 200, 2, 0, 100*time.Millisecond)
		if err != nil || s.Errors != 0 || s.Calls > 201 {
			t.Errorf("second: %d calls, %d errors, %v", s.Calls, s.Errors, err)
		}
	})
}

func TestManyDifferentFailuresKeepMemoryBounded(t *testing.T) {
	r := newLaneRecord()
	for i := range 100 {
		r.failure(errors.New(string(rune('A' + i))))
	}
	if len(r.failures) != maxFailures+1 || r.failures["other failures"] != 100-maxFailures || r.errors != 100 {
		t.Errorf("kept %v", r.failures)
	}
}

func TestHangingTargetIsCountedAsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{call: func(ctx context.Context, _, _ int) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		began := time.Now()
		var g gauge
		s, err := g.measure(t.Context(), target, 200, 5, 0, time.Second)
		if err != nil || s.Errors != 5 || s.Calls != 0 || s.Rate != 0 {
			t.Errorf("got %+v, %v", s, err)
		}
		if took := time.Since(began); took != 3*patience+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestCallsLongerThanTheMeasurementAreStillMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		s, err := g.measure(t.Context(), &scripted{call: taking(3 * time.Second)}, 200, 4, 100*time.Millisecond, time.Second)
		if err != nil || s.Errors != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		near(t, "p50", s.P50, 3e6, 0.002)
		near(t, "the rate", s.Rate, 4.0/3, 0.01)
	})
}

func TestUnreachableTargetIsErrorsAndRunContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		s, err := g.measure(t.Context(), &scripted{fail: errors.New("connection refused")}, 200, 3, 0, time.Second)
		if err != nil || s.Failures["connection refused"] != 3 {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

func TestAnEndedContextEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		began := time.Now()
		_, err := Run(ctx, Plan{
			Targets: []Target{&scripted{name: "a", call: taking(time.Millisecond)}}, Concurrency: []int{1}, Sizes: []int{200},
			Rounds: 10, Warmup: time.Second, Duration: time.Second,
		})
		if !errors.Is(err, context.Canceled) || time.Since(began) > 3100*time.Millisecond {
			t.Errorf("ended with %v after %s", err, time.Since(began))
		}
	})
}
