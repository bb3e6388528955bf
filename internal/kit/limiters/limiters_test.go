package limiters

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitIsPerKeyAndIdleKeysAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New[int](time.Second, 3, 10)
		for i := range 3 {
			if wait := table.Count(1); wait != 0 {
				t.Errorf("event %d waits %v", i, wait)
			}
		}
		if wait := table.Count(1); wait <= 0 || wait > time.Second {
			t.Errorf("one too many waits %v", wait)
		}
		if wait := table.Count(2); wait != 0 {
			t.Errorf("another key waits %v", wait)
		}
		time.Sleep(time.Second)
		if wait := table.Count(1); wait != 0 {
			t.Errorf("a second later it waits %v", wait)
		}
		for key := range 100 {
			table.Count(key)
			if table.Len() > 10 {
				t.Fatalf("%d keys are kept", table.Len())
			}
		}
		time.Sleep(time.Minute) // every limiter has refilled
		table.mu.Lock()
		table.dropLocked(time.Now())
		table.mu.Unlock()
		if table.Len() != 0 {
			t.Errorf("%d keys are kept that are as good as new", table.Len())
		}
	})
}

func TestSlotsAreLimitedInTotalAndPerKey(t *testing.T) {
	slots := NewSlots[string](3, 2)
	for i, c := range []struct {
		key  string
		want bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := slots.Take(c.key); got != c.want {
			t.Errorf("%d: a slot for %s: %v", i, c.key, got)
		}
	}
	slots.Release("a")
	if !slots.Take("c") || slots.Take("a") {
		t.Error("the slot that became free was not given once")
	}
	for _, key := range []string{"a", "b", "c"} {
		slots.Release(key)
	}
	if len(slots.by) != 0 || slots.used != 0 {
		t.Errorf("%d slots are in use, by %v", slots.used, slots.by)
	}
}
