package reward

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

// Term is one part of a reward.
type Term string

// The terms.
const (
	Selection Term = "selection" // compares the called tools with the expected ones, as in package eval
	Format    Term = "format"    // rates the format of the answer, as in package eval
	Arguments Term = "arguments" // the share of required arguments that are present, and of given ones that are valid
	Execution Term = "execution" // the share of calls that ran without an error
	State     Term = "state"     // 1 if the state after the calls equals the state after the labelled calls
	Success   Term = "success"   // 1 if the success condition of the environment holds
	Risk      Term = "risk"      // -1 if a call exceeds the maximum risk or was denied
)

// Terms returns all terms, in the order in which they are added.
func Terms() []Term { return []Term{Selection, Format, Arguments, Execution, State, Success, Risk} }

// Weights holds the weights of terms. A term without a weight has that of the preset, which is 0
// for all terms but Selection and Format.
type Weights map[Term]float64

// Outcome is the outcome of a call.
type Outcome string

// Outcomes of calls.
const (
	OK        Outcome = "ok"         // the tool returned no error
	ToolError Outcome = "tool_error" // the tool returned an error
	Timeout   Outcome = "timeout"    // the tool did not answer in time
	Refused   Outcome = "refused"    // the call was invalid for the tool, or there is no such tool
	Denied    Outcome = "denied"     // the policy or a person denied the call
	Simulated Outcome = "simulated"  // the call would have been held; a simulated result was returned
)

func outcomes() []Outcome { return []Outcome{OK, ToolError, Timeout, Refused, Denied, Simulated} }

// Call is a tool call of an answer.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Outcome is "" if the call did not run.
	Outcome Outcome `json:"outcome,omitempty"`
	// Risk is the risk level of the call. 0 means unknown.
	Risk int `json:"risk,omitempty"`
}

// Item is an answer of a model with the facts that the terms need.
type Item struct {
	ID string `json:"id,omitempty"`
	// Completion is the text of the model. Calls holds its calls if they came as structured
	// calls of an API, or if they ran. The terms selection and format rate the calls in the text
	// or, if it has none, Calls.
	Completion string `json:"completion,omitempty"`
	Calls      []Call `json:"calls,omitempty"`
	// Tools lists the tools that the model could choose from.
	Tools []eval.Tool `json:"tools,omitempty"`
	// Expected lists the names of the tools that should be called. If empty, they are those of
	// ExpectedCalls.
	Expected      []string            `json:"expected,omitempty"`
	ExpectedCalls []eval.LabelledCall `json:"expected_calls,omitempty"`
	// State is the digest of the state after the calls. ExpectedState is the digest after the
	// labelled calls.
	State         string `json:"state,omitempty"`
	ExpectedState string `json:"expected_state,omitempty"`
	// Success reports whether the success condition holds. It is nil if there is none.
	Success *bool `json:"success,omitempty"`
	// MaxRisk is the highest allowed risk level of the calls. 0 means no limit.
	MaxRisk int `json:"max_risk,omitempty"`
	// FailureKind is the reason why there is no valid result. It is "" if there is one.
	FailureKind string `json:"failure_kind,omitempty"`
}

// Scored is the reward of an item.
type Scored struct {
	ID string `json:"id,omitempty"`
	// Reward is the weighted sum. It is nil for a masked item.
	Reward *float64 `json:"reward"`
	// Components holds the values, before weighting, of the terms with a weight other than 0.
	Components map[Term]float64 `json:"components"`
	// Predicted lists the called tools without duplicates. Type is the failure type.
	Predicted []string  `json:"predicted"`
	Type      eval.Type `json:"type"`
	// Masked reports that the item must not be used for training. FailureKind is the reason.
	Masked      bool   `json:"masked"`
	FailureKind string `json:"failure_kind,omitempty"`
}

// FailureMissing is the failure kind of an item without the facts that a weighted term needs.
const FailureMissing = "missing-facts"

// Scorer computes rewards with one preset and one set of weights. It is safe for concurrent use.
type Scorer struct {
	preset  *eval.Reward
	weights Weights
	checker *eval.ArgumentChecker
}

// New returns a scorer. preset is the name of a reward in package eval; "" means the default. The
// error names an unknown preset or term, or a weight that is not a finite number.
func New(preset string, weights Weights) (*Scorer, error) {
	p, err := eval.RewardPreset(cmp.Or(preset, eval.DefaultReward))
	if err != nil {
		return nil, err
	}
	s := &Scorer{preset: p, checker: eval.NewArgumentChecker(), weights: Weights{Selection: p.Selection.Weight, Format: p.Format.Weight}}
	for term, weight := range weights {
		switch {
		case !slices.Contains(Terms(), term):
			return nil, fmt.Errorf("there is no term %q; the terms are %s", term, names(Terms()))
		case math.IsNaN(weight) || math.IsInf(weight, 0):
			return nil, fmt.Errorf("the weight of %s is not a finite number", term)
		}
		s.weights[term] = weight
	}
	return s, nil
}

