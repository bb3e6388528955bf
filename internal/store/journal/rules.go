package journal

// EffectiveOutcome is the effective outcome of a call, and its attempt.
type EffectiveOutcome struct {
	// Outcome is 0 for a call that has not ended. If Attempt is greater than 0 in that case, a
	// person ordered it to run again, and results of attempts up to that one do not count.
	Outcome Outcome
	Attempt int
	// Settled is set if a person settled the outcome.
	Settled bool
}

// Open reports whether a person may settle the call: its outcome is unknown, or it was given up.
func (s EffectiveOutcome) Open() bool {
	return !s.Settled && (s.Outcome == Unknown || s.Outcome == Dead)
}

// Judge returns the standing of a call after a record, and reports whether the record counts. The rules:
//
//   - The first result counts; later ones are dropped.
//   - Exception: a succeeded or failed result after unknown counts, because a worker that was given
//     up reconnected and reported the outcome.
//   - A person may settle a call that is unknown or dead, once, as succeeded or failed.
//   - A person may instead order it to run again. Then the call has not ended, and only results of
//     later attempts count. Canceled, expired and denied always count, because only the owner
//     writes them, for a call that was not sent.
func Judge(now EffectiveOutcome, r Mark) (EffectiveOutcome, bool) {
	switch {
	case r.Settle == SettleAgain:
		if !now.Open() {
			return now, false
		}
		return EffectiveOutcome{Attempt: max(now.Attempt, r.Attempt, 1)}, true
	case r.Settle == SettleDone:
		if !now.Open() || r.Outcome != Succeeded && r.Outcome != Failed {
			return now, false
		}
		return EffectiveOutcome{Outcome: r.Outcome, Attempt: now.Attempt, Settled: true}, true
	case r.Settle != 0, r.Outcome == 0, int(r.Outcome) >= outcomeCount:
		return now, false // from a later version, or damaged
	case now.Outcome == 0:
		neverLeft := r.Outcome == Canceled || r.Outcome == Expired || r.Outcome == Denied
		if now.Attempt > 0 && r.Attempt <= now.Attempt && !neverLeft {
			return now, false
		}
		return EffectiveOutcome{Outcome: r.Outcome, Attempt: max(r.Attempt, now.Attempt)}, true
	case now.Outcome == Unknown && !now.Settled && (r.Outcome == Succeeded || r.Outcome == Failed):
		return EffectiveOutcome{Outcome: r.Outcome, Attempt: max(r.Attempt, now.Attempt)}, true
	}
	return now, false
}

// moves returns the states that may follow a state. Only a person's order to run calls again leads back
// from ended.
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
