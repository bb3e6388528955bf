// Package rundir implements the commands of an evaluation on the folder of a run: it copies samples and
// responses into the folder, scores what changed, and writes the report.
//
// Responses in a folder are never replaced by others, because they may have cost hours of model time.
// The package prints nothing.
package rundir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/ask"
	"github.com/callyard/callyard/internal/eval/dataset"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/kit/bom"
)

// Options specifies what to score.
type Options struct {
	// Dir is the folder of the run. It is created if it does not exist.
	Dir string
	// Data is a data set in the form FORMAT:PATH. If empty, the samples in the folder are used.
	Data string
	Part dataset.Options
	// Responses is a file of responses, a transcript, or a folder of transcripts. If empty, those
	// in the folder of the run are used.
	Responses string
	// Reward is the name of a preset, or a file. If empty, the default is used.
	Reward  string
	Scoring stage.Settings // except for the reward
	Report  report.Settings
	// Version is the version of the program.
	Version string
}

// Result is the result of scoring.
type Result struct {
	Report *report.Report
	// Computed is the number of answers that were scored, and Kept the number of scores that were
	// kept. Reused reports whether the report was kept as well.
	Computed, Kept int
	Reused         bool
	Skipped        []string
	// Unknown are ids of responses that no sample has.
	Unknown []string
	// Unoffered are expected tools that their samples do not offer, one for each such sample.
	Unoffered []Unoffered
	// LeftOut is the number of transcripts that were read but have no answer to score: those of
	// masked episodes, and those without an answer.
	LeftOut int
}

// Unoffered is an expected tool that is not among the tools of its sample.
type Unoffered struct{ Sample, Tool string }

// Score scores the responses of a run and writes scores.jsonl and report.json.
func Score(ctx context.Context, o Options) (*Result, error) {
	reward, err := rewardOf(o.Reward)
	if err != nil {
		return nil, err
	}
	o.Scoring.Reward = reward
	if err := os.MkdirAll(o.Dir, 0o755); err != nil { //nolint:gosec // a folder of results, which holds no secret
		return nil, err
	}
	samples, err := o.samples()
	if err != nil {
		return nil, err
	}
	responses, leftOut, err := o.responses(samples)
	if err != nil {
		return nil, err
	}
	scores := filepath.Join(o.Dir, stage.ScoresFile)
	earlier, err := stage.ReadScores(scores)
	if err != nil {
		earlier = nil // an earlier version of the file, or none: score everything
	}
	outcomes, err := stage.ReadOutcomes(o.Dir)
	if err != nil {
		return nil, err
	}
	done, err := stage.Run(ctx, samples, responses, outcomes, o.Scoring, earlier)
	if err != nil {
		return nil, err
	}
	if err := stage.WriteLines(scores, done.Scores); err != nil {
		return nil, err
	}
	out := &Result{Computed: done.Computed, Kept: len(done.Scores) - done.Computed, Skipped: done.Skipped, Unknown: done.Unknown, LeftOut: leftOut}
	for i := range samples {
		if missing := samples[i].Unoffered(); len(missing) > 0 {
			out.Unoffered = append(out.Unoffered, Unoffered{samples[i].ID, missing[0]})
		}
	}
	out.Report, out.Reused, err = o.report(ctx, done)
	return out, err
}

