package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/clients/go/batchfile"
	"github.com/callyard/callyard/internal/eval/dataset"
	"github.com/callyard/callyard/internal/eval/rundir"
	"github.com/callyard/callyard/internal/eval/stage"
)

func evalRunCommand() *cobra.Command {
	var o rundir.Options
	var execute string
	var servers []string
	var m evalModel
	batch := batchfile.Options{}
	cmd := &cobra.Command{
		Use:   "run RUN_DIR",
		Short: "Ask a model the questions of a data set, or run its labelled calls",
		Long: "With --model, run asks the model the questions of a data set and keeps its answers in RUN_DIR, where `callyard eval score` finds them. Answers that are there are not asked for again.\n\n" +
			"Without --model, or with --execute label, run sends the calls that a data set expects to Callyard as one batch, and counts those that reach their tool and those that the tool answers without an error. " +
			"It shows whether the fleet can run the data set at all, before a model is measured on it.\n\n" +
			"After any interruption the same command continues: no call is sent twice. When all calls have a result, it runs nothing again and needs no Callyard.\n\n" +
			"Exit code: 0 every call ended without an error, 1 some calls failed or a tool reported an error, 3 all calls that did not succeed were denied or Callyard refused the batch, 4 Callyard was not reachable within --give-up.",
		Example: "  callyard eval run run/ --data bfcl:bfcl_eval/data --set live_multiple --model ollama:qwen3 --trials 4\n  callyard eval run run/ --data mcptoolbench:filesystem_0723_single.json --execute label --server filesystem=files",
		Args:    takes(1, 1),
	}
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		o.Dir = args[0]
		if !slices.Contains([]string{"", "none", "label"}, execute) || execute == "none" && m.name == "" {
			return fail(exitUsage, "--execute must be label, or none with --model.")
		}
		if m.name != "" {
			if err := m.ask(ctx, c, o); err != nil || execute != "label" {
				return err
			}
		}
		if batch.GiveUp <= 0 {
			batch.GiveUp = -1 // at the first failure
		}
		names, err := serverNames(servers)
		if err != nil {
			return err
		}
		plan, err := rundir.PlanLabelled(o, names)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		if plan.Done != nil && !batch.Restart && !batch.Cancel {
			return showExecution(c.out, plan.Done)
		}
		return executePlan(ctx, c, plan, batch)
	})
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "data set FORMAT:PATH; the formats are "+strings.Join(dataset.Formats(), ", ")+" (default: the samples in RUN_DIR)")
	f.StringArrayVar(&o.Part.Sets, "set", nil, "set of a data set with several; repeatable (default: all)")
	f.IntVar(&o.Part.Limit, "limit", 0, "maximum number of samples of each set")
	f.StringVar(&execute, "execute", "", "calls to run: label, or none (default: none with --model, else label)")
	m.flags(f)
	f.StringArrayVar(&servers, "server", nil, "NAME=ID: the server NAME of the data set is ID at Callyard; ID alone for calls that name no server; repeatable")
	f.BoolVar(&batch.Cancel, "cancel", false, "cancel the batch that this command started: no further calls start")
	f.BoolVar(&batch.Restart, "new", false, "start a new batch even if an earlier run left results; its calls run again")
	f.DurationVar(&batch.GiveUp, "give-up", batchfile.DefaultGiveUp, "time to retry when Callyard is not reachable or busy")
	offer(cmd, "execute", "label", "none")
	offer(cmd, "calls", "api", "text")
	return cmd
}

// serverNames reads NAME=ID, or ID alone.
func serverNames(flags []string) (map[string]string, error) {
	names := make(map[string]string, len(flags))
	for _, flag := range flags {
		name, id, ok := strings.Cut(flag, "=")
		if !ok {
			name, id = "", flag
		}
		if id == "" {
			return nil, fail(exitUsage, "--server must look like NAME=ID or ID, and %q does not.", flag)
		}
		names[name] = id
	}
	return names, nil
}

// executePlan runs the batch and sums its results up. That calls fail is a result, not a fault.
func executePlan(ctx context.Context, c *client, plan *rundir.Plan, o batchfile.Options) error {
	quiet := *c // the execution is printed, not the batch
	quiet.out = screen{w: io.Discard}
	o.Calls, o.Results = plan.Calls, plan.Results
	if err := runBatch(ctx, &quiet, o); err != nil && err.Error() != "" {
		// These commands differ in where results are written.
		text := strings.NewReplacer("another file for its results with --out", "another folder", "another file with --out", "another folder").Replace(err.Error())
		return fail(exitCode(err), "%s", text)
	}
	e, err := plan.Finish()
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	return showExecution(c.out, e)
}

// executionCode is the exit code: that of a batch with these results.
func executionCode(t *stage.Tally) error {
	switch {
	case t.Reached == t.Calls && t.ToolErrors == 0:
		return nil
	case t.Reached+t.Denied == t.Calls && t.ToolErrors == 0:
		return ended(exitRefused)
	}
	return ended(exitToolError)
}

func showExecution(out screen, e *stage.Execution) error {
	if out.structured() {
		if err := out.value(e); err != nil {
			return err
		}
		return executionCode(&e.Tally)
	}
	var rows [][]cell
	row := func(name string, t *stage.Tally) {
		rows = append(rows, cells(oneLine(name), decimal(int64(t.Calls)), decimal(int64(t.Reached)), decimal(int64(t.Reached-t.ToolErrors)),
			decimal(int64(t.ToolErrors)), decimal(int64(t.Denied)), decimal(int64(t.Unknown)), decimal(int64(t.Missing))))
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
	if err := out.table([]string{"CATEGORY OR TOOL", "CALLS", "REACHED", "NO ERROR", "TOOL ERROR", "DENIED", "UNKNOWN", "MISSING"}, rows); err != nil {
		return err
	}
	var b strings.Builder
	for _, title := range slices.Sorted(maps.Keys(e.Failures)) {
		fmt.Fprintf(&b, "%d without a result: %s\n", e.Failures[title], oneLine(title))
	}
	if err := out.text(b.String()); err != nil {
		return err
	}
	return executionCode(&e.Tally)
}
