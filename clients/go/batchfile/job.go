package batchfile

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// DefaultGiveUp is the default of [Options.GiveUp].
const DefaultGiveUp = 10 * time.Minute

// Options configures a run. Client, Address and Results are required, and so is Calls or
// Pipe unless Cancel is set.
type Options struct {
	// Client sends the requests. A run retries requests itself, so disable the retries of
	// the client: pass callyard.WithRetries(0) to [callyard.New].
	Client *callyard.ClientWithResponses
	// Address is the URL of the front door. The state records it, so that a later run does
	// not look for the batch at a different front door.
	Address string

	// Calls is the path of the file with the calls. If it is not a regular file, for
	// example a named pipe, it is read once.
	Calls string
	// Pipe, if not nil, is read instead of a file. A run that continues needs the same
	// lines again from the first one. A read in progress when the run ends cannot be
	// canceled, so one goroutine may outlive the run until that read returns.
	Pipe io.Reader
	// Name identifies the calls in errors. If empty, it is Calls, or "the standard input"
	// for a Pipe.
	Name string
	// Unchecked skips the validation of the lines before they are sent. Use it for lines
	// that the program has just encoded itself.
	Unchecked bool
	// Results is the path of the file with the results.
	Results string

	// Order sets how the batch runs. A run that continues must pass the same Order, or nil.
	Order *Order
	// UploadOnly ends the run when all calls are stored. A later run without it reads the
	// results.
	UploadOnly bool
	// Cancel cancels the batch that the state names, then reads its results. Calls and
	// Pipe are not read, and Restart is ignored.
	Cancel bool
	// Restart creates a new batch and replaces existing results and the state of another
	// batch.
	Restart bool
	// GiveUp limits the time during which requests may keep failing. 0 means
	// [DefaultGiveUp]. If negative, the run ends at the first failure.
	GiveUp time.Duration

	// Servers, if not nil, is called before anything is sent. It gets the servers of the
	// checked lines and the first line of each.
	Servers func(firstLine map[string]int)
	// Began, if not nil, is called in the goroutine of Run once the batch exists. If it
	// returns an error, the run ends.
	Began func(Beginning) error
	// Failing, if not nil, is called for each failure that is retried, before the pause.
	// It may be called by several goroutines concurrently.
	Failing func(err error, pause time.Duration)
}

// Order sets how a batch runs. With the zero value, the front door's defaults apply.
type Order struct {
	Priority  int               // -10 to 10; each 5 doubles or halves the share of the batch
	ExpiresIn time.Duration     // the time within which calls may be sent to workers, in whole seconds
	Labels    map[string]string // stored with the batch
}

