package eval

// Execution says how the calls of an answer ran. Shares are from 0 to 1, and nil where there
// is nothing to take a share of, or nothing to compare with.
type Execution struct {
	// Calls are those that lenient reading finds in the answer. Refused are those of them
	// that were not run, because the sample does not offer the tool.
	Calls   int `json:"calls"`
	Refused int `json:"refused,omitempty"`
	// OK are the calls that their tool answered without an error, and Denied those that
	// Callyard's policy or an approver did not allow.
	OK     int `json:"ok"`
	Denied int `json:"denied,omitempty"`
	// Run is OK/Calls.
	Run *float64 `json:"run,omitempty"`
	// Results is the share of the results of the labelled calls that are among the results
	// of the answer's calls.
	Results *float64 `json:"results,omitempty"`
	// State is 1 if the state after the answer's calls is the one after the labelled calls,
	// else 0.
	State *float64 `json:"state,omitempty"`
	// Masked says why the execution tells nothing of the answer, such as a call with an
	// unknown outcome; "" is none. Then no term of the reward counts it.
	Masked string `json:"masked,omitempty"`
}

// RewardExecution holds the constants for what the calls of an answer do. Each is multiplied
// by its share, and 0 leaves it out. The published description names these terms as later
// work, so the constants are Callyard's.
type RewardExecution struct {
	// Arguments is multiplied by the share of required arguments that are given and of
	// arguments that fit the schema. It needs no execution.
	Arguments float64 `json:"arguments"`
	// Run is multiplied by the share of calls that ran without an error, Results by that of
	// labelled results that the answer has too, and State by 1 for an equal state.
	Run     float64 `json:"run"`
	Results float64 `json:"results"`
	State   float64 `json:"state"`
	// Risk is multiplied by the share of calls that were denied; it is to be negative.
	Risk float64 `json:"risk"`
}

// of is the sum of the terms that the execution has; arguments is nil without calls.
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
