package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
)

// evalLevel declares --level.
func evalLevel(cmd *cobra.Command, level *string) {
	cmd.Flags().StringVar(level, "level", string(eval.Published), "level of extraction: strict, published or lenient")
	offer(cmd, "level", string(eval.Strict), string(eval.Published), string(eval.Lenient))
}

func checkLevel(level string) error {
	if !slices.Contains(eval.Levels(), eval.Level(level)) {
		return fail(exitUsage, "--level must be strict, published or lenient.")
	}
	return nil
}

func evalCompareCommand() *cobra.Command {
	var level string
	var margin float64
	cmd := &cobra.Command{
		Use:   "compare RUN_A RUN_B",
		Short: "Compare two runs on the same samples",
		Long: "compare prints the differences of two scored runs, RUN_B minus RUN_A, sample by sample: with a paired bootstrap interval, the p-value of a sign-flip permutation test, " +
			"also adjusted for several metrics (Holm), McNemar's exact test of the accuracy, and the smallest difference that these samples could show.\n\n" +
			"Samples that only one of the runs has do not count. Iterations and seed are those of RUN_A's report.",
		Example: "  callyard eval compare run-a/ run-b/\n  callyard eval compare run-a/ run-b/ --equivalent 0.02 --json",
		Args:    takes(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLevel(level); err != nil {
				return err
			}
			if margin < 0 || margin > 1 {
				return fail(exitUsage, "--equivalent must be a number from 0 to 1, such as 0.02 for two points.")
			}
			a, first, err := rundir.Load(args[0])
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			b, _, err := rundir.Load(args[1])
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			c, err := report.Compare(cmd.Context(), a, b, eval.Level(level), margin, first.Settings)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			return showComparison(screenFor(cmd), c)
		},
	}
	evalLevel(cmd, &level)
	cmd.Flags().Float64Var(&margin, "equivalent", 0, "test whether the runs differ by less than this, such as 0.02")
	return cmd
}

// maxFlips limits the number of changed samples listed for people.
const maxFlips = 20

func showComparison(out screen, c *report.Comparison) error {
	if out.structured() {
		return out.value(c)
	}
	text := fmt.Sprintf("%s in both runs, extraction %s. A is the first run, B the second.", count(c.Samples, "sample"), c.Level)
	if c.OnlyA+c.OnlyB > 0 {
		text += fmt.Sprintf(" %d only in the first and %d only in the second do not count.", c.OnlyA, c.OnlyB)
	}
	if err := out.text(text + "\n\n"); err != nil {
		return err
	}
	var rows [][]cell
	asked := len(c.Metrics) > 0 && c.Metrics[0].Equivalent != nil
	for _, d := range c.Metrics {
		rows = append(rows, differenceRow(d.Name, d, asked))
	}
	for _, d := range c.Categories {
		rows = append(rows, differenceRow("accuracy, "+d.Name, d, asked))
	}
	header := []string{"METRIC", "A", "B", "B MINUS A", "P", "P ADJUSTED", "DETECTABLE"}
	if asked {
		header = append(header, "EQUIVALENT")
	}
	if err := out.table(header, rows); err != nil {
		return err
	}
	text = "\nDETECTABLE is the smallest true difference that these samples would show in 4 of 5 runs.\n"
	if c.McNemar != nil {
		text += "McNemar's exact test of the accuracy: p " + equal(*c.McNemar) + "\n"
	}
	gained, lost := "Became right", "Became wrong"
	if c.McNemar == nil { // several trials
		gained, lost = "Right in more trials", "Right in fewer trials"
	}
	text += flipsText(gained, c.Gained) + flipsText(lost, c.Lost)
	return out.text(text)
}

// differenceRow formats a row of the table. asked adds the column for equivalence.
func differenceRow(name string, d report.Difference, asked bool) []cell {
	row := []string{
		oneLine(name), fmt.Sprintf("%.3f", d.A), fmt.Sprintf("%.3f", d.B), fmt.Sprintf("%+.3f [%+.3f, %+.3f]", d.Mean, d.Low, d.High),
		probability(d.P), probability(d.Adjusted), fmt.Sprintf("%.3f", d.Detectable),
	}
	switch {
	case asked && d.Equivalent == nil:
		row = append(row, "")
	case asked && d.Equivalent.Equivalent:
		row = append(row, "yes, p "+equal(d.Equivalent.P))
	case asked:
		row = append(row, "no, p "+equal(d.Equivalent.P))
	}
	return cells(row...)
}

