package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

const bfclPrefix = "BFCL_v4_"

// BFCLSets returns the sets of BFCL version 4 with single turns, which can be scored without
// running anything.
func BFCLSets() []string {
	return []string{
		"simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "irrelevance",
		"live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance",
	}
}

// readBFCL reads sets of BFCL from the folder "data" of its package.
func readBFCL(path string, o Options) (samples []eval.Sample, err error) {
	sets := o.Sets
	if len(sets) == 0 {
		sets = BFCLSets()
	}
	for _, set := range sets {
		if slices.Contains(BFCLTurnSets(), set) {
			part, err := bfclTurns(path, set, o.Limit)
			if err != nil {
				return nil, err
			}
			samples = append(samples, part...)
			continue
		}
		if !slices.Contains(BFCLSets(), set) {
			return nil, fmt.Errorf("the set %q cannot be scored; the sets are %s", set, strings.Join(append(BFCLSets(), BFCLTurnSets()...), ", "))
		}
		questions, err := load(filepath.Join(path, bfclPrefix+set+".json"))
		if err != nil {
			return nil, err
		}
		answers, err := load(filepath.Join(path, "possible_answer", bfclPrefix+set+".json"))
		if err != nil && (!errors.Is(err, fs.ErrNotExist) || !strings.Contains(set, "relevance")) {
			return nil, err
		}
		part, err := bfclSet(set, questions, answers, o.Limit)
		if err != nil {
			return nil, err
		}
		samples = append(samples, part...)
	}
	return samples, nil
}

// bfclSet reads one set. answers is nil for the sets about relevance, which have none.
func bfclSet(set string, questions, answers *source, limit int) ([]eval.Sample, error) {
	truth := map[string]json.RawMessage{}
	if answers != nil {
		for _, line := range answers.lines() {
			var a struct {
				ID    string          `json:"id"`
				Truth json.RawMessage `json:"ground_truth"`
			}
			if err := line.decode(&a); err != nil {
				return nil, err
			}
			truth[a.ID] = a.Truth
		}
	}
	return samplesOf(questions.lines(), limit, func(_ int, line *element) (s eval.Sample, err error) {
		var q struct {
			ID       string          `json:"id"`
			Question json.RawMessage `json:"question"`
			Function json.RawMessage `json:"function"`
		}
		if err := line.decode(&q); err != nil {
			return s, err
		}
		if q.ID == "" {
			return s, line.fault("the member id is missing")
		}
		s = eval.Sample{ID: q.ID, Category: set, Check: &eval.Check{Kind: "bfcl", Category: set, Functions: q.Function}}
		s.Question, s.Messages = question(q.Question)
		if s.Tools, err = toolsOf(q.Function); err != nil {
			return s, line.fault("function: %w", err)
		}
		for i := range s.Tools {
			s.Tools[i].Schema = jsonSchema(s.Tools[i].Schema, languages[set])
		}
		if answers != nil {
			if s.Check.Answers = truth[q.ID]; isNull(s.Check.Answers) {
				return s, line.fault("%s has no possible answer", q.ID)
			}
			if s.Expected, err = expectedCalls(s.Check.Answers); err != nil {
				return s, line.fault("the possible answer: %w", err)
			}
		} else if set == "live_relevance" {
			s.AnyExpected = true
			for _, tool := range s.Tools {
				s.Expected = append(s.Expected, tool.Name)
			}
		}
		return s, nil
	})
}

// expectedCalls returns the functions of the possible answers.
func expectedCalls(answers json.RawMessage) (names []string, err error) {
	var calls []map[string]json.RawMessage
	if err := json.Unmarshal(answers, &calls); err != nil {
		return nil, errors.New("it is not a list of calls")
	}
	for _, call := range calls {
		for name := range call {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
