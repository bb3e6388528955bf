package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/bfcl"
	"github.com/callyard/callyard/internal/kit/parallel"
)

// revision is the version of the scoring rules. Increment it with every change that affects scores,
// so that earlier scores are computed again.
const revision = 2

// Missing selects the treatment of samples without an answer.
type Missing string

const (
	MissingError Missing = "error" // scoring is refused
	MissingSkip  Missing = "skip"  // they do not count; the report states their number
	MissingZero  Missing = "zero"  // they count as an empty answer
)

// Settings holds the settings that affect a score.
type Settings struct {
	Reward             *eval.Reward `json:"reward"`
	Missing            Missing      `json:"missing"`
	UnderscoresForDots bool         `json:"underscores_for_dots,omitempty"`
}

// Scored is the result of scoring.
type Scored struct {
	Scores []Score
	// Computed is the number of new scores; the others were kept.
	Computed int
	// Skipped are samples without an answer that do not count.
	Skipped []string
	// Unknown are ids of responses that no sample has.
	Unknown []string
}

// Run scores the responses. outcomes holds the outcomes of calls that were run, or is nil. Scores in
// earlier whose inputs are unchanged are kept. The result is ordered by sample, then by trial. It
// returns an error if the responses have no ids in common with the samples, or if a sample has no
// answer under [MissingError].
func Run(ctx context.Context, samples []Sample, responses []Response, outcomes *Outcomes, settings Settings, earlier []Score) (*Scored, error) {
	rules, err := json.Marshal(struct {
		Revision int      `json:"revision"`
		Settings Settings `json:"settings"`
	}{revision, settings})
	if err != nil {
		return nil, fmt.Errorf("encoding the settings: %w", err)
	}
	known := make(map[AnswerKey]*Score, len(earlier))
	for i := range earlier {
		known[AnswerKey{earlier[i].ID, earlier[i].Trial}] = &earlier[i]
	}
	out := &Scored{}
	work, err := out.plan(samples, responses, settings.Missing)
	if err != nil {
		return nil, err
	}
	out.Scores = make([]Score, len(work))
	var computed atomic.Int64
	err = parallel.Each(ctx, len(work), func(i int) error {
		w := &work[i]
		inputs := eval.Digest([]byte(w.sample.Digest), []byte(w.response.Digest), rules)
		if ran := outcomes.digest(w.sample.ID, w.response.Trial); ran != "" {
			inputs = eval.Digest([]byte(inputs), []byte(ran))
		}
		if old := known[AnswerKey{w.sample.ID, w.response.Trial}]; old != nil && old.Inputs == inputs {
			out.Scores[i] = *old
			return nil
		}
		computed.Add(1)
		score, err := scoreOne(w, outcomes, settings)
		if err != nil {
			return err
		}
		score.Sample, score.Inputs = w.sample.Digest, inputs
		out.Scores[i] = score
		return nil
	})
	out.Computed = int(computed.Load())
	return out, err
}

// answer is one answer to score.
type answer struct {
	sample   *Sample
	response *Response
	prepared func() *eval.Prepared // shared by the trials of a sample
}

// plan matches responses to samples.
func (s *Scored) plan(samples []Sample, responses []Response, missing Missing) (work []answer, err error) {
	of := make(map[string][]*Response, len(samples))
	for i := range responses {
		of[responses[i].ID] = append(of[responses[i].ID], &responses[i])
	}
	var absent []string
	matched := false
	for i := range samples {
		sample := &samples[i]
		prepared := sync.OnceValue(func() *eval.Prepared { return eval.Prepare(&sample.Sample) })
		answers := of[sample.ID]
		delete(of, sample.ID)
		matched = matched || len(answers) > 0
		slices.SortFunc(answers, func(a, b *Response) int { return a.Trial - b.Trial })
		given := 0
		for _, r := range answers {
			if r.Error == "" {
				given++
			}
			if r.Error == "" || missing == MissingZero {
				work = append(work, answer{sample, r, prepared})
			}
		}
		if given == 0 {
			absent = append(absent, sample.ID)
			if len(answers) == 0 && missing == MissingZero {
				r := &Response{Response: eval.Response{ID: sample.ID, Error: "no response"}}
				work = append(work, answer{sample, r, prepared})
			}
		}
	}
	for _, r := range responses {
		if of[r.ID] != nil && !slices.Contains(s.Unknown, r.ID) {
			s.Unknown = append(s.Unknown, r.ID)
		}
	}
	switch {
	case !matched:
		return nil, fmt.Errorf("no sample has a response: the ids of the responses must be those of the samples, such as %q", first(samples))
	case len(absent) > 0 && missing == MissingError:
		return nil, fmt.Errorf("%d samples have no response, such as %q; choose whether they are left out (skip) or count as wrong (zero)", len(absent), absent[0])
	case len(absent) == len(samples) && missing == MissingSkip:
		return nil, fmt.Errorf("every response has an error instead of an answer, such as that of %q", absent[0])
	case missing == MissingSkip:
		s.Skipped = absent
	}
	return work, nil
}