// probability formats a p-value, never as 0.
func probability(p float64) string {
	if p < 0.00005 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// equal formats a p-value for use after "p".
func equal(p float64) string {
	if text := probability(p); text[0] == '<' {
		return "< " + text[1:]
	}
	return "= " + probability(p)
}

// flipsText formats a line about samples whose accuracy changed.
func flipsText(what string, ids []string) string {
	text := fmt.Sprintf("%s: %d", what, len(ids))
	if len(ids) == 0 {
		return text + "\n"
	}
	shown := make([]string, 0, maxFlips+1)
	for i, id := range ids {
		if i == maxFlips {
			shown = append(shown, "…")
			break
		}
		shown = append(shown, oneLine(id))
	}
	return text + " (" + strings.Join(shown, ", ") + ")\n"
}

func evalReportCommand() *cobra.Command {
	var level, file, pictures, other string
	cmd := &cobra.Command{
		Use:   "report RUN_DIR",
		Short: "Write a report of a scored run as an HTML page and PNG files",
		Long: "report writes one HTML file with the metrics and their intervals, a heat map and a radar chart by category, failure types, rewards, and the answers that are not correct. " +
			"With --compare it also has the differences from another run. The file loads nothing and runs no script.\n\n" +
			"With --png, the table by category, the heat map, the radar chart (from three categories on), the failure types and the rewards are PNG files too. The program callyard-bench draws them; it is found as for `callyard bench`.",
		Example: "  callyard eval report run/ --html report.html --png charts/\n  callyard eval report run-a/ --compare run-b/ --html report.html",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLevel(level); err != nil {
				return err
			}
			if file == "" && pictures == "" {
				return fail(exitUsage, "--html must name the file to write, or --png the folder for charts.")
			}
			page, err := pageOf(cmd, args[0], other, eval.Level(level))
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			written, err := writeReport(cmd, page, file, pictures, args[0], other)
			if err != nil {
				return err
			}
			out := screenFor(cmd)
			if out.structured() {
				return out.value(page.Report)
			}
			return out.text(written)
		},
	}
	evalLevel(cmd, &level)
	cmd.Flags().StringVar(&file, "html", "", "file for the page")
	cmd.Flags().StringVar(&pictures, "png", "", "folder for PNG files: table, heatmap, radar, failures and rewards")
	cmd.Flags().StringVar(&other, "compare", "", "folder of another scored run on the same samples")
	return cmd
}

// writeReport writes the requested page and charts, and returns a text with their paths.
func writeReport(cmd *cobra.Command, page *report.Page, file, pictures, dir, other string) (written string, err error) {
	if file != "" {
		var text bytes.Buffer
		if err := page.Write(&text); err != nil {
			return "", fail(exitUsage, "%w", err)
		}
		if err := stage.WriteFile(file, text.Bytes()); err != nil {
			return "", fail(exitUsage, "%w", err)
		}
		written = "Report: " + file + "\n"
	}
	if pictures == "" {
		return written, nil
	}
	line := []string{"eval-charts", string(page.Level), pictures, dir}
	if other != "" {
		line = append(line, other)
	}
	return written + "Charts: " + pictures + "\n", runBench(cmd, line, "")
}

func pageOf(cmd *cobra.Command, dir, other string, level eval.Level) (*report.Page, error) {
	scores, r, err := rundir.Load(dir)
	if err != nil {
		return nil, err
	}
	page := &report.Page{Title: filepath.Base(filepath.Clean(dir)), Report: r, Scores: scores, Level: level}
	if other == "" {
		return page, nil
	}
	if page.Other, _, err = rundir.Load(other); err != nil {
		return nil, err
	}
	page.OtherTitle = filepath.Base(filepath.Clean(other))
	page.Comparison, err = report.Compare(cmd.Context(), scores, page.Other, level, 0, r.Settings)
	return page, err
}
