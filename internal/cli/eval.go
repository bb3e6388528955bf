package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/dataset"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/eval/stats"
	"github.com/callyard/callyard/internal/setup"
)

func evalCommand() *cobra.Command {
	cmd := group("eval", "Evaluate how well a model selects tools", evalRunCommand(), evalScoreCommand(), evalCompareCommand(), evalReportCommand())
	cmd.Long = "eval scores the answers of a model to questions with known tools: precision, recall, F1 and accuracy with bootstrap intervals, failure types and rewards.\n" +
		"A run is a folder. docs/reference/evaluation.md has the rules."
	return cmd
}

func evalScoreCommand() *cobra.Command {
	var o rundir.Options
	var missing string
	cmd := &cobra.Command{
		Use:   "score RUN_DIR",
		Short: "Score the answers of a run",
		Long: "score reads samples and responses, and writes scores.jsonl and report.json to the folder RUN_DIR. It asks no model and needs no running Callyard.\n\n" +
			"The first time, name the data set with --data and the answers with --responses; both are stored in the folder. Later, RUN_DIR is enough. Only what changed is scored again.\n\n" +
			"Each line of the responses is {\"id\":\"…\",\"text\":\"…\"}, or with \"message\" in place of \"text\" for the answer of a provider's API; \"trial\" numbers several answers to a sample.\n\n" +
			"The responses can also be a transcript or a folder of transcripts, of `callyard env` or `callyard agent`: what a model called in an episode or a session is one answer. A session of several prompts answers a conversation, whose calls are expected turn by turn.",
		Example: "  callyard eval score run/ --data jsonl:questions.jsonl --responses answers.jsonl\n" +
			"  callyard eval score run/ --data bfcl:bfcl_eval/data --set live_multiple --responses answers.jsonl --missing zero\n" +
			"  callyard eval score run/ --data tasks:tasks.jsonl --responses transcripts/notes\n" +
			"  callyard eval score run/ --data jsonl:questions.jsonl --responses ~/.local/state/callyard/agent",
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir, o.Scoring.Missing, o.Version = args[0], stage.Missing(missing), setup.Version()
			if !slices.Contains([]string{"error", "skip", "zero"}, missing) {
				return fail(exitUsage, "--missing must be error, skip or zero.")
			}
			if o.Report.Iterations < 100 || o.Report.Iterations > 10_000_000 || o.Part.Limit < 0 {
				return fail(exitUsage, "--iterations must be a number from 100 to 10000000, and --limit must not be negative.")
			}
			result, err := rundir.Score(cmd.Context(), o)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			return showScored(screenFor(cmd), screenOf(cmd.ErrOrStderr()), o.Dir, result)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "data set FORMAT:PATH; the formats are "+strings.Join(dataset.Formats(), ", ")+" (default: the samples in RUN_DIR)")
	f.StringArrayVar(&o.Part.Sets, "set", nil, "set of a data set with several, such as live_multiple; repeatable (default: all with one turn)")
	f.IntVar(&o.Part.Limit, "limit", 0, "maximum number of samples of each set")
	f.StringVar(&o.Responses, "responses", "", "file of responses, JSON Lines, or transcript, or folder of transcripts (default: those in RUN_DIR)")
	f.StringVar(&missing, "missing", string(stage.MissingError), "samples without a response: error, skip (leave them out) or zero (count them as wrong)")
	f.StringVar(&o.Reward, "reward", eval.DefaultReward, "reward: "+strings.Join(eval.RewardNames(), ", ")+", or a JSON file")
	f.BoolVar(&o.Scoring.UnderscoresForDots, "underscores-for-dots", false, "BFCL: expect function names with underscores in place of dots")
	f.IntVar(&o.Report.Iterations, "iterations", stats.DefaultIterations, "bootstrap iterations")
	f.Uint64Var(&o.Report.Seed, "seed", stats.DefaultSeed, "seed of the bootstrap")
	f.BoolVar(&o.Report.Stratify, "stratify", false, "draw within each category")
	offer(cmd, "missing", "error", "skip", "zero")
	offer(cmd, "reward", eval.RewardNames()...)
	offer(cmd, "set", append(dataset.BFCLSets(), dataset.BFCLTurnSets()...)...)
	return cmd
}

