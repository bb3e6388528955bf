package cli

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/clients/go/batchfile"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch FILE",
		Short: "Run a file of calls and write their results to a file",
		Long: "batch sends the calls in FILE (or, with \"-\", on standard input) to Callyard and writes their results to a file as they arrive. " +
			"Each line of FILE is a call: {\"custom_id\":\"…\",\"server\":\"…\",\"tool\":\"…\",\"arguments\":{…}}.\n\n" +
			"It stores its progress next to the results, in a file that ends in .state. After any interruption, Ctrl-C or a power failure, the same command continues: " +
			"no call is sent twice, and no result is missing or duplicated. In the meantime the calls continue to run.\n\n" +
			"The lines are checked first: if one is not a valid call, nothing is sent, and the error names the line. Of standard input only the first line is checked in advance.\n\n" +
			"Exit code: 0 every call succeeded, 1 some calls failed or a tool reported an error, 3 all calls that did not succeed were denied " +
			"or Callyard refused the batch, 4 Callyard was not reachable within --give-up.",
		Example: "  callyard batch calls.ndjson --out results.ndjson\n  generate | callyard batch - --out results.ndjson",
		Args:    takes(1, 1),
	}
	var o batchOptions
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "file for the results (default FILE with the suffix .results.ndjson, or results.ndjson for -)")
	f.IntVar(&o.priority, "priority", 0, "priority from -10 to 10: each step of 5 doubles or halves the share of the batch")
	durationVar(f, &o.expires, "expires", 0, "time within which calls must be sent to a worker, such as 2h (default: Callyard's default, 24h)")
	f.StringArrayVar(&o.labels, "label", nil, "label KEY=VALUE of the batch; repeatable")
	f.BoolVar(&o.follow, "follow", true, "wait for the results; otherwise exit when all calls are stored")
	f.BoolVar(&o.cancel, "cancel", false, "cancel the batch that this command started: no further calls start")
	f.BoolVar(&o.restart, "new", false, "start a new batch even if an earlier run left results; its calls run again")
	durationVar(f, &o.giveUp, "give-up", batchfile.DefaultGiveUp, "time to retry when Callyard is not reachable or busy")
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

// batchOptions holds the command line of a batch.
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
	chosen   bool // the command line sets priority, expires or labels
	giveUp   time.Duration
}

// run validates the command line and returns the options of the batch.
func (o *batchOptions) run() (batchfile.Options, error) {
	run := batchfile.Options{UploadOnly: !o.follow, Cancel: o.cancel, Restart: o.restart, GiveUp: o.giveUp}
	if o.giveUp == 0 {
		run.GiveUp = -1 // give up at the first failure
	}
	if o.priority < -10 || o.priority > 10 {
		return run, fail(exitUsage, "--priority must be a number from -10 to 10.")
	}
	if o.expires < 0 || o.expires%time.Second != 0 || o.giveUp < 0 {
		return run, fail(exitUsage, "--expires must be a whole number of seconds, such as 90s or 2h, and --give-up must not be negative.")
	}
	if o.cancel && o.restart {
		return run, fail(exitUsage, "--cancel and --new cannot be combined: cancel the batch first, then start a new one.")
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
		return run, fail(exitUsage, "--out must be a file: a later run reads the progress next to it.")
	case o.out == "" && o.input == "-":
		run.Results = "results.ndjson"
	case o.out == "":
		run.Results = strings.TrimSuffix(o.input, filepath.Ext(o.input)) + ".results.ndjson"
	}
	return run, nil
}

// runBatch runs the batch and reports its outcome. Its errors are for people and state how to
// continue.
func runBatch(ctx context.Context, c *client, o batchfile.Options) error {
	var show *batchProgress
	servers := newBatchServers(c)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watch sync.WaitGroup
	if !o.Unchecked {
		o.Servers = func(firstLine map[string]int) { servers.check(ctx, cmp.Or(o.Calls, "standard input"), firstLine) }
	}
	o.Client, o.Address = c.api, c.base
	var job *batchfile.Job
	o.Began = func(b batchfile.Beginning) error {
		id := oneLine(b.Batch)
		text := "Batch " + id + ", results in " + o.Results + ".\n"
		switch {
		case b.Reread:
			text = "Continuing batch " + id + "; its results are read again from the start, because " + o.Results + " no longer contains them.\n"
		case b.Continues:
			text = "Continuing batch " + id + ".\n"
		}
		if err := c.note.text(text); err != nil {
			return fail(exitUsage, "%w", err)
		}
		show = newBatchProgress(c.note, job.Progress)
		watch.Go(func() { servers.watch(watching, b.Batch, show) })
		return nil
	}
	o.Failing = func(err error, pause time.Duration) {
		if show != nil { // there is no display before the batch exists
			show.trouble(troubleText(ctx, c, err), pause)
		}
	}
	job = batchfile.New(o)
	report, err := job.Run(ctx)
	stop()
	watch.Wait()
	if show != nil {
		show.end()
	}
	if err != nil {
		return batchError(ctx, c, &o, job.Progress(), err)
	}
	return reportBatch(c, &o, report)
}
