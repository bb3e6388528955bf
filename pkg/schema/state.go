package schema

import "slices"

// State is how far a call has come. There is one set of states for every call, however
// it came in and wherever it is stored.
type State string

const (
	StateHeld      State = "held"      // waiting for an approval
	StateQueued    State = "queued"    // accepted; no attempt has left yet
	StateRunning   State = "running"   // admitted or sent; no result yet
	StateSuspended State = "suspended" // its server asked the caller for input

	StateSucceeded State = "succeeded" // the tool answered, with its own error or not
	StateFailed    State = "failed"    // refused, or ended without a result
	StateDenied    State = "denied"    // the policy or a person denied it; it never ran
	StateExpired   State = "expired"   // not approved, or not sent, in time; it never ran
	StateCanceled  State = "canceled"  // canceled before it was sent; it never ran
	StateUnknown   State = "unknown"   // sent, and no answer was received
)

// States returns all states: those of unfinished calls first, in their order, then the
// final ones.
func States() []State {
	return []State{
		StateHeld, StateQueued, StateRunning, StateSuspended,
		StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown,
	}
}

// moves is the table of moves: the states that may follow each state. Every state that is
// not final may end in any way that does not contradict it.
// docs/explanation/call-lifecycle.md draws it.
func moves(from State) []State {
	switch from {
	case StateHeld:
		return []State{StateQueued, StateRunning, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateQueued: // a denial counts until the call runs
		return []State{StateHeld, StateRunning, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateRunning: // another attempt is queued; one that was admitted can be taken back before it is sent
		return []State{StateQueued, StateSuspended, StateSucceeded, StateFailed, StateDenied, StateExpired, StateCanceled, StateUnknown}
	case StateSuspended:
		return []State{StateQueued, StateRunning, StateFailed, StateExpired, StateCanceled, StateUnknown}
	case StateUnknown, StateFailed: // a person settles it, or a late answer does; "run again" queues it
		return []State{StateQueued, StateRunning, StateSucceeded, StateFailed}
	}
	return nil
}

// Known reports whether s is one of the states.
func (s State) Known() bool { return slices.Contains(States(), s) }

// Ended reports whether the call has ended: it does not run any more unless a person
// settles it. StateUnknown counts as an end.
func (s State) Ended() bool {
	switch s {
	case StateHeld, StateQueued, StateRunning, StateSuspended:
		return false
	}
	return s.Known()
}

// MayBecome reports whether a call in state s may next be in state to.
func (s State) MayBecome(to State) bool { return slices.Contains(moves(s), to) }
