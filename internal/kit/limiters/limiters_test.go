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