func first(samples []Sample) string {
	if len(samples) == 0 {
		return ""
	}
	return samples[0].ID
}

// scoreOne scores one answer.
func scoreOne(w *answer, outcomes *Outcomes, settings Settings) (Score, error) {
	prepared := w.prepared()
	if w.response.Error != "" {
		return unanswered(w, prepared, outcomes, settings), nil
	}
	x := eval.Extract(&w.response.Response, w.sample.Tools, prepared.Names)
	ran := outcomes.of(&w.sample.Sample, &w.response.Response, prepared.Names, x.Rescued)
	out := Score{Score: prepared.ScoreExtracted(&w.response.Response, &x, settings.Reward, ran)}
	var err error
	switch check := w.sample.Check; {
	case check == nil:
	case check.Kind == "tau2":
		out.Check = tauVerdict(check, &w.response.Response, ran)
	case check.Kind == "bfcl" && check.Turns > 0:
		out.Check = outcomes.turnsVerdict(&w.sample.Sample, &w.response.Response, x.Rescued, ran)
	case check.Kind == "bfcl":
		if out.Check, err = callsVerdict(check, x.Rescued, settings); err != nil {
			return out, fmt.Errorf("sample %s: %w", w.sample.ID, err)
		}
	}
	return out, nil
}

// callsVerdict returns the verdict of BFCL's checker of single turns.
func callsVerdict(check *eval.Check, found []eval.Call, settings Settings) (*eval.Verdict, error) {
	calls := make([]bfcl.Call, len(found))
	for i, c := range found {
		calls[i] = bfcl.Call{Name: c.Name, Arguments: c.Arguments}
		if len(c.Arguments) == 0 {
			calls[i].Arguments = json.RawMessage("{}")
		}
	}
	fault, err := bfcl.Check(check.Category, check.Functions, check.Answers, calls, bfcl.Options{UnderscoresForDots: settings.UnderscoresForDots})
	return &eval.Verdict{Valid: fault == "", Error: string(fault)}, err
}

// unanswered returns the score of a missing answer. It is wrong even if no tool is expected.
func unanswered(w *answer, prepared *eval.Prepared, outcomes *Outcomes, settings Settings) Score {
	out := Score{Score: prepared.Score(&eval.Response{ID: w.sample.ID, Trial: w.response.Trial}, settings.Reward), Unanswered: true}
	none := eval.Selection{Type: eval.TypeNone, Missing: len(out.Expected)}
	if len(out.Turns) > 0 {
		none.Missing = out.Lenient.Missing // a tool counts in each turn
	}
	for i := range out.Turns {
		t := &out.Turns[i]
		t.Strict, t.Published, t.Lenient = none.Type, none.Type, none.Type
	}
	out.Strict, out.Published, out.Lenient = none, none, none
	out.Reward = settings.Reward.Unanswered()
	if out.Similar != nil {
		out.Similar = new(float64)
	}
	if check := w.sample.Check; check != nil && (check.Kind == "bfcl" && check.Turns == 0 || outcomes.stateful()) {
		out.Check = &eval.Verdict{Error: "no response"}
	}
	return out
}
