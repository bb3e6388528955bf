package eval

// Execution is the outcome of running the calls of an answer. Shares are from 0 to 1, and nil if
// there is nothing to count or to compare with.
type Execution struct {
	// Calls is the number of calls that lenient extraction finds in the answer. Refused is the
	// number of those that were not run because the sample does not offer the tool.
	Calls   int `json:"calls"`
	Refused int `json:"refused,omitempty"`
	// OK is the number of calls without an error, and Denied the number of calls that Callyard's
	// policy or an approver did not allow.
	OK     int `json:"ok"`
	Denied int `json:"denied,omitempty"`
	// Run is OK/Calls.
	Run *float64 `json:"run,omitempty"`
	// Results is the share of the results of the labelled calls that are among the results of the
	// answer's calls.
	Results *float64 `json:"results,omitempty"`
	// State is 1 if the state after the answer's calls equals the state after the labelled calls,
	// otherwise 0.
	State *float64 `json:"state,omitempty"`
	// Masked is the reason why the execution says nothing about the answer, such as a call with an
	// unknown outcome, or "". No term of the reward uses a masked execution.
	Masked string `json:"masked,omitempty"`
}

// RewardExecution holds the constants for the effects of an answer's calls. Each is multiplied by
// its share; 0 disables it. The published description names these terms as future work, so the
// constants are Callyard's.
type RewardExecution struct {
	// Arguments is multiplied by the share of required arguments that are given and of arguments
	// that match the schema. It needs no execution.
	Arguments float64 `json:"arguments"`
	// Run is multiplied by the share of calls without an error, Results by the share of labelled
	// results that the answer has too, and State by 1 for an equal state.
	Run     float64 `json:"run"`
	Results float64 `json:"results"`
	State   float64 `json:"state"`
	// Risk is multiplied by the share of denied calls. It should be negative.
	Risk float64 `json:"risk"`
}

// of returns the sum of the terms that the execution has. arguments is nil without calls.
func (r *RewardExecution) of(e *Execution, arguments *float64) (sum float64) {
	add := func(weight float64, share *float64) {
		if share != nil {
			sum += weight * *share
		}
	}
	add(r.Arguments, arguments)
	if e == nil || e.Masked != "" {
		return sum
	}
	add(r.Run, e.Run)
	add(r.Results, e.Results)
	add(r.State, e.State)
	if e.Calls > 0 {
		sum += r.Risk * float64(e.Denied) / float64(e.Calls)
	}
	return sum
}
