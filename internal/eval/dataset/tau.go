package dataset

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// tauTask is the part of a tau2 task that is read.
type tauTask struct {
	ID       json.RawMessage `json:"id"`
	Scenario struct {
		Instructions json.RawMessage `json:"instructions"`
	} `json:"user_scenario"`
	Criteria *struct {
		Actions []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Requestor string          `json:"requestor"`
		} `json:"actions"`
		Communicate json.RawMessage `json:"communicate_info"`
	} `json:"evaluation_criteria"`
	Initial json.RawMessage `json:"initial_state"`
}

// readTau reads the tasks of a domain of tau2: a file tasks.json, or the folder that contains it.
// The actions of the agent are the labelled calls. The reward compares the databases after the
// calls, so the calls must be run.
func readTau(path string, o Options) (samples []eval.Sample, err error) {
	seen := unique{}
	files, err := filepath.Glob(filepath.Join(path, "tasks*.json"))
	if err != nil || len(files) == 0 {
		files = []string{path} // a file, or nothing, which reading it reports
	}
	for _, name := range files {
		file, err := load(name)
		if err != nil {
			return nil, err
		}
		part, err := tauTasks(file, o.Limit, seen)
		if err != nil {
			return nil, err
		}
		samples = append(samples, part...)
	}
	return samples, nil
}

func tauTasks(file *source, limit int, seen unique) (samples []eval.Sample, err error) {
	items, err := file.list()
	if err != nil {
		return nil, err
	}
	for i := range items {
		if limit > 0 && len(samples) == limit {
			break
		}
		var t tauTask
		if err := items[i].decode(&t); err != nil {
			return nil, err
		}
		id := asText(t.ID)
		if id == "" {
			return nil, items[i].fault("the member id is missing")
		}
		if t.Criteria == nil {
			return nil, items[i].fault("task %s has no evaluation_criteria", id)
		}
		if err := seen.add(&items[i], id); err != nil {
			return nil, err
		}
		s := eval.Sample{ID: id, Category: filepath.Base(filepath.Dir(file.name)), Question: instructions(t.Scenario.Instructions)}
		s.Check = &eval.Check{Kind: "tau2", Category: s.Category, Answers: t.Criteria.Communicate}
		if rawjson.IsObject(t.Initial) {
			s.State = t.Initial
		}
		for _, a := range t.Criteria.Actions {
			if a.Requestor == "user" {
				continue // the simulated user's own tools
			}
			s.Labels = append(s.Labels, eval.LabelledCall{Name: a.Name, Arguments: a.Arguments})
			s.Expect(a.Name)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// instructions returns the instructions of the simulated user, which are used as the question: a
// text, or its parts.
func instructions(raw json.RawMessage) string {
	if text := asText(raw); text != "" {
		return text
	}
	var parts struct {
		Reason string `json:"reason_for_call"`
		Known  string `json:"known_info"`
		Tasks  string `json:"task_instructions"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	return strings.TrimSpace(strings.Join([]string{parts.Reason, parts.Known, parts.Tasks}, "\n\n"))
}
