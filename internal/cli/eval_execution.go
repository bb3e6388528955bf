package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/callyard/callyard/clients/go/batchfile"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
)

// executePlan runs the batch and summarizes its results. Failed calls are a result, not an error.
func executePlan(ctx context.Context, c *client, plan *rundir.Plan, o batchfile.Options) (*stage.Execution, error) {
	quiet := *c // print the execution instead of the batch
	quiet.out = screen{w: io.Discard}
	o.Calls, o.Results, o.Unchecked = plan.Calls, plan.Results, true
	if err := runBatch(ctx, &quiet, o); err != nil && err.Error() != "" {
		// These commands write the results elsewhere than `batch` does.
		text := strings.NewReplacer("another file for its results with --out", "another folder", "another file with --out", "another folder").Replace(err.Error())
		return nil, fail(exitCode(err), "%s", text)
	}
	e, err := plan.Finish()
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return e, nil
}

// executions holds the executions of `callyard eval run`.
type executions struct {
	Labels  *stage.Execution `json:"labels,omitempty"`
	Answers *stage.Execution `json:"answers,omitempty"`
}

// show prints the executions. Its error has the exit code of a batch with these results.
func (e *executions) show(out screen) error {
	var sum stage.Tally
	all := []*stage.Execution{e.Labels, e.Answers}
	titles := []string{"Labelled calls", "Calls of the answers"}
	if e.Labels == nil || e.Answers == nil {
		titles = []string{"", ""}
	}
	if out.structured() {
		if err := out.value(e); err != nil {
			return err
		}
	}
	for i, one := range all {
		if one == nil {
			continue
		}
		sum.Add(&one.Tally)
		if one.State != nil {
			sum.Add(one.State)
		}
		if out.structured() {
			continue
		}
		if titles[i] != "" {
			if err := out.text(strings.Repeat("\n", i) + titles[i] + ":\n"); err != nil {
				return err
			}
		}
		if err := showExecution(out, one); err != nil {
			return err
		}
	}
	switch {
	case sum.Reached == sum.Calls && sum.ToolErrors == 0:
		return nil
	case sum.Reached+sum.Denied == sum.Calls && sum.ToolErrors == 0:
		return ended(exitRefused)
	}
	return ended(exitToolError)
}

func showExecution(out screen, e *stage.Execution) error {
	var rows [][]cell
	row := func(name string, t *stage.Tally) {
		rows = append(rows, cells(oneLine(name), decimal(t.Calls), decimal(t.Reached), decimal(t.Reached-t.ToolErrors),
			decimal(t.ToolErrors), decimal(t.Denied), decimal(t.Unknown), decimal(t.Missing)))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Categories)) {
		row(name, e.Categories[name])
	}
	for _, name := range slices.Sorted(maps.Keys(e.Tools)) {
		row(name, e.Tools[name])
	}
	if len(e.Categories) != 1 {
		row("sum", &e.Tally)
	}
	if e.State != nil {
		row("reset and state", e.State)
	}
	if err := out.table([]string{"CATEGORY OR TOOL", "CALLS", "REACHED", "NO ERROR", "TOOL ERROR", "DENIED", "UNKNOWN", "MISSING"}, rows); err != nil {
		return err
	}
	var b strings.Builder
	for _, title := range slices.Sorted(maps.Keys(e.Failures)) {
		fmt.Fprintf(&b, "%d without a result: %s\n", e.Failures[title], oneLine(title))
	}
	return out.text(b.String())
}
