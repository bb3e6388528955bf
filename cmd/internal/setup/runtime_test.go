package setup

import (
	"runtime"
	"testing"
)

func TestAWorkerLeavesHalfOfTheProcessorsToItsTools(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for had, keeps := range map[int]int{1: 1, 2: 1, 3: 2, 8: 4} {
		t.Setenv("GOMAXPROCS", "")
		runtime.GOMAXPROCS(had)
		LeaveProcessors()
		if got := runtime.GOMAXPROCS(0); got != keeps {
			t.Errorf("of %d it keeps %d, not %d", had, got, keeps)
		}
		t.Setenv("GOMAXPROCS", "7") // as the environment says, the runtime read it already
		runtime.GOMAXPROCS(7)
		LeaveProcessors()
		if got := runtime.GOMAXPROCS(0); got != 7 {
			t.Errorf("GOMAXPROCS says 7, and it keeps %d", got)
		}
	}
}
