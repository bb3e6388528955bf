package journal

// Standing is how a call stands: which outcome counts, and of which attempt.
type Standing struct {
	// Outcome is 0 for a call that has not ended. Where Attempt is above 0 then, a
	// person ordered it to run again, and results of attempts up to it do not count.
	Outcome Outcome
	Attempt int
	// Settled says that a person said how it ended.
	Settled bool
}

// Open says that a person may settle the call: nobody knows how it ended, or it
// was given up.
func (s Standing) Open() bool { return !s.Settled && (s.Outcome == Unknown || s.Outcome == Dead) }

// Judge says how a call stands after a record, and whether the record counts. These
// are all the rules:
//
//   - The first end counts, and every later one is dropped.
//   - But an answer, succeeded or failed, that comes after unknown counts: a worker that
//     was given up reconnected and reported the outcome.
//   - A person may settle a call that is unknown or dead, once, as succeeded or failed.
//   - Or order it to run again: then it has not ended, and of what comes only
//     attempts after the last one count; canceled, expired and denied always
//     do, because only the owner says them, of a call that has not left.
func Judge(now Standing, r Mark) (Standing, bool) {
	switch {
	case r.Settle == SettleAgain:
		if !now.Open() {
			return now, false
		}
		return Standing{Attempt: max(now.Attempt, r.Attempt, 1)}, true
	case r.Settle == SettleDone:
		if !now.Open() || r.Outcome != Succeeded && r.Outcome != Failed {
			return now, false
		}
		return Standing{Outcome: r.Outcome, Attempt: now.Attempt, Settled: true}, true
	case r.Settle != 0, r.Outcome == 0, int(r.Outcome) >= outcomeCount:
		return now, false // of a later version, or damaged
	case now.Outcome == 0:
		neverLeft := r.Outcome == Canceled || r.Outcome == Expired || r.Outcome == Denied
		if now.Attempt > 0 && r.Attempt <= now.Attempt && !neverLeft {
			return now, false
		}
		return Standing{Outcome: r.Outcome, Attempt: max(r.Attempt, now.Attempt)}, true
	case now.Outcome == Unknown && !now.Settled && (r.Outcome == Succeeded || r.Outcome == Failed):
		return Standing{Outcome: r.Outcome, Attempt: max(r.Attempt, now.Attempt)}, true
	}
	return now, false
}

// moves says where a journal may go from a state. Back from ended leads only a
// person's order to run calls again.
func moves(from State) []State {
	switch from {
	case Receiving:
		return []State{Sealed, Canceling}
	case Sealed:
		return []State{Running, Canceling, Ended}
	case Running:
		return []State{Canceling, Ended}
	case Canceling:
		return []State{Ended}
	case Ended:
		return []State{Running}
	}
	return nil
}
