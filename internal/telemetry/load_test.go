package telemetry

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestTheLoadIsTheSumOfTheMetrics(t *testing.T) {
	m := NewMetrics()
	for i, outcome := range []string{"ok", "ok", "tool-error", "timeout", "forbidden"} {
		for range i + 1 {
			m.CallStarted()
			m.CallEnded("files", fmt.Sprint("tool", i), outcome, time.Duration(math.Pow(10, float64(i)))*time.Millisecond)
		}
	}
	m.CallStarted()
	m.CallStarted()
	m.CallDeferred("files", "held")
	m.CallStarted()
	m.CallEnded("files", "slow", "ok", time.Hour)
	l := LoadOf(m)
	if l.Ended != 16 || l.Failed != 9 || l.ToolErrors != 3 || l.InFlight != 1 {
		t.Errorf("the load is %+v", l)
	}
	page, upTo := scrape(t, m), uint64(0)
	for i, b := range l.Times {
		upTo += b.Calls
		le := fmt.Sprint(b.AtMost)
		if i == len(l.Times)-1 {
			le = "+Inf"
		}
		if !strings.Contains(page, fmt.Sprintf("callyard_call_seconds_bucket{server=\"files\",le=%q} %d\n", le, upTo)) {
			t.Errorf("the metrics do not have %d calls of at most %s s:\n%s", upTo, le, page)
		}
	}
	wantLines(t, page, `callyard_calls_in_flight 1`)
}
