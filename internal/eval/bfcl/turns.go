package bfcl

import "slices"

// Faults of a conversation of several turns, with the names of the official checker.
const (
	// WrongTurns is a conversation with more or fewer turns than the labels.
	WrongTurns Fault = "multi_turn:force_terminated"
	// EmptyTurn is a turn without a call although the labels have one.
	EmptyTurn Fault = "multi_turn:empty_turn_model_response"
	// WrongState is a state after a turn that differs from the state after the labelled calls.
	WrongState Fault = "multi_turn:instance_state_mismatch"
	// WrongResults means that results of a turn's labelled calls are missing from the results of
	// the answer's calls, including earlier turns.
	WrongResults Fault = "multi_turn:execution_response_mismatch"
)

// Turn is the outcome of one turn of a conversation.
type Turn struct {
	// Calls is the number of calls, including those that could not run.
	Calls int
	// Results are the results of the calls, in a form in which equal results are equal strings.
	Results []string
	// State is the state of the classes after the turn, in such a form.
	State string
}

// CheckTurns checks a conversation by its effects, like the official multi_turn_checker: after each
// turn with a labelled call, the state must equal the state after the labelled calls, and the
// results of the turn's labelled calls must be among all results so far, each counted once. A turn
// without a labelled call is not checked itself. It is a pure function.
func CheckTurns(labels, answer []Turn) Fault {
	if len(labels) != len(answer) {
		return WrongTurns
	}
	var have []string
	for i := range labels {
		have = append(have, answer[i].Results...)
		switch {
		case labels[i].Calls == 0:
		case answer[i].Calls == 0:
			return EmptyTurn
		case labels[i].State != answer[i].State:
			return WrongState
		case !containsAll(labels[i].Results, have):
			return WrongResults
		}
	}
	return ""
}

// containsAll reports whether have contains all elements of want, counting duplicates.
func containsAll(want, have []string) bool {
	have = slices.Clone(have)
	for _, text := range want {
		at := slices.Index(have, text)
		if at < 0 {
			return false
		}
		have = slices.Delete(have, at, at+1)
	}
	return true
}
