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

// Defaults of [Options].
const DefaultGiveUp = 10 * time.Minute

// Options is what a run needs to know. Client, Address, Results and, unless Cancel is
// set, Calls or Pipe are required.
type Options struct {
	// Client sends the requests. The run has its own way of trying again: give
	// callyard.WithRetries(0) to [callyard.New].
	Client *callyard.ClientWithResponses
	// Address is the URL of the front door. The state keeps it, so that a batch that was
	// begun at one front door is not looked for at another.
	Address string

	// Calls is the path of the file with the calls. A path that is no regular file, such
	// as a named pipe, is read once.
	Calls string
	// Pipe, where not nil, is read instead of a file. A run that continues needs the same
	// lines again, from the first one. A read that is under way when the run ends is not
	// called off, so one goroutine may outlive the run until that read returns.
	Pipe io.Reader
	// Name is what errors call the calls; Calls, or "the standard input" for a Pipe,
	// where it is empty.
	Name string
	// Unchecked sends the lines without looking through all of them first. It is for lines
	// that the program has just encoded itself.
	Unchecked bool
	// Results is the path of the file with the results.
	Results string

	// Order is how the batch runs. A run that continues must have the same one, or nil.
	Order *Order
	// UploadOnly ends the run when all calls are stored; their results are left to a
	// later run without it.
	UploadOnly bool
	// Cancel cancels the batch that the state names, then reads its results. Calls and
	// Pipe are not read, and Restart does not count.
	Cancel bool
	// Restart makes a new batch even where the results and the state of another one are
	// there, and replaces them.
	Restart bool
	// GiveUp is how long requests may fail in a row, [DefaultGiveUp] where it is 0. Less
	// than 0 gives up at the first failure.
	GiveUp time.Duration

	// Servers, where not nil, is called before anything is sent, with the servers of the calls
	// and the first line of each, as far as the lines were checked.
	Servers func(firstLine map[string]int)
	// Began, where not nil, is called once there is a batch, in the goroutine of Run. Its
	// error ends the run.
	Began func(Beginning) error
	// Failing, where not nil, is called for each failure that is followed by another
	// attempt, after the pause. It is called by several goroutines.
	Failing func(err error, pause time.Duration)
}

// Order is how a batch runs. The zero value leaves everything to the front door.
type Order struct {
	Priority  int               // -10 to 10; each 5 doubles or halves the share of the batch
	ExpiresIn time.Duration     // the time in which calls may leave, in whole seconds
	Labels    map[string]string // kept with the batch
}

// body is the request that makes the batch.
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

// Beginning is what a run does first.
type Beginning struct {
	Batch string // the id
	// Continues says that an earlier run made the batch; Reread that its results are read
	// again from the first one, because the file does not have them any more.
	Continues, Reread bool
}

// Report is the end of a run.
type Report struct {
	// Batch is the batch at the end of the run.
	Batch *Batch
	// Progress is what the files have.
	Progress Progress
	// NotTaken is the number of lines that the batch did not take, because it had ended:
	// it was canceled, or has expired.
	NotTaken uint64
}

// Progress is how far a run is.
type Progress struct {
	// Batch is the id of the batch and Address its front door; empty before there is one.
	Batch, Address string
	// Stored is the number of lines that the front door confirmed, and Sealed says that
	// these are all.
	Stored uint64
	Sealed bool
	// Piped says that the calls are read once: the next run needs the same ones again.
	Piped bool
	// Results counts the lines of the file of results.
	Results Tally
}

// Job is one run. Progress is safe for concurrent use; Run is called once.
type Job struct {
	o     Options
	order json.RawMessage
	in    *input
	book  *notebook

	// What tests make smaller.
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

// Run sends the calls that are not stored yet and writes the results as they come, side
// by side, until the batch has ended. Another run with the same options continues after
// any error.
//
// The error is an *[Error] where the options, the files or the batch do not fit; a
// *[callyard.ProblemError] for a refusal; that of ctx where ctx has ended; and otherwise
// that of the connection, [ErrForeign] or [ErrIncomplete], once [Options.GiveUp] has ended.
// The batch itself runs on, unless it is canceled.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	var err error
	if j.order, err = j.o.Order.body(); err != nil {
		return nil, err
	}
	// Nothing is made, not even the file of results, before it is clear that there are
	// calls to send.
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
	// What was piped in is not asked for again when the batch has all of it.
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

// Progress is how far the run is.
func (j *Job) Progress() Progress {
	s := j.book.state()
	return Progress{Batch: s.Batch, Address: s.URL, Stored: s.Lines, Sealed: s.Sealed, Piped: s.Input.Size < 0, Results: s.Tally}
}

func (j *Job) noBatch() error {
	return fault(NoBatch, j.o.Results, "There is no batch to cancel: %s does not name one.", statePath(j.o.Results))
}

// settle decides what this run does: it continues the batch that the state names, or
// makes one.
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
	// A state without a batch is of a run that ended before it had the answer: the
	// same request with the same key may find the batch that it made.
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

// create makes the batch, or finds the one that the key made before. Nothing is lost
// yet, so a front door that cannot be reached ends it at once.
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

// report asks how the batch is.
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

// add sends lines; from is nil where none are expected to be stored at a place.
func (j *Job) add(ctx context.Context, from *int, body io.Reader, length int64) (*Batch, error) {
	sized := func(_ context.Context, r *http.Request) error {
		r.ContentLength = length
		return nil
	}
	return batchOf(j.o.Client.AddBatchCallsWithBody(ctx, j.id(), &callyard.AddBatchCallsParams{From: from}, callyard.LinesType, body, accept, sized))
}
