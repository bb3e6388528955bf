package backoff

import (
	"math"
	"testing"
	"time"
)

func TestADelayDoublesUpToTheMaximum(t *testing.T) {
	p := Policy{First: 100 * time.Millisecond, Max: 15 * time.Second}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000}
	for n, w := range want {
		if d := p.Delay(n); d != w*time.Millisecond {
			t.Errorf("after %d failures: %v, want %v", n, d, w*time.Millisecond)
		}
	}
}

func TestDelayAfterManyFailuresIsTheMaximum(t *testing.T) {
	for _, p := range []Policy{{First: time.Millisecond, Max: time.Minute}, {First: time.Nanosecond, Max: math.MaxInt64}, {First: time.Hour, Max: time.Minute}} {
		if d := p.Delay(math.MaxInt32); d != p.Max {
			t.Errorf("%+v waits %v", p, d)
		}
	}
}

func TestJitterIsBounded(t *testing.T) {
	p := Policy{First: time.Second, Max: 4 * time.Second, Jitter: 0.5}
	seen := map[time.Duration]bool{}
	for range 1000 {
		for n, whole := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
			d := p.Delay(n)
			if d < whole/2 || d > whole {
				t.Fatalf("after %d failures: %v, want %v to %v", n, d, whole/2, whole)
			}
			seen[d] = true
		}
	}
	if len(seen) < 1000 {
		t.Errorf("%d different delays of 4,000", len(seen))
	}
}

func TestZeroPolicyHasNoDelay(t *testing.T) {
	if d := (Policy{}).Delay(7); d != 0 {
		t.Errorf("%v", d)
	}
}
