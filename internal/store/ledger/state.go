package ledger

import "slices"

// State says how far an approval has come, and the call that it holds. States
// move forward only.
type State string

const (
	Pending  State = "pending"  // people, or the caller, are asked
	Approved State = "approved" // it has the approvals it needs; it has not run
	Denied   State = "denied"   // somebody denied it
	Expired  State = "expired"  // it did not get the approvals it needs in time
	Revoked  State = "revoked"  // an approval, or the request, was withdrawn before it ran
	Canceled State = "canceled" // the caller took the call back
	Running  State = "running"  // one runner has it; no other ever will

	Succeeded State = "succeeded" // the tool answered
	Failed    State = "failed"    // it did not run, or ran and failed for sure
	Unknown   State = "unknown"   // it left and no answer was received
)

// States returns all states.
func States() []State {
	return []State{Pending, Approved, Denied, Expired, Revoked, Canceled, Running, Succeeded, Failed, Unknown}
}

// moves lists where each state may go. What is missing here is an end.
func moves(from State) []State {
	switch from {
	case Pending:
		// Straight to running: the caller confirms with the token.
		return []State{Approved, Denied, Expired, Revoked, Canceled, Running}
	case Approved:
		// A denial that comes after the last approval still counts until it runs.
		return []State{Denied, Expired, Revoked, Canceled, Running}
	case Running:
		return []State{Succeeded, Failed, Unknown, Canceled}
	case Unknown:
		// A runner that was given up may reconnect and report the outcome.
		return []State{Succeeded, Failed}
	}
	return nil
}

// May says that an approval may go from one state to the other.
func (s State) May(to State) bool { return slices.Contains(moves(s), to) }

// Ended says that the call will not run any more, or has run. [Unknown] counts.
func (s State) Ended() bool {
	switch s {
	case Pending, Approved, Running:
		return false
	}
	return true
}

func (s State) known() bool { return slices.Contains(States(), s) }
