package journal

import "github.com/callyard/callyard/pkg/bus"

type (
	// CallRecord is an accepted call. The stored form of all records is in pkg/bus.
	CallRecord = bus.JournalCall
	// IntentRecord says that calls are about to leave.
	IntentRecord = bus.JournalIntent
	// ResultRecord is the end of a call, or a person's word about one.
	ResultRecord = bus.JournalResult
	// Object points at bytes that are too large for a record.
	Object = bus.JournalObject
	// Outcome is how a call ended.
	Outcome = bus.JournalOutcome
	// Settle is a person's word about a call that is unknown or dead.
	Settle = bus.JournalSettle
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
