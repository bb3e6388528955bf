package schema

import "slices"

// State is the state of a call. All calls use the same set of states, regardless of the API
// that received them and of the store that holds them.
type State string

const (
	StateHeld      State = "held"      // waiting for an approval
	StateQueued    State = "queued"    // accepted; no attempt was sent yet
	StateRunning   State = "running"   // admitted or sent; no result yet
	StateSuspended State = "suspended" // the server asked the caller for input

	StateSucceeded State = "succeeded" // the tool answered, possibly with a tool error
	StateFailed    State = "failed"    // refused, or ended without a result
	StateDenied    State = "denied"    // the policy or a person denied it; it never ran
	StateExpired   State = "expired"   // not approved or not sent in time; it never ran
	StateCanceled  State = "canceled"  // canceled before it was sent; it never ran
	StateUnknown   State = "unknown"   // sent, and no answer was received
)

// States returns all states: first those of unfinished calls, in their order, then the final
// ones.
func States() []State {
	return []State{
		StateHeld, StateQueued, StateRunning, StateSuspended,
		StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown,
	}
}

// moves returns the states that may follow a state. A call in a state that is not final may end
// with any outcome that does not contradict the state. docs/explanation/call-lifecycle.md shows
// the diagram.
func moves(from State) []State {
	switch from {
	case StateHeld:
		return []State{StateQueued, StateRunning, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateQueued: // a denial is effective until the call runs
		return []State{StateHeld, StateRunning, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateRunning: // another attempt is queued; an admitted call can be withdrawn before it is sent
		return []State{StateQueued, StateSuspended, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateSuspended:
		return []State{StateQueued, StateRunning, StateFailed, StateExpired, StateCanceled, StateUnknown}
	case StateUnknown, StateFailed: // a person or a late answer settles it; "run again" queues it
		return []State{StateQueued, StateRunning, StateSucceeded, StateFailed}
	}
	return nil
}

// Known reports whether s is one of the states.
func (s State) Known() bool { return slices.Contains(States(), s) }

// Ended reports whether the call has ended and does not run again unless a person settles it.
// StateUnknown is an end.
func (s State) Ended() bool {
	switch s {
	case StateHeld, StateQueued, StateRunning, StateSuspended:
		return false
	}
	return s.Known()
}

// MayBecome reports whether a call may move from state s to state to.
func (s State) MayBecome(to State) bool { return slices.Contains(moves(s), to) }
