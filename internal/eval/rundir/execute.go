package rundir

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// Plan is an execution that is ready: its calls are in the folder of the run.
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

// PlanLabelled writes the labelled calls of the samples to the folder of the run.
func PlanLabelled(o Options, servers map[string]string) (*Plan, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil { //nolint:gosec // a folder of results, which holds no secret
		return nil, err
	}
	samples, err := o.samples()
	if err != nil {
		return nil, err
	}
	p := &Plan{dir: o.Dir, samples: samples, Calls: filepath.Join(o.Dir, stage.CallsFile), Results: filepath.Join(o.Dir, stage.ResultsFile)}
	if p.calls, err = stage.LabelledCalls(samples, servers); err != nil {
		return nil, err
	}
	if _, err := stage.WriteLines(p.Calls, p.calls); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(p.Calls)
	if err != nil {
		return nil, err
	}
	p.digest = eval.Digest(text)
	var old stage.Execution
	if text, err := os.ReadFile(p.path()); err == nil && json.Unmarshal(text, &old) == nil && old.Inputs == p.digest && old.Missing == 0 {
		p.Done = &old
	}
	return p, nil
}

func (p *Plan) path() string { return filepath.Join(p.dir, stage.ExecutionFile) }

// Finish sums up the results of the batch and writes execution.json.
func (p *Plan) Finish() (*stage.Execution, error) {
	e, err := stage.Executed(p.samples, p.calls, p.digest, p.Results)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the execution: %w", err)
	}
	_, err = stage.WriteFile(p.path(), append(text, '\n'))
	return e, err
}
