package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/clients/go/batchfile"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch FILE",
		Short: "Run a file of calls and write their results to a file",
		Long: "batch sends the calls of FILE (or with \"-\" what is piped in) to Callyard and writes their results to a file while they come. " +
			"Each line of FILE is a call: {\"custom_id\":\"…\",\"server\":\"…\",\"tool\":\"…\",\"arguments\":{…}}.\n\n" +
			"Beside the results it keeps how far it came, in a file that ends in .state. Whatever stops it, Ctrl-C or a power cut, the same command goes on: " +
			"no call is sent twice, and no result is missing or there twice. The calls run meanwhile, with or without it.\n\n" +
			"The lines are looked at first: where one is no call, nothing is sent, and the line is named. Of what is piped in that holds for the first line.\n\n" +
			"It ends with 0 when every call succeeded, with 1 when some did not or a tool reported an error, with 3 when all that did not were denied " +
			"or Callyard refused the batch, and with 4 when it was not reachable for the time of --give-up.",
		Example: "  callyard batch calls.ndjson --out results.ndjson\n  generate | callyard batch - --out results.ndjson",
		Args:    takes(1, 1),
	}
	var o batchOptions
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "file of the results (default FILE with .results.ndjson at its end, results.ndjson for -)")
	f.IntVar(&o.priority, "priority", 0, "-10 to 10: each 5 doubles or halves the share of the batch")
	f.DurationVar(&o.expires, "expires", 0, "the time in which calls may leave, such as 2h (default that of Callyard, 24h)")
	f.StringArrayVar(&o.labels, "label", nil, "KEY=VALUE, kept with the batch; may be given again")
	f.BoolVar(&o.follow, "follow", true, "wait for the results; without, it ends when all calls are stored")
	f.BoolVar(&o.cancel, "cancel", false, "cancel the batch that this command began: nothing more starts")
	f.BoolVar(&o.restart, "new", false, "begin again where an earlier run left results; its calls run again")
	f.DurationVar(&o.giveUp, "give-up", batchfile.DefaultGiveUp, "for how long to try when Callyard is not reachable or busy")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		o.input, o.stdin = args[0], c.in
		o.chosen = f.Changed("priority") || f.Changed("expires") || f.Changed("label")
		run, err := o.run()
		if err != nil {
			return err
		}
		return runBatch(ctx, c, run)
	})
	return cmd
}

// batchOptions is the command line of a batch.
type batchOptions struct {
	input    string
	stdin    io.Reader
	out      string
	priority int
	expires  time.Duration
	labels   []string
	follow   bool
	cancel   bool
	restart  bool
	chosen   bool // some of priority, expires and labels is on the command line
	giveUp   time.Duration
}

// run checks the command line and returns what it asks for.
func (o *batchOptions) run() (batchfile.Options, error) {
	run := batchfile.Options{UploadOnly: !o.follow, Cancel: o.cancel, Restart: o.restart, GiveUp: o.giveUp}
	if o.giveUp == 0 {
		run.GiveUp = -1 // at the first failure
	}
	if o.priority < -10 || o.priority > 10 {
		return run, fail(exitUsage, "--priority is a number from -10 to 10.")
	}
	if o.expires < 0 || o.expires%time.Second != 0 || o.giveUp < 0 {
		return run, fail(exitUsage, "--expires is a time of whole seconds, such as 90s or 2h, and --give-up is not below 0.")
	}
	labels := make(map[string]string, len(o.labels))
	for _, l := range o.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return run, fail(exitUsage, "--label must look like KEY=VALUE, and %q does not.", l)
		}
		labels[name] = value
	}
	if o.chosen {
		run.Order = &batchfile.Order{Priority: o.priority, ExpiresIn: o.expires, Labels: labels}
	}
	run.Calls, run.Results = o.input, o.out
	if o.input == "-" {
		run.Calls, run.Pipe = "", o.stdin
	}
	switch {
	case o.out == "-":
		return run, fail(exitUsage, "--out names a file: there a later run finds how far this one came.")
	case o.out == "" && o.input == "-":
		run.Results = "results.ndjson"
	case o.out == "":
		run.Results = strings.TrimSuffix(o.input, filepath.Ext(o.input)) + ".results.ndjson"
	}
	return run, nil
}

// runBatch runs the batch and says how it went. Errors are for people, and say how to
// continue.
func runBatch(ctx context.Context, c *client, o batchfile.Options) error {
	var show *batchProgress
	o.Client, o.Address = c.api, c.base
	var job *batchfile.Job
	o.Began = func(b batchfile.Beginning) error {
		id := oneLine(b.Batch)
		text := "Batch " + id + ", results in " + o.Results + ".\n"
		switch {
		case b.Reread:
			text = "Going on with batch " + id + "; its results are read again from the first, because " + o.Results + " does not hold them any more.\n"
		case b.Continues:
			text = "Going on with batch " + id + ".\n"
		}
		if err := c.note.text(text); err != nil {
			return fail(exitUsage, "%w", err)
		}
		show = newBatchProgress(c.note, job.Progress)
		return nil
	}
	o.Failing = func(err error, pause time.Duration) {
		if show != nil { // before there is a batch, nobody is told
			show.trouble(troubleText(ctx, c, err), pause)
		}
	}
	job = batchfile.New(o)
	report, err := job.Run(ctx)
	if show != nil {
		show.end()
	}
	if err != nil {
		return batchError(ctx, c, &o, job.Progress(), err)
	}
	return reportBatch(c, &o, report)
}
