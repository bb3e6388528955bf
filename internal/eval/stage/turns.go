package stage

import (
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/bfcl"
)

// ownCalls holds the calls of one answer, or the labelled calls of one sample.
type ownCalls struct {
	calls []ExecCall
	turn  []int // the turn of each call
	// turns is the number of turns after which the state is read; 0 means at the end only.
	turns int
	// refused is the number of calls that cannot run.
	refused int
}

func (o *ownCalls) add(call ExecCall, turn int) {
	o.calls, o.turn = append(o.calls, call), append(o.turn, turn)
}

// labelCalls returns the labelled calls of a sample.
func (to Target) labelCalls(s *eval.Sample) (own ownCalls) {
	for _, label := range s.Labels {
		own.add(to.call(s, label.Server, label.Name, label.Arguments), label.Turn)
	}
	if s.Check != nil {
		own.turns = s.Check.Turns
	}
	return own
}

// turnsOf returns the number of turns of an answer whose state is read after each turn, otherwise 0.
func turnsOf(s *eval.Sample, r *eval.Response) int {
	if s.Check == nil || s.Check.Turns == 0 {
		return 0
	}
	return max(1, len(r.Turns))
}

// stateAfter returns the part of the custom id of the call that reads the state after a turn.
func stateAfter(turn, turns int) string {
	if turns == 0 {
		return statePart
	}
	return statePart + "-" + strconv.Itoa(turn)
}

func isStatePart(part string) bool {
	return part == statePart || strings.HasPrefix(part, statePart+"-")
}

// ends returns the number of calls up to the end of each turn.
func (o *ownCalls) ends() (ends []int) {
	n := 0
	for turn := range max(1, o.turns) {
		for n < len(o.calls) && (o.turn[n] <= turn || turn == o.turns-1 || o.turns == 0) {
			n++
		}
		ends = append(ends, n)
	}
	return ends
}

// turnsVerdict returns the verdict of BFCL's checker of conversations. It returns nil if the calls
// were not run with a state after each turn, or if their results are not meaningful.
func (o *Outcomes) turnsVerdict(sample *eval.Sample, r *eval.Response, found []eval.Call, ran *eval.Execution) *eval.Verdict {
	if ran == nil || ran.State == nil {
		return nil
	}
	labels, answer := o.labels[AnswerKey{sample.ID, 0}], o.answers[AnswerKey{sample.ID, r.Trial}]
	want, got := make([]bfcl.Turn, sample.Check.Turns), make([]bfcl.Turn, len(r.Turns))
	for i := range sample.Labels {
		if turn := sample.Labels[i].Turn; turn >= 0 && turn < len(want) { // the sample may have been edited
			want[turn].Calls++
		}
	}
	for i := range found {
		if found[i].Turn < len(got) {
			got[found[i].Turn].Calls++
		}
	}
	if !labels.fill(want) || len(want) == len(got) && !answer.fill(got) {
		return nil
	}
	for i := range want {
		if len(want[i].Results) < want[i].Calls {
			return nil // a labelled call has no result for comparison
		}
	}
	fault := bfcl.CheckTurns(want, got)
	return &eval.Verdict{Valid: fault == "", Error: string(fault)}
}

// fill sets the results and states of turns. It returns false if they are not known.
func (o *outcome) fill(turns []bfcl.Turn) bool {
	if len(o.states) != len(turns) {
		return false
	}
	from := 0
	for i, end := range o.ends {
		for _, r := range o.results[from:end] {
			if text := r.content(); text != "" {
				turns[i].Results = append(turns[i].Results, text)
			}
		}
		turns[i].State = o.states[i].content()
		from = end
	}
	return true
}
