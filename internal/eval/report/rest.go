package report

import (
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
)

// Rules returns a summary of the scoring rules, which every report contains. The reference page of
// evaluations has the full rules.
func Rules() []string {
	return []string{
		"Precision, recall and F1 are computed for each sample and then averaged. Accuracy is 1 for a sample whose called tools are exactly the expected ones.",
		"No call where none is expected: all metrics 1. No call where one is expected, or a call where none is: all metrics 0. F1 is 0 if precision and recall are.",
		"strict counts <tool_call> blocks whose body is a JSON object with a text name, and calls in the form of a provider's API.",
		"published counts the same; an answer in which only lenient reading finds a call scores 0 and has the type format.",
		"lenient counts every call that is found, also repaired ones.",
		"Names are compared after Unicode NFC, trimming, lower case, stripping of prefixes and suffixes (text before ::, functions., servers of the sample, mcp_, _mcp, _tool) and with equal separators. No step may make two tools of a sample equal; an exact name always wins.",
		"Tools that a data set calls similar are accepted in place of the expected ones in the accuracy with similar tools alone.",
		"Intervals are percentiles of a bootstrap over samples, with the mean over trials as the value of a sample.",
		"Of an answer, the calls that lenient reading finds are run, if the sample offers their tools. An answer with a call of unknown outcome, or one that failed without its fault, is masked: it counts in no share of the execution.",
		"In a conversation whose calls are expected turn by turn, a called tool counts for its turn alone: the compared sets are of pairs of a turn and a tool.",
		"The constants of the reward are Callyard's; the published description has its shape alone.",
	}
}

// rest adds rewards, the data set's own checker, and pass@k.
func (m *maker) rest(r *Report) error {
	columns := m.columns(4, all, func(s *stage.Score) []float64 {
		return []float64{s.Reward.Total, s.Reward.Selection, s.Reward.Format, s.Reward.Execution}
	})
	estimates, err := m.bootstrap(columns)
	if err != nil {
		return err
	}
	for k, name := range []string{"full", "selection only", "format only", "execution only"} {
		if k == 3 && m.noExecution() {
			continue
		}
		r.Rewards = append(r.Rewards, Reward{name, estimates[k]})
	}
	if r.Similar, err = m.similar(); err != nil {
		return err
	}
	if r.Check, err = m.checked(); err != nil {
		return err
	}
	if r.Executed, err = m.executed(); err != nil {
		return err
	}
	if r.Pass, err = m.pass(); err != nil {
		return err
	}
	r.Turns, err = m.turns()
	return err
}

// turns returns the means of each turn over the conversations that have it. An answer with calls
// after the last turn of its sample has one more turn, which is wrong.
func (m *maker) turns() (all []TurnMeans, err error) {
	for turn := 0; ; turn++ {
		means := TurnMeans{Turn: turn + 1, Types: map[eval.Type]int{}}
		var column []float64
		for _, g := range m.groups {
			right, n := 0, 0
			for _, score := range g {
				if turn >= len(score.Turns) {
					continue
				}
				n++
				t := score.Turns[turn].At(eval.Published)
				if means.Types[t]++; t == eval.TypeCorrect {
					right++
				}
			}
			if n > 0 {
				column = append(column, float64(right)/float64(n))
			}
		}
		if len(column) == 0 {
			return all, nil
		}
		means.Samples = len(column)
		if means.Accuracy, err = m.estimate(column); err != nil {
			return nil, err
		}
		all = append(all, means)
	}
}

// executed summarizes the outcomes of the calls, or returns nil if none were run.
func (m *maker) executed() (*Executed, error) {
	out := &Executed{Why: map[string]int{}}
	for _, g := range m.groups {
		for _, score := range g {
			e := score.Execution
			if e == nil {
				continue
			}
			out.Answers++
			out.Calls, out.Refused, out.OK, out.Denied = out.Calls+e.Calls, out.Refused+e.Refused, out.OK+e.OK, out.Denied+e.Denied
			if e.Masked != "" {
				out.Masked++
				out.Why[e.Masked]++
			}
		}
	}
	if out.Answers == 0 {
		return nil, nil
	}
	for _, share := range []struct {
		to *(*stats.Estimate)
		of func(*eval.Execution) *float64
	}{
		{&out.Run, func(e *eval.Execution) *float64 { return e.Run }},
		{&out.Results, func(e *eval.Execution) *float64 { return e.Results }},
		{&out.State, func(e *eval.Execution) *float64 { return e.State }},
	} {
		var column []float64
		for _, g := range m.groups {
			if mean := meanShare(g, share.of); mean != nil {
				column = append(column, *mean)
			}
		}
		if len(column) == 0 {
			continue
		}
		estimate, err := m.estimate(column)
		if err != nil {
			return nil, err
		}
		*share.to = &estimate
	}
	return out, nil
}

