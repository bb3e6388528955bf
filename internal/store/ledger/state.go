package ledger

import "slices"

// State is the state of an approval and its call. States only move forward.
type State string

const (
	Pending  State = "pending"  // waits for decisions of people or the caller
	Approved State = "approved" // it has the required approvals and has not run
	Denied   State = "denied"   // a person denied it
	Expired  State = "expired"  // it did not get the required approvals in time
	Revoked  State = "revoked"  // an approval, or the request, was withdrawn before it ran
	Canceled State = "canceled" // the caller canceled the call
	Running  State = "running"  // one runner claimed it; no other can

	Succeeded State = "succeeded" // the tool answered
	Failed    State = "failed"    // it did not run, or certainly failed
	Unknown   State = "unknown"   // it was sent and no response was received
)

// States returns all states.
func States() []State {
	return []State{Pending, Approved, Denied, Expired, Revoked, Canceled, Running, Succeeded, Failed, Unknown}
}

// moves returns the states that may follow a state. States without an entry are final.
func moves(from State) []State {
	switch from {
	case Pending:
		// Directly to running if the caller confirms with the token.
		return []State{Approved, Denied, Expired, Revoked, Canceled, Running}
	case Approved:
		// A denial after the last approval still counts until the call runs.
		return []State{Denied, Expired, Revoked, Canceled, Running}
	case Running:
		return []State{Succeeded, Failed, Unknown, Canceled}
	case Unknown:
		// A runner that was given up may reconnect and report the outcome.
		return []State{Succeeded, Failed}
	}
	return nil
}

// May reports whether an approval may move from s to the other state.
func (s State) May(to State) bool { return slices.Contains(moves(s), to) }

// Ended reports whether the call has run or will never run. [Unknown] counts as ended.
func (s State) Ended() bool {
	switch s {
	case Pending, Approved, Running:
		return false
	}
	return true
}

func (s State) known() bool { return slices.Contains(States(), s) }
