package journal

import "github.com/callyard/callyard/pkg/bus"

// The records, whose stored form is in pkg/bus.
type (
	CallRecord   = bus.JournalCall
	IntentRecord = bus.JournalIntent
	ResultRecord = bus.JournalResult
	Object       = bus.JournalObject
	Outcome      = bus.JournalOutcome
	Settle       = bus.JournalSettle
)

// How a call ended; see the constants of pkg/bus.
const (
	Succeeded = bus.JournalSucceeded
	Failed    = bus.JournalFailed
	Denied    = bus.JournalDenied
	Expired   = bus.JournalExpired
	Canceled  = bus.JournalCanceled
	Unknown   = bus.JournalUnknown
	Dead      = bus.JournalDead

	SettleDone  = bus.JournalSettleDone
	SettleAgain = bus.JournalSettleAgain
)

// Intent is the record for one call that is about to leave.
func Intent(index uint64, attempt int, worker string) IntentRecord {
	return IntentRecord{Ranges: []bus.JournalRange{{First: index, Count: 1}}, Attempt: attempt, Worker: worker}
}

// Intents is the record for many calls, whose indexes must ascend.
func Intents(indexes []uint64, attempt int, worker string) IntentRecord {
	r := IntentRecord{Attempt: attempt, Worker: worker}
	for _, i := range indexes {
		if n := len(r.Ranges); n > 0 && r.Ranges[n-1].First+r.Ranges[n-1].Count == i {
			r.Ranges[n-1].Count++
			continue
		}
		r.Ranges = append(r.Ranges, bus.JournalRange{First: i, Count: 1})
	}
	return r
}