// meanShare returns the mean of a share over the trials that have it, or nil if none has.
func meanShare(group []*stage.Score, of func(*eval.Execution) *float64) *float64 {
	sum, n := 0.0, 0
	for _, score := range group {
		if score.Execution == nil {
			continue
		}
		if v := of(score.Execution); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}

// noExecution reports whether no reward has an execution term.
func (m *maker) noExecution() bool {
	for _, g := range m.groups {
		for _, score := range g {
			if score.Reward.Execution != 0 || score.Execution != nil {
				return false
			}
		}
	}
	return true
}

// similar returns the accuracy with similar tools, or nil if the data set has none.
func (m *maker) similar() (*stats.Estimate, error) {
	known := false
	columns := m.columns(1, all, func(s *stage.Score) []float64 {
		if s.Similar == nil {
			return []float64{s.Published.Accuracy}
		}
		known = true
		return []float64{*s.Similar}
	})
	if !known {
		return nil, nil
	}
	estimate, err := m.estimate(columns[0])
	return &estimate, err
}

// checked summarizes the verdicts of the data set's own checker, or returns nil if there are none.
func (m *maker) checked() (*Checked, error) {
	has := func(i int) bool { return m.groups[i][0].Check != nil }
	valid := func(s *stage.Score) []float64 {
		if s.Check != nil && s.Check.Valid {
			return []float64{1}
		}
		return []float64{0}
	}
	columns := m.columns(1, has, valid)
	if len(columns[0]) == 0 {
		return nil, nil
	}
	estimate, err := m.estimate(columns[0])
	if err != nil {
		return nil, err
	}
	out := &Checked{Valid: estimate, Categories: map[string]float64{}, Errors: map[string]int{}}
	for c, name := range m.names {
		within := m.columns(1, func(i int) bool { return has(i) && m.strata[i] == c }, valid)
		if len(within[0]) > 0 {
			out.Categories[name] = stats.Mean(within[0])
		}
	}
	for _, g := range m.groups {
		for _, score := range g {
			if score.Check != nil && score.Check.Error != "" {
				out.Errors[score.Check.Error]++
			}
		}
	}
	return out, nil
}

// passEach is the largest k up to which a report has pass@k for each k.
const passEach = 16

// passSizes returns the k for which a report has pass@k: all up to passEach, then the powers of two,
// and the number of trials. A folder of transcripts can have thousands of trials, and as many lines
// would hide the rest of the report.
func passSizes(trials int) (sizes []int) {
	for k := 1; k < trials; k++ {
		if k <= passEach || k&(k-1) == 0 {
			sizes = append(sizes, k)
		}
	}
	return append(sizes, trials)
}

// pass computes pass@k and pass^k for the k of [passSizes] with the smallest number of trials. An
// answer is right if the data set's own checker accepts it; without one, its accuracy at the
// published level counts.
func (m *maker) pass() (all []Pass, err error) {
	trials := len(m.groups[0])
	for _, g := range m.groups {
		trials = min(trials, len(g))
	}
	if trials < 2 {
		return nil, nil
	}
	for _, k := range passSizes(trials) {
		columns := make([][]float64, 2)
		for _, g := range m.groups {
			right := 0
			for _, score := range g {
				if score.Check != nil && score.Check.Valid || score.Check == nil && score.At(eval.Published).Accuracy == 1 {
					right++
				}
			}
			columns[0] = append(columns[0], stats.PassAt(len(g), right, k))
			columns[1] = append(columns[1], stats.PassAll(len(g), right, k))
		}
		estimates, err := m.bootstrap(columns)
		if err != nil {
			return nil, err
		}
		all = append(all, Pass{k, estimates[0], estimates[1]})
	}
	return all, nil
}