func names(terms []Term) string {
	var all []string
	for _, t := range terms {
		all = append(all, string(t))
	}
	return strings.Join(all, ", ")
}

// Weight returns the weight of a term.
func (s *Scorer) Weight(t Term) float64 { return s.weights[t] }

// Check returns the reason why an item cannot be scored, or nil.
func (i *Item) Check() error {
	for at := range i.Calls {
		if o := i.Calls[at].Outcome; o != "" && !slices.Contains(outcomes(), o) {
			return fmt.Errorf("the call %d has the outcome %q, which does not exist", at, o)
		}
	}
	return nil
}

// Score computes the reward of an item.
func (s *Scorer) Score(item *Item) Scored {
	sample := eval.Sample{ID: item.ID, Tools: item.Tools, Expected: item.Expected, Labels: item.ExpectedCalls}
	if len(sample.Expected) == 0 {
		for i := range item.ExpectedCalls {
			sample.Expected = append(sample.Expected, item.ExpectedCalls[i].Name)
		}
	}
	p := eval.Prepare(&sample)
	x := extract(item, p.Names)
	response := eval.Response{ID: item.ID, Text: item.Completion}
	score := p.ScoreExtracted(&response, &x, s.preset, nil)
	out := Scored{ID: item.ID, Predicted: score.Called, Type: score.Published.Type, Components: make(map[Term]float64, 2)}
	if out.FailureKind = item.FailureKind; out.FailureKind != "" {
		out.Masked = true
		return out
	}
	calls := item.Calls
	if len(calls) == 0 {
		calls = make([]Call, len(x.Rescued))
		for i, c := range x.Rescued {
			calls[i] = Call{Name: c.Name, Arguments: c.Arguments}
		}
	}
	total := 0.0
	for _, term := range Terms() {
		if s.weights[term] == 0 {
			continue
		}
		value, known := s.term(term, item, &score, p, calls)
		if !known {
			return Scored{ID: out.ID, Predicted: out.Predicted, Type: out.Type, Components: map[Term]float64{}, Masked: true, FailureKind: FailureMissing}
		}
		out.Components[term] = value
		total += s.weights[term] * value
	}
	out.Reward = &total
	return out
}

// extract returns the calls of an item.
func extract(item *Item, known *eval.Names) eval.Extracted {
	x := eval.Extract(&eval.Response{Text: item.Completion}, item.Tools, known)
	if x.Blocks == 0 && len(x.Rescued) == 0 { // structured calls of an API, next to which there may be text
		x.Blocks, x.GoodBlocks = len(item.Calls), len(item.Calls)
		for i := range item.Calls {
			x.Calls = append(x.Calls, eval.Call{Name: item.Calls[i].Name, Arguments: item.Calls[i].Arguments})
		}
		x.Rescued = x.Calls
	}
	return x
}

// term computes one term. known is false if the item lacks a fact that the term needs.
func (s *Scorer) term(t Term, item *Item, score *eval.Score, p *eval.Prepared, calls []Call) (value float64, known bool) {
	switch t {
	case Selection:
		return score.Reward.Selection, true
	case Format:
		return score.Reward.Format, true
	case Arguments:
		return s.arguments(p, calls, len(score.Expected) == 0), true
	case Execution:
		return execution(calls, len(score.Expected) == 0)
	case State:
		if item.State == "" || item.ExpectedState == "" {
			return 0, false
		}
		return one(item.State == item.ExpectedState), true
	case Success:
		return one(item.Success != nil && *item.Success), item.Success != nil
	}
	for i := range calls {
		if calls[i].Outcome == Denied || item.MaxRisk > 0 && calls[i].Risk > item.MaxRisk {
			return -1, true
		}
	}
	return 0, true
}

// execution returns the share of calls that ran without an error. Without calls, it is 1 if no tool
// was expected, else 0.
func execution(calls []Call, noTool bool) (value float64, known bool) {
	if len(calls) == 0 {
		return one(noTool), true
	}
	ran := 0
	for i := range calls {
		switch calls[i].Outcome {
		case "":
			return 0, false
		case OK, Simulated:
			ran++
		}
	}
	return float64(ran) / float64(len(calls)), true
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
