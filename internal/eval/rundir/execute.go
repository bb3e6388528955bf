package rundir

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/callyard/callyard/internal/eval/stage"
)

// Plan is an execution that is ready to run: its calls are in the folder of the run.
type Plan struct {
	// Calls and Results are the files for the batch.
	Calls, Results string
	// Done is the earlier execution, if it has a result for each of the same calls.
	Done *stage.Execution

	dir     string
	samples []stage.Sample
	calls   []stage.ExecCall
	digest  string
}

// PlanLabels writes the labelled calls of the samples to the folder of the run.
func PlanLabels(o Options, to stage.Target) (*Plan, error) {
	return o.plan(stage.LabelsFolder, func(samples []stage.Sample) ([]stage.ExecCall, error) {
		return stage.LabelledCalls(samples, to)
	})
}

// PlanAnswers writes the calls of the answers to the folder of the run.
func PlanAnswers(o Options, to stage.Target) (*Plan, error) {
	return o.plan(stage.AnswersFolder, func(samples []stage.Sample) ([]stage.ExecCall, error) {
		responses, _, err := o.responses(samples)
		if err != nil {
			return nil, err
		}
		return stage.AnswerCalls(samples, responses, to)
	})
}

func (o *Options) plan(folder string, calls func([]stage.Sample) ([]stage.ExecCall, error)) (*Plan, error) {
	dir := filepath.Join(o.Dir, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder of results, which holds no secret
		return nil, err
	}
	samples, err := o.samples()
	if err != nil {
		return nil, err
	}
	p := &Plan{dir: dir, samples: samples, Calls: filepath.Join(dir, stage.CallsFile), Results: filepath.Join(dir, stage.ResultsFile)}
	if p.calls, err = calls(samples); err != nil {
		return nil, err
	}
	if p.digest, err = stage.WriteCalls(p.Calls, p.calls); err != nil {
		return nil, err
	}
	var old stage.Execution
	if text, err := os.ReadFile(p.path()); err == nil && json.Unmarshal(text, &old) == nil && old.Inputs == p.digest && old.Complete() {
		p.Done = &old
	}
	return p, nil
}

// Servers returns the ids of the servers that the calls name, sorted.
func (p *Plan) Servers() []string {
	ids := make(map[string]bool)
	for i := range p.calls {
		ids[p.calls[i].Server] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

func (p *Plan) path() string { return filepath.Join(p.dir, stage.ExecutionFile) }

// Finish summarizes the results of the batch and writes execution.json.
func (p *Plan) Finish() (*stage.Execution, error) {
	e, err := stage.Executed(p.samples, p.calls, p.digest, p.Results)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the execution: %w", err)
	}
	err = stage.WriteFile(p.path(), append(text, '\n'))
	return e, err
}