func rewardOf(name string) (*eval.Reward, error) {
	name = cmp.Or(name, eval.DefaultReward)
	if !strings.HasSuffix(name, ".json") {
		return eval.RewardPreset(name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the reward cannot be read: %w", err)
	}
	reward, err := eval.ParseReward(bom.Trim(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return reward, nil
}

// Ask sends the questions of a run to a model and adds its answers to those in the folder.
func Ask(ctx context.Context, o Options, model ask.Options) (*ask.Outcome, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil { //nolint:gosec // a folder of results, which holds no secret
		return nil, err
	}
	samples, err := o.samples()
	if err != nil {
		return nil, err
	}
	return ask.Run(ctx, filepath.Join(o.Dir, stage.ResponsesFile), samples, model)
}

func (o *Options) samples() ([]stage.Sample, error) {
	path := filepath.Join(o.Dir, stage.SamplesFile)
	switch {
	case o.Part.Limit < 0:
		return nil, errors.New("--limit must not be negative")
	case o.Data == "" && (o.Part.Limit > 0 || len(o.Part.Sets) > 0):
		return nil, fmt.Errorf("--set and --limit choose samples of a data set: name it with --data, or leave them out to take all samples in %s", o.Dir)
	}
	if o.Data == "" {
		samples, err := stage.ReadSamples(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s has no %s: name a data set with --data", o.Dir, stage.SamplesFile)
		}
		return samples, err
	}
	read, err := dataset.Read(o.Data, o.Part)
	if err != nil {
		return nil, err
	}
	return stage.WriteSamples(path, read)
}

// responses returns the responses in the folder, into which it first copies new ones. leftOut is that
// of [stage.Transcripts].
func (o *Options) responses(samples []stage.Sample) (responses []stage.Response, leftOut int, err error) {
	path := filepath.Join(o.Dir, stage.ResponsesFile)
	if o.Responses != "" && !sameFile(o.Responses, path) {
		var text []byte
		if text, leftOut, err = o.others(samples); err != nil {
			return nil, 0, err
		}
		old, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(old, text) {
			return nil, 0, fmt.Errorf("%s has other responses than %s: remove it, or choose another folder", path, o.Responses)
		}
		if err := stage.WriteFile(path, text); err != nil {
			return nil, 0, err
		}
	}
	responses, err = stage.ReadResponses(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("%s has no %s: name a file of responses with --responses", o.Dir, stage.ResponsesFile)
	}
	return responses, leftOut, err
}

// others returns the responses in a file, a transcript or a folder of transcripts, as the text of a
// file of responses.
func (o *Options) others(samples []stage.Sample) (text []byte, leftOut int, err error) {
	if info, err := os.Stat(o.Responses); err == nil && info.IsDir() || stage.IsTranscript(o.Responses) {
		return stage.Transcripts(o.Responses, samples)
	}
	if text, err = os.ReadFile(o.Responses); err != nil {
		return nil, 0, fmt.Errorf("the responses cannot be read: %w", err)
	}
	_, err = stage.ReadResponses(o.Responses)
	return text, 0, err
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// report writes report.json, unless the existing one has the same inputs.
func (o *Options) report(ctx context.Context, done *stage.Scored) (r *report.Report, reused bool, err error) {
	path := filepath.Join(o.Dir, stage.ReportFile)
	old, _ := ReadReport(path) // an unreadable report is created again
	about := report.About{Version: o.Version, Data: o.Data, Skipped: done.Skipped, Scoring: o.Scoring}
	if about.Data == "" && old != nil {
		about.Data = old.Data
	}
	inputs, err := report.Inputs(done.Scores, about, o.Report)
	if err != nil {
		return nil, false, err
	}
	if old != nil && old.Inputs == inputs {
		return old, true, nil
	}
	if r, err = report.Make(ctx, done.Scores, about, o.Report); err != nil {
		return nil, false, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, false, fmt.Errorf("encoding the report: %w", err)
	}
	err = stage.WriteFile(path, append(text, '\n'))
	return r, false, err
}

// ReadReport reads a file that [Score] wrote.
func ReadReport(path string) (*report.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return report.Parse(path, text)
}

// Load reads the scores and the report of a run.
func Load(dir string) ([]stage.Score, *report.Report, error) {
	scores, err := stage.ReadScores(filepath.Join(dir, stage.ScoresFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no %s: run callyard eval score first", dir, stage.ScoresFile)
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := ReadReport(filepath.Join(dir, stage.ReportFile))
	return scores, r, err
}
