package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/callyard/callyard/internal/eval"
)

// tasksOf reads the tasks file of a training environment. The ids are those in the transcripts of
// its episodes: the member id, or the split and the index in it.
func tasksOf(file *source, o Options) (samples []eval.Sample, err error) {
	seen, places := unique{}, map[string]int{}
	for _, line := range file.lines() {
		s, err := taskOf(&line)
		if err != nil {
			return nil, err
		}
		if s.ID == "" {
			s.ID = fmt.Sprintf("%s-%d", s.Category, places[s.Category])
		}
		places[s.Category]++
		if err := seen.add(&line, s.ID); err != nil {
			return nil, err
		}
		if o.Limit == 0 || places[s.Category] <= o.Limit {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// taskOf parses a task. Its category is its split.
func taskOf(line *element) (s eval.Sample, err error) {
	var t struct {
		ID       json.RawMessage     `json:"id"`
		Split    string              `json:"split"`
		Question json.RawMessage     `json:"question"`
		Prompt   json.RawMessage     `json:"prompt"`
		Tools    json.RawMessage     `json:"tools"`
		Expected []string            `json:"expected"`
		Labels   []eval.LabelledCall `json:"labels"`
	}
	if err := line.decode(&t); err != nil {
		return s, err
	}
	s = eval.Sample{ID: asText(t.ID), Category: cmp.Or(t.Split, "train"), Question: cmp.Or(asText(t.Prompt), asText(t.Question)), Expected: append([]string{}, t.Expected...), Labels: t.Labels}
	if s.Tools, err = toolsOf(t.Tools); err != nil {
		return s, line.fault("tools: %w", err)
	}
	if len(s.Expected) == 0 {
		for _, label := range s.Labels {
			s.Expect(label.Name)
		}
	}
	return s, nil
}