// body returns the request body that creates the batch.
func (o *Order) body() (json.RawMessage, error) {
	if o == nil {
		o = &Order{}
	}
	return json.Marshal(struct {
		Open     bool              `json:"open"`
		Priority int               `json:"priority,omitempty"`
		Expires  int64             `json:"expires_in,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
	}{true, o.Priority, int64(o.ExpiresIn / time.Second), o.Labels})
}

// Beginning describes how a run begins.
type Beginning struct {
	Batch string // the batch ID
	// Continues reports that an earlier run created the batch. Reread reports that all
	// results are read again because they are missing from the file.
	Continues, Reread bool
}

// Report is the outcome of a run.
type Report struct {
	// Batch is the state of the batch at the end of the run.
	Batch *Batch
	// Progress is the final progress of the run.
	Progress Progress
	// NotTaken is the number of lines that the batch did not accept because it had been
	// canceled or had expired.
	NotTaken uint64
}

// Progress is the progress of a run.
type Progress struct {
	// Batch is the ID of the batch, and Address the URL of its front door. Both are empty
	// before the batch is created.
	Batch, Address string
	// Stored is the number of lines that the front door has confirmed. Sealed reports
	// that these are all lines.
	Stored uint64
	Sealed bool
	// Piped reports that the calls are read once, so the next run needs the same calls again.
	Piped bool
	// Results counts the lines of the results file.
	Results Tally
}

// Job is one run. Progress is safe for concurrent use. Run may be called once.
type Job struct {
	o     Options
	order json.RawMessage
	in    *input
	book  *notebook

	// Tests set smaller values.
	pieceLines, pieceBytes int64
	keepEvery              time.Duration
	patience               patience
	fault                  func(step string) error

	notTaken uint64
}

// New returns a run with these options. Nothing is read, sent or written before Run.
func New(o Options) *Job {
	if o.GiveUp == 0 {
		o.GiveUp = DefaultGiveUp
	}
	if o.Name == "" {
		if o.Name = o.Calls; o.Pipe != nil {
			o.Name = "the standard input"
		}
	}
	return &Job{
		o: o, book: &notebook{path: o.Results}, pieceLines: 5000, pieceBytes: 4 << 20, keepEvery: time.Second,
		patience: patience{giveUp: o.GiveUp, first: 250 * time.Millisecond, most: 15 * time.Second, sleep: wait, failing: o.Failing},
	}
}

// Run sends the calls that are not stored yet and concurrently writes the results as they
// arrive, until the batch ends. After any error, another run with the same options continues.
//
// The error is an *[Error] if the options, the files or the batch do not match, a
// *[callyard.ProblemError] if the front door refused a request, and ctx's error if ctx has
// ended. Otherwise it is a network error, [ErrForeign] or [ErrIncomplete], after
// [Options.GiveUp] has passed. The batch continues to run unless it is canceled.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	var err error
	if j.order, err = j.o.Order.body(); err != nil {
		return nil, err
	}
	// Create nothing, not even the results file, before it is certain that there are calls
	// to send.
	_, err = os.Stat(statePath(j.o.Results))
	fresh := errors.Is(err, fs.ErrNotExist)
	if j.o.Cancel && fresh {
		return nil, j.noBatch()
	}
	defer func() {
		if j.in != nil {
			j.in.close()
		}
	}()
	if !j.o.Cancel && (fresh || j.o.Restart) {
		if j.in, err = openInput(&j.o); err != nil {
			return nil, err
		}
		if !j.o.Unchecked {
			err = j.in.check(ctx)
		}
		if err != nil {
			return nil, err
		}
		if j.o.Servers != nil {
			j.o.Servers(j.in.servers)
		}
	}
	found, err := j.book.open()
	if err != nil {
		return nil, err
	}
	defer j.book.close()
	j.book.fault = j.fault
	if j.o.Cancel && (!found || j.book.now.Batch == "") {
		return nil, j.noBatch()
	}
	// If the batch already has all lines, do not read the pipe again.
	if piped := j.o.Pipe != nil && found && !j.o.Restart && j.book.now.Sealed; !j.o.Cancel && !piped && j.in == nil {
		if j.in, err = openInput(&j.o); err != nil {
			return nil, err
		}
	}
	if err := j.settle(ctx, found && (!j.o.Restart || j.o.Cancel)); err != nil {
		return nil, err
	}
	if err := j.work(ctx); err != nil {
		return nil, err
	}
	return j.report(ctx)
}

// Progress returns the progress of the run.
func (j *Job) Progress() Progress {
	s := j.book.state()
	return Progress{Batch: s.Batch, Address: s.URL, Stored: s.Lines, Sealed: s.Sealed, Piped: s.Input.Size < 0, Results: s.Tally}
}

func (j *Job) noBatch() error {
	return fault(NoBatch, j.o.Results, "There is no batch to cancel: %s does not name one.", statePath(j.o.Results))
}

// settle continues the batch that the state names, or creates a new one.
func (j *Job) settle(ctx context.Context, found bool) error {
	s := j.book.state()
	if !found && !j.o.Restart && !j.book.empty() {
		return fault(NotEmpty, j.o.Results, "%s is not empty, and there is no batch to continue: remove it, use another file, or start again.", j.o.Results)
	}
	if found && s.Batch != "" {
		if j.in != nil && s.Input != j.in.mark {
			e := fault(OtherCalls, j.in.name, "%s was changed after batch %s was created from it. Use another file for its results, or start again.", j.in.name, s.Batch)
			e.Batch = s.Batch
			return e
		}
		if j.o.Order != nil && compact(s.Order) != string(j.order) {
			e := fault(OtherOrder, j.o.Results, "Batch %s was created with another priority, expiry or labels: omit them to continue it, or start again.", s.Batch)
			e.Batch = s.Batch
			return e
		}
		reread, err := j.book.resume()
		if err != nil {
			return err
		}
		return j.began(Beginning{Batch: s.Batch, Continues: true, Reread: reread})
	}
	if _, err := j.in.piece(ctx, 1, 1); errors.Is(err, io.EOF) {
		return fault(NoCalls, j.in.name, "There are no calls in %s.", j.in.name)
	} else if err != nil {
		return err
	}
	if err := j.in.seek(ctx, 0); err != nil {
		return err
	}
	// If the state has no batch, a run ended before it received the response. The same
	// request with the same key finds the batch if it was created.
	if !found || s.URL != j.o.Address || s.Input != j.in.mark || compact(s.Order) != string(j.order) {
		s = state{URL: j.o.Address, Input: j.in.mark, Key: rand.Text(), Order: j.order}
	}
	if err := j.book.begin(s); err != nil {
		return err
	}
	b, err := j.create(ctx, s)
	if err != nil {
		return err
	}
	if err := j.book.change(func(s *state) { s.Batch = b.ID }); err != nil {
		return err
	}
	return j.began(Beginning{Batch: b.ID})
}

func (j *Job) began(b Beginning) error {
	if j.o.Began == nil {
		return nil
	}
	return j.o.Began(b)
}

// create creates the batch, or finds the batch that the key created before. Nothing can be
// lost yet, so an unreachable front door ends the run at once.
func (j *Job) create(ctx context.Context, s state) (*Batch, error) {
	for p := j.patience; ; {
		b, err := batchOf(j.o.Client.CreateBatchWithBody(ctx, nil, "application/json", strings.NewReader(compact(s.Order)), accept, callyard.WithIdempotencyKey(s.Key)))
		var refused *callyard.ProblemError
		if err == nil || !errors.As(err, &refused) {
			return b, err
		}
		if err := p.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// report fetches the batch and returns the report of the run.
func (j *Job) report(ctx context.Context) (*Report, error) {
	for p := j.patience; ; {
		b, err := j.batch(ctx)
		if err == nil {
			return &Report{Batch: b, Progress: j.Progress(), NotTaken: j.notTaken}, nil
		}
		if err := p.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (j *Job) id() string { return j.book.state().Batch }

func (j *Job) batch(ctx context.Context) (*Batch, error) {
	return batchOf(j.o.Client.GetBatch(ctx, j.id(), accept))
}

// add sends lines. from is the index of the first line; it is nil if body has no lines.
func (j *Job) add(ctx context.Context, from *int, body io.Reader, length int64) (*Batch, error) {
	sized := func(_ context.Context, r *http.Request) error {
		r.ContentLength = length
		return nil
	}
	return batchOf(j.o.Client.AddBatchCallsWithBody(ctx, j.id(), &callyard.AddBatchCallsParams{From: from}, callyard.LinesType, body, accept, sized))
}
