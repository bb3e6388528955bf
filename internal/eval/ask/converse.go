package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// Fabric runs the calls that a model makes in a conversation. It is used by one conversation at a
// time.
type Fabric interface {
	// Reset begins a conversation with the state of the sample.
	Reset(ctx context.Context, s *eval.Sample) error
	// Call runs a call and returns what the model is told. failed says that the tool reported an
	// error, or that the call was refused. With an error it is not known what happened, and the
	// conversation has no answer.
	Call(ctx context.Context, s *eval.Sample, c eval.Call) (text string, failed bool, err error)
}

// moreTools is what the user says in a turn that brings tools, in the words of BFCL.
const moreTools = "I have updated some more functions you can choose from. What about now?"

// maxSteps is the number of answers with calls in one turn. With more the conversation ends, as
// at BFCL, whose limit is reached after one step more than it says.
const maxSteps = 21

// converses says that the sample is a conversation, whose calls run while the model is asked.
func converses(s *eval.Sample) bool { return s.Check != nil && s.Check.Turns > 0 }

// prepareTurns makes the request of a conversation and reads what the user says in each turn.
func (o *Options) prepareTurns(q *question) error {
	if o.Fabric == nil || o.Text {
		return errors.New("its calls run while the model is asked: name the server, and the tool that resets its state, and let the model call tools by its API")
	}
	var turns [][]struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(q.sample.Messages, &turns); err != nil || len(turns) != q.sample.Check.Turns {
		return fmt.Errorf("its question has not the %d turns that are checked", q.sample.Check.Turns)
	}
	for _, messages := range turns {
		said := []json.RawMessage{}
		for _, m := range messages {
			if m.Role == "user" {
				said = append(said, o.Wire.User(m.Content))
			}
		}
		if len(said) == 0 {
			said = append(said, o.Wire.User(moreTools))
		}
		q.turns = append(q.turns, said)
	}
	q.request = &model.Request{MaxOutput: o.MaxOutput}
	var err error
	if q.request.Tools, q.names, err = o.tools(q.sample.Tools); err != nil {
		return err
	}
	raw, err := json.Marshal(struct {
		Request *model.Request
		Turns   [][]json.RawMessage
		Later   map[string]int
	}{q.request, q.turns, q.sample.Check.Later})
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	q.digest = eval.Digest([]byte(o.Name), []byte(o.Wire.Format()), raw)
	return nil
}

// converse leads a conversation. Its calls run at the fabric.
func (o *Options) converse(ctx context.Context, q *question) (*eval.Response, error) {
	if err := o.Fabric.Reset(ctx, &q.sample.Sample); err != nil {
		return nil, fmt.Errorf("resetting the state: %w", err)
	}
	all, err := o.Wire.Split(q.request.Tools)
	if err != nil {
		return nil, err
	}
	r := &eval.Response{ID: q.sample.ID, Trial: q.trial, Request: q.digest, Turns: [][]eval.Step{}, Usage: &eval.Usage{}}
	request := *q.request
	for turn, said := range q.turns {
		request.Tools = o.Wire.Tools(slices.DeleteFunc(slices.Clone(all), func(d model.Definition) bool {
			return q.sample.Check.Later[q.names[d.Name]] > turn
		}))
		request.Messages = append(request.Messages, said...)
		steps, ended, err := o.turn(ctx, q, &request, r)
		if err != nil {
			return nil, err
		}
		if r.Turns = append(r.Turns, steps); !ended {
			break
		}
	}
	return r, nil
}

// turn asks until the model makes no call. ended is false if it makes too many.
func (o *Options) turn(ctx context.Context, q *question, request *model.Request, r *eval.Response) (steps []eval.Step, ended bool, err error) {
	steps = []eval.Step{}
	for range maxSteps {
		answer, err := o.Model.Ask(ctx, request, nil, nil)
		if err != nil {
			return nil, false, err
		}
		if !answer.Usage.Reported {
			r.Usage = nil
		}
		if r.Usage != nil {
			r.Usage.Input, r.Usage.Output = r.Usage.Input+answer.Usage.Input, r.Usage.Output+answer.Usage.Output
		}
		step := eval.Step{Text: answer.Text}
		if step.Message, err = message(answer, q.names); err != nil {
			return nil, false, err
		}
		steps = append(steps, step)
		request.Messages = append(request.Messages, answer.Messages...)
		if len(answer.Calls) == 0 {
			return steps, true, nil
		}
		results := make([]json.RawMessage, len(answer.Calls))
		for i, c := range answer.Calls {
			text, failed, err := o.call(ctx, q, c)
			if err != nil {
				return nil, false, err
			}
			results[i] = o.Wire.Result(c, text, failed)
		}
		request.Messages = append(request.Messages, o.Wire.Join(results)...)
	}
	return steps, false, nil
}

// call runs a call, if it is one that the sample has.
func (o *Options) call(ctx context.Context, q *question, c model.Call) (text string, failed bool, err error) {
	call := eval.Call{Name: c.Name, Arguments: c.Arguments}
	if name, ok := q.names[c.Name]; ok {
		call.Name = name
	}
	if !stage.Offers(&q.sample.Sample, call) {
		return fmt.Sprintf("Error during execution: there is no function %q that takes such arguments", call.Name), true, nil
	}
	text, failed, err = o.Fabric.Call(ctx, &q.sample.Sample, call)
	if err != nil {
		err = fmt.Errorf("running %s: %w", call.Name, err)
	}
	return text, failed, err
}