// showScored prints a report as a table, or as structured data.
func showScored(out, note screen, dir string, result *rundir.Result) error {
	var notes strings.Builder
	if n := len(result.Unknown); n > 0 {
		fmt.Fprintf(&notes, "%d responses match no sample, such as %q.\n", n, oneLine(result.Unknown[0]))
	}
	if n := len(result.Unoffered); n > 0 {
		first := result.Unoffered[0]
		fmt.Fprintf(&notes, "%d samples expect a tool that they do not offer, such as %q in sample %q.\n", n, oneLine(first.Tool), oneLine(first.Sample))
	}
	if n := len(result.Skipped); n > 0 {
		fmt.Fprintf(&notes, "%d samples have no response and do not count, such as %q.\n", n, oneLine(result.Skipped[0]))
	}
	if result.LeftOut > 0 {
		fmt.Fprintf(&notes, "%d transcripts have no answer, or are those of masked episodes; they do not count.\n", result.LeftOut)
	}
	if err := note.text(notes.String()); err != nil {
		return err
	}
	r := result.Report
	if out.structured() {
		return out.value(r)
	}
	if err := out.text(fmt.Sprintf("%s, %s: %d scored, %d unchanged.\n\n", count(r.Samples, "sample"), count(r.Answers, "answer"), result.Computed, result.Kept)); err != nil {
		return err
	}
	if err := out.table([]string{"EXTRACTION", "MEAN OVER", "PRECISION", "RECALL", "F1", "ACCURACY"}, levelRows(r)); err != nil {
		return err
	}
	var rows [][]cell
	published := r.At(eval.Published)
	for i := range published.Categories {
		c := &published.Categories[i]
		row := []string{oneLine(c.Name), decimal(c.Samples), estimate(c.Metrics.F1), estimate(c.Metrics.Accuracy)}
		for _, t := range eval.Types() {
			row = append(row, decimal(c.Types[t]))
		}
		rows = append(rows, cells(row...))
	}
	header := []string{"CATEGORY", "SAMPLES", "F1", "ACCURACY"}
	for _, t := range eval.Types() {
		header = append(header, strings.ToUpper(string(t)))
	}
	if err := out.text("\n"); err != nil {
		return err
	}
	if err := out.table(header, rows); err != nil {
		return err
	}
	return out.text("\n" + rewardLines(r) + "Report: " + filepath.Join(dir, stage.ReportFile) + "\n")
}

func levelRows(r *report.Report) (rows [][]cell) {
	for i := range r.Levels {
		l := &r.Levels[i]
		for _, m := range []struct {
			level, over string
			metrics     *report.Metrics
		}{{string(l.Level), "samples", &l.Micro}, {string(l.Level), "categories", &l.Macro}} {
			row := []string{m.level, m.over}
			for _, e := range m.metrics.List() {
				row = append(row, estimate(e))
			}
			rows = append(rows, cells(row...))
		}
	}
	return rows
}

// rewardLines formats a line for each reward, for the data set's own checker, and for pass@k.
func rewardLines(r *report.Report) string {
	var b strings.Builder
	for _, w := range r.Rewards {
		fmt.Fprintf(&b, "Reward %s, %s: %.3f [%.3f, %.3f]\n", oneLine(r.Scoring.Reward.Name), w.Name, w.Mean.Mean, w.Mean.Low, w.Mean.High)
	}
	if r.Similar != nil {
		fmt.Fprintf(&b, "Accuracy, published, with similar tools accepted: %s\n", estimate(*r.Similar))
	}
	if r.Check != nil {
		fmt.Fprintf(&b, "Accepted by the data set's own checker: %s\n", estimate(r.Check.Valid))
	}
	if e := r.Executed; e != nil {
		fmt.Fprintf(&b, "Calls that were run: %d of %d answers, %d without an error, %d denied, %d not offered, %d answers masked\n", e.Calls, e.Answers, e.OK, e.Denied, e.Refused, e.Masked)
		for _, share := range e.Shares() {
			fmt.Fprintf(&b, "  %s: %s\n", share.Name, estimate(share.Mean))
		}
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		fmt.Fprintf(&b, "Turn %d, accuracy, published: %s of %d samples\n", t.Turn, estimate(t.Accuracy), t.Samples)
	}
	for _, p := range r.Pass {
		fmt.Fprintf(&b, "pass@%d: %s, pass^%d: %s\n", p.K, estimate(p.AtLeastOne), p.K, estimate(p.All))
	}
	return b.String()
}

// estimate formats a proportion in percent with its interval.
func estimate(e stats.Estimate) string {
	return fmt.Sprintf("%.1f [%.1f, %.1f]", 100*e.Mean, 100*e.Low, 100*e.High)
}
