package parallel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachDoesEveryPartOnce(t *testing.T) {
	for _, n := range []int{0, 1, chunk, chunk + 1, 10*chunk + 3} {
		done := make([]atomic.Int32, n)
		if err := Each(t.Context(), n, func(i int) error { done[i].Add(1); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range done {
			if done[i].Load() != 1 {
				t.Errorf("of %d: part %d was done %d times", n, i, done[i].Load())
			}
		}
	}
}

func TestEachReturnsTheErrorOfTheLowestIndex(t *testing.T) {
	for range 50 {
		err := Each(t.Context(), 1000, func(i int) error {
			if i%100 == 99 {
				return fmt.Errorf("part %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "part 99" {
			t.Fatal(err)
		}
	}
}

func TestEachStopsWhenItsContextIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	err := Each(ctx, 1_000_000, func(int) error {
		if done.Add(1) == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || done.Load() == 1_000_000 {
		t.Error(err, done.Load())
	}
}
