package telemetry

import (
	"slices"
	"sync/atomic"

	"github.com/callyard/callyard/pkg/schema"
)

// Outcomes of calls that are not errors of Callyard.
const (
	outcomeOK        = "ok"
	outcomeToolError = "tool-error"
)

// load sums the calls of this process over all servers and tools. The Prometheus counters have the
// same values per tool, but reading those every second takes too long. It is safe for concurrent
// use.
type load struct {
	inFlight           atomic.Int64
	failed, toolErrors atomic.Uint64
	times              []atomic.Uint64 // by bucket of callyard_call_seconds; the last one counts slower calls
}

func newLoad() *load { return &load{times: make([]atomic.Uint64, len(secondsBuckets)+1)} }

func (l *load) flying() float64 { return float64(l.inFlight.Load()) }

// ended counts a call that was in flight.
func (l *load) ended(outcome string, seconds float64) {
	l.inFlight.Add(-1)
	switch outcome {
	case outcomeOK:
	case outcomeToolError:
		l.toolErrors.Add(1)
	default:
		l.failed.Add(1)
	}
	at, _ := slices.BinarySearch(secondsBuckets, seconds)
	l.times[at].Add(1)
}

// LoadOf returns the counts of calls since the process started, without waiting calls, which the
// metrics do not count. It is cheap. A call that ends at the same time may be counted in one number
// and not yet in another.
func LoadOf(m *Metrics) schema.Load {
	l := m.load
	// Errors are read first, so that there are never more errors than calls.
	s := schema.Load{Failed: l.failed.Load(), ToolErrors: l.toolErrors.Load(), InFlight: int(l.inFlight.Load()), Times: make([]schema.CallTimes, len(l.times))}
	for i := range l.times {
		s.Times[i].Calls = l.times[i].Load()
		if i < len(secondsBuckets) {
			s.Times[i].AtMost = secondsBuckets[i]
		}
		s.Ended += s.Times[i].Calls
	}
	return s
}
