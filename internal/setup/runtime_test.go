package setup

import (
	"runtime"
	"testing"
)

func TestWorkerLimitsGOMAXPROCSOnSmallMachines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for had, keeps := range map[int]int{1: 1, 2: 1, 3: 3, 8: 8, 64: 64} {
		t.Setenv("GOMAXPROCS", "")
		runtime.GOMAXPROCS(had)
		LeaveProcessors()
		if got := runtime.GOMAXPROCS(0); got != keeps {
			t.Errorf("of %d it keeps %d, not %d", had, got, keeps)
		}
		t.Setenv("GOMAXPROCS", "2") // the runtime has already applied the environment
		runtime.GOMAXPROCS(2)
		LeaveProcessors()
		if got := runtime.GOMAXPROCS(0); got != 2 {
			t.Errorf("GOMAXPROCS says 2, and it keeps %d", got)
		}
	}
}

func TestGCPercentDecreasesWithHeapSize(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live    uint64
		percent int
	}{{0, 400}, {4 * mib, 400}, {24 * mib, 400}, {96 * mib, 100}, {192 * mib, 100}, {256 * mib, 75}, {384 * mib, 50}, {1 << 40, 50}} {
		if got := percentFor(c.live, 96*mib); got != c.percent {
			t.Errorf("%d MiB grow by %d percent, want %d", c.live/mib, got, c.percent)
		}
	}
	for _, c := range []struct{ used, limit uint64 }{{0, 448 * mib}, {360 * mib, 448 * mib}, {400 * mib, 480 * mib}, {10_000 * mib, 11_040 * mib}} {
		if got := limitFor(c.used); got != int64(c.limit) {
			t.Errorf("with %d MiB in use the limit is %d MiB, want %d", c.used/mib, got/mib, c.limit/mib)
		}
	}
}
