package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/kit/backoff"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch FILE",
		Short: "Run the calls of a file, one on each line, and keep their results",
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
	f.BoolVar(&o.anew, "new", false, "begin again where an earlier run left results; its calls run again")
	f.DurationVar(&o.giveUp, "give-up", 10*time.Minute, "for how long to try when Callyard is not reachable or busy")
	cmd.RunE = withClient(func(cmd *cobra.Command, c *client, args []string) error {
		o.input, o.stdin = args[0], cmd.InOrStdin()
		o.chosen = f.Changed("priority") || f.Changed("expires") || f.Changed("label")
		order, err := o.order()
		if err != nil {
			return err
		}
		r := newBatchRun(c, o)
		return r.run(cmd.Context(), order)
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
	anew     bool
	chosen   bool // some of priority, expires and labels is on the command line
	giveUp   time.Duration
}

// order is the body of the request that makes the batch.
func (o *batchOptions) order() (json.RawMessage, error) {
	if o.priority < -10 || o.priority > 10 {
		return nil, fail(exitUsage, "--priority is a number from -10 to 10.")
	}
	if o.expires < 0 || o.expires%time.Second != 0 || o.giveUp < 0 {
		return nil, fail(exitUsage, "--expires is a time of whole seconds, such as 90s or 2h, and --give-up is not below 0.")
	}
	labels := make(map[string]string, len(o.labels))
	for _, l := range o.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return nil, fail(exitUsage, "--label must look like KEY=VALUE, and %q does not.", l)
		}
		labels[name] = value
	}
	if o.out == "-" {
		return nil, fail(exitUsage, "--out names a file: there a later run finds how far this one came.")
	}
	if o.out == "" {
		o.out = "results.ndjson"
		if o.input != "-" {
			o.out = strings.TrimSuffix(o.input, filepath.Ext(o.input)) + ".results.ndjson"
		}
	}
	return json.Marshal(struct {
		Open     bool              `json:"open"`
		Priority int               `json:"priority,omitempty"`
		Expires  int64             `json:"expires_in,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
	}{true, o.priority, int64(o.expires / time.Second), labels})
}

// batchRun is one run of the command: it sends lines and reads results side by
// side, and writes down how far it came.
type batchRun struct {
	c    *client
	o    batchOptions
	in   *input
	book *notebook
	show *batchProgress

	// What tests make smaller.
	pieceLines, pieceBytes int64
	keepEvery              time.Duration
	patience               patience
	fault                  func(step string) error

	// notTaken is how many lines the batch did not take, because it had ended.
	notTaken uint64
}

func newBatchRun(c *client, o batchOptions) *batchRun {
	return &batchRun{
		c: c, o: o, pieceLines: 5000, pieceBytes: 4 << 20, keepEvery: time.Second,
		patience: patience{giveUp: o.giveUp, pauses: backoff.Policy{First: 250 * time.Millisecond, Max: 15 * time.Second, Jitter: 0.5}, sleep: wait},
	}
}

// run runs the command. Errors are for people, and say how to go on.
func (r *batchRun) run(ctx context.Context, order json.RawMessage) (err error) {
	// Nothing is made, not even the file of results, before it is clear that there are
	// calls to send.
	_, err = os.Stat(statePath(r.o.out))
	fresh := errors.Is(err, fs.ErrNotExist)
	if r.o.cancel && fresh {
		return r.noBatch()
	}
	defer func() {
		if r.in != nil {
			r.in.close()
		}
	}()
	if !r.o.cancel && (fresh || r.o.anew) {
		if r.in, err = openInput(r.o.input, r.o.stdin); err != nil {
			return err
		}
		if err = r.in.check(ctx); err != nil {
			return err
		}
	}
	var found bool
	if r.book, found, err = openNotebook(r.o.out); err != nil {
		return err
	}
	defer r.book.close()
	r.book.fault = r.fault
	if r.o.cancel && (!found || r.book.now.Batch == "") {
		return r.noBatch()
	}
	// What was piped in is not asked for again when the batch has all of it.
	if piped := r.o.input == "-" && found && !r.o.anew && r.book.now.Sealed; !r.o.cancel && !piped && r.in == nil {
		if r.in, err = openInput(r.o.input, r.o.stdin); err != nil {
			return err
		}
	}
	if err := r.settle(ctx, order, found && !r.o.anew); err != nil {
		return r.explained(ctx, err)
	}
	r.show = newBatchProgress(r.c.note, r.book)
	r.patience.failing = r.show.trouble
	err = r.work(ctx)
	r.show.end()
	if err != nil {
		return r.explained(ctx, err)
	}
	return r.report(ctx)
}

func (r *batchRun) noBatch() error {
	return fail(exitUsage, "There is no batch to cancel: %s does not name one.", statePath(r.o.out))
}

// settle decides what this run does: goes on with the batch that the state names,
// or makes one.
func (r *batchRun) settle(ctx context.Context, order json.RawMessage, found bool) error {
	s := r.book.state()
	if !found && !r.o.anew && !r.book.empty() {
		return fail(exitUsage, "%s holds something already, and no batch that could go on. Take it away, name another file with --out, or have it replaced with --new.", r.o.out)
	}
	if found && s.Batch != "" {
		if r.in != nil && s.Input != r.in.mark {
			return fail(exitUsage, "%s is not what batch %s was made of: it was changed. Name another file for its results with --out, or begin again with --new.", r.in.name, s.Batch)
		}
		if r.o.chosen && string(s.Order) != string(order) {
			return fail(exitUsage, "Batch %s was made with other values of --priority, --expires or --label; leave them out to go on with it, or begin again with --new.", s.Batch)
		}
		again, err := r.book.goOn()
		if err != nil {
			return err
		}
		text := "Going on with batch " + oneLine(s.Batch) + ".\n"
		if again {
			text = "Going on with batch " + oneLine(s.Batch) + "; its results are read again from the first, because " + r.o.out + " does not hold them any more.\n"
		}
		return r.c.note.text(text)
	}
	if _, err := r.in.piece(ctx, 1, 1); errors.Is(err, io.EOF) {
		return fail(exitUsage, "There are no calls in %s.", r.in.name)
	} else if err != nil {
		return err
	}
	if err := r.in.seek(ctx, 0); err != nil {
		return err
	}
	// A state without a batch is of a run that ended before it had the answer: the
	// same request with the same key may find the batch that it made.
	if !found || s.URL != r.c.base || s.Input != r.in.mark || compact(s.Order) != string(order) {
		s = batchState{URL: r.c.base, Input: r.in.mark, Key: rand.Text(), Order: order}
	}
	if err := r.book.begin(s); err != nil {
		return err
	}
	b, err := r.make(ctx, s)
	if err != nil {
		return err
	}
	if err := r.book.change(func(s *batchState) { s.Batch = b.ID }); err != nil {
		return err
	}
	return r.c.note.text("Batch " + oneLine(b.ID) + ", results in " + r.o.out + ".\n")
}

// make makes the batch, or finds the one that the key made before. Nothing is lost
// yet, so a front door that is not there ends it at once.
func (r *batchRun) make(ctx context.Context, s batchState) (*batchItem, error) {
	for p := r.patience; ; {
		b, err := r.c.batchAnswer(ctx, "POST", "/batches", mediaJSON, strings.NewReader(compact(s.Order)), int64(len(compact(s.Order))), s.Key)
		var no *refusal
		if err == nil || !errors.As(err, &no) {
			return b, err
		}
		if err := p.again(ctx, err); err != nil {
			return nil, err
		}
	}
}
