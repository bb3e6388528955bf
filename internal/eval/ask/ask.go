package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/kit/jsonlog"
)

// Model is a language model. [model.Client] implements it.
type Model interface {
	Ask(ctx context.Context, r *model.Request, text func(string), restart func()) (*model.Answer, error)
}

// Options configure the requests to the model.
type Options struct {
	Model Model
	Wire  model.Wire
	// Name is the name of the model as PROVIDER:NAME.
	Name string
	// Trials is the number of answers to each sample (default 1), and Parallel the number of
	// concurrent requests (default 8).
	Trials, Parallel int
	// Text makes the model write its calls into <tool_call> blocks, as in the published evaluation,
	// instead of using the tool calls of the API.
	Text bool
	// MaxOutput limits the tokens of one answer. 0 means the provider's default.
	MaxOutput int
	// Fabric runs the calls of conversations of several turns, one conversation after the other. If
	// nil, there must be none.
	Fabric Fabric
	// Told is called after each answer. It may be nil.
	Told func(done, all int)
}

// Outcome summarizes a run.
type Outcome struct {
	Asked  int // requests to the model
	Kept   int // answers that existed before
	Failed int // samples without an answer; a later run asks for them again
	Usage  eval.Usage
	// Fault is the error of one of the failed samples.
	Fault error
}

// maxFaults is the number of consecutive failures after which the run ends: the model cannot be
// reached, or refuses everything.
const maxFaults = 20

// question is a request for one answer.
type question struct {
	sample  *stage.Sample
	trial   int
	request *model.Request
	digest  string
	names   map[string]string   // maps the name of a tool in the request to its name in the sample
	turns   [][]json.RawMessage // the user's messages in each turn of a conversation
}

// Run requests the answers that the file at path does not have and appends them. It returns the
// outcome also with an error, which means that the run ended early.
func Run(ctx context.Context, path string, samples []stage.Sample, o Options) (*Outcome, error) {
	o.Trials = max(o.Trials, 1)
	if o.Parallel < 1 {
		o.Parallel = 8
	}
	file, have, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // every line is synced
	out := &Outcome{}
	open, err := o.questions(samples, have, out)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(open, func(q question) bool { return q.sample.Converses() }) {
		o.Parallel = 1 // they share one state
	}
	return out, o.all(ctx, open, file, out)
}

// questions returns the samples without an answer.
func (o *Options) questions(samples []stage.Sample, have map[stage.AnswerKey]*eval.Response, out *Outcome) (open []question, err error) {
	for i := range samples {
		q := question{sample: &samples[i]}
		if err := o.prepare(&q); err != nil {
			return nil, fmt.Errorf("sample %s: %w", q.sample.ID, err)
		}
		for q.trial = range o.Trials {
			old := have[stage.AnswerKey{ID: q.sample.ID, Trial: q.trial}]
			switch {
			case old == nil:
				open = append(open, q)
			case old.Request != "" && old.Request != q.digest:
				return nil, fmt.Errorf("the answer to sample %s is of another model, or was asked for with other settings: use another folder", q.sample.ID)
			default:
				out.Kept++
			}
		}
	}
	return open, nil
}

// all sends the questions, some concurrently.
func (o *Options) all(ctx context.Context, open []question, file *jsonlog.File, out *Outcome) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	row := 0 // consecutive failures
	count := func(q *question, r *eval.Response, err error) (done int) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			out.Failed, out.Fault, row = out.Failed+1, fmt.Errorf("sample %s: %w", q.sample.ID, err), row+1
			if row >= maxFaults {
				cancel(fmt.Errorf("%d questions in a row have no answer: %w", row, err))
			}
			return out.Asked + out.Failed
		}
		out.Asked, row = out.Asked+1, 0
		if r.Usage != nil {
			out.Usage.Add(*r.Usage)
		}
		return out.Asked + out.Failed
	}
	var group errgroup.Group
	group.SetLimit(o.Parallel)
	for i := range open {
		q := &open[i]
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			r, err := o.one(ctx, q)
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				if fault := add(file, r); fault != nil {
					cancel(fault)
					return nil
				}
			}
			if done := count(q, r, err); o.Told != nil {
				o.Told(done, len(open))
			}
			return nil
		})
	}
	_ = group.Wait() // an error is the cause of ctx
	return context.Cause(ctx)
}

// one sends one question.
func (o *Options) one(ctx context.Context, q *question) (*eval.Response, error) {
	if q.sample.Converses() {
		return o.converse(ctx, q)
	}
	answer, err := o.Model.Ask(ctx, q.request, nil, nil)
	if err != nil {
		return nil, err
	}
	r := &eval.Response{ID: q.sample.ID, Trial: q.trial, Text: answer.Text, Request: q.digest}
	if answer.Usage.Reported {
		r.Usage = &eval.Usage{Input: answer.Usage.Input, Output: answer.Usage.Output}
	}
	if !o.Text {
		r.Message = stage.CallMessage(q.calls(answer))
	}
	return r, nil
}

// calls returns the calls of an answer with the names of the sample.
func (q *question) calls(answer *model.Answer) []eval.Call {
	calls := make([]eval.Call, len(answer.Calls))
	for i, c := range answer.Calls {
		calls[i] = eval.Call{Name: cmp.Or(q.names[c.Name], c.Name), Arguments: c.Arguments}
	}
	return calls
}
