package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

// Fabric runs the calls of a model in a conversation. It serves one conversation at a time.
type Fabric interface {
	// Reset starts a conversation with the state of the sample.
	Reset(ctx context.Context, s *eval.Sample) error
	// Call runs a call and returns the text for the model. failed means that the tool returned an
	// error or that the call was refused. After an error the outcome is unknown, and the
	// conversation has no answer.
	Call(ctx context.Context, s *eval.Sample, c eval.Call) (text string, failed bool, err error)
}

// moreTools is the user's message in a turn that adds tools, with the wording of BFCL.
const moreTools = "I have updated some more functions you can choose from. What about now?"

// maxSteps is the maximum number of answers with calls in one turn. A conversation with more ends,
// as at BFCL, whose limit takes effect one step later than documented.
const maxSteps = 21

// prepareTurns creates the request of a conversation and reads the user's messages of each turn.
func (o *Options) prepareTurns(q *question) error {
	if o.Fabric == nil {
		return errors.New("it is a conversation, whose calls run while the model is asked: name the server, and the tool that resets its state")
	}
	var turns [][]struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(q.sample.Messages, &turns); err != nil || len(turns) != turnsOf(&q.sample.Sample) {
		return fmt.Errorf("its question has not the %d turns that are checked", turnsOf(&q.sample.Sample))
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
	if o.Text {
		q.request.System = systemTurns + toolLines(q.sample.Tools) // of all turns, for the digest
	} else if q.request.Tools, q.names, err = o.tools(q.sample.Tools); err != nil {
		return err
	}
	q.digest, err = o.digest(struct {
		Request *model.Request
		Turns   [][]json.RawMessage
		Later   map[string]int
	}{q.request, q.turns, laterOf(&q.sample.Sample)})
	return err
}

// turnsOf returns the number of turns of a conversation.
func turnsOf(s *eval.Sample) int {
	if s.Check != nil && s.Check.Turns > 0 {
		return s.Check.Turns
	}
	return len(s.Turns)
}

// laterOf maps tools that are offered only from a later turn to that turn.
func laterOf(s *eval.Sample) map[string]int {
	if s.Check == nil {
		return nil
	}
	return s.Check.Later
}

// converse runs a conversation. Its calls run at the fabric.
func (o *Options) converse(ctx context.Context, q *question) (*eval.Response, error) {
	if err := o.Fabric.Reset(ctx, &q.sample.Sample); err != nil {
		return nil, fmt.Errorf("resetting the state: %w", err)
	}
	var all []model.Definition
	if !o.Text {
		var err error
		if all, err = o.Wire.Split(q.request.Tools); err != nil {
			return nil, err
		}
	}
	later, names := laterOf(&q.sample.Sample), eval.NewNames(q.sample.Tools)
	r := &eval.Response{ID: q.sample.ID, Trial: q.trial, Request: q.digest, Turns: [][]eval.Step{}, Usage: &eval.Usage{}}
	request := *q.request
	for turn, said := range q.turns {
		if o.Text {
			request.System = systemTurns + toolLines(slices.DeleteFunc(slices.Clone(q.sample.Tools), func(t eval.Tool) bool { return later[t.Name] > turn }))
		} else {
			request.Tools = o.Wire.Tools(slices.DeleteFunc(slices.Clone(all), func(d model.Definition) bool { return later[q.names[d.Name]] > turn }))
		}
		request.Messages = append(request.Messages, said...)
		steps, ended, err := o.turn(ctx, q, names, &request, r)
		if err != nil {
			return nil, err
		}
		if r.Turns = append(r.Turns, steps); !ended {
			break
		}
	}
	return r, nil
}

// turn queries the model until it makes no call. ended is false if it makes too many.
func (o *Options) turn(ctx context.Context, q *question, names *eval.Names, request *model.Request, r *eval.Response) (steps []eval.Step, ended bool, err error) {
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
			r.Usage.Add(eval.Usage{Input: answer.Usage.Input, Output: answer.Usage.Output})
		}
		step := eval.Step{Text: answer.Text}
		request.Messages = append(request.Messages, answer.Messages...)
		var results []json.RawMessage
		if o.Text {
			results, err = o.textCalls(ctx, q, names, &step)
		} else {
			step.Message = stage.CallMessage(q.calls(answer))
			results, err = o.calls(ctx, q, answer)
		}
		if err != nil {
			return nil, false, err
		}
		if steps = append(steps, step); len(results) == 0 {
			return steps, true, nil
		}
		request.Messages = append(request.Messages, results...)
	}
	return steps, false, nil
}

// calls runs the calls of an answer and returns the results for the model, or nothing if there are
// no calls.
func (o *Options) calls(ctx context.Context, q *question, answer *model.Answer) ([]json.RawMessage, error) {
	if len(answer.Calls) == 0 {
		return nil, nil
	}
	results := make([]json.RawMessage, len(answer.Calls))
	for i, call := range q.calls(answer) {
		text, failed, err := o.call(ctx, q, call)
		if err != nil {
			return nil, err
		}
		results[i] = o.Wire.Result(answer.Calls[i], text, failed)
	}
	return o.Wire.Join(results), nil
}

// textCalls runs the calls that lenient extraction finds in the text of an answer, which are the
// calls that the checker counts, and returns the results for the model.
func (o *Options) textCalls(ctx context.Context, q *question, names *eval.Names, step *eval.Step) ([]json.RawMessage, error) {
	found := eval.Extract(&eval.Response{Text: step.Text}, q.sample.Tools, names).Rescued
	if len(found) == 0 {
		return nil, nil
	}
	var b strings.Builder
	for _, c := range found {
		text, failed, err := o.call(ctx, q, c)
		if err != nil {
			return nil, err
		}
		line, err := json.Marshal(struct {
			Name    string `json:"name"`
			Content string `json:"content"`
			IsError bool   `json:"is_error,omitempty"`
		}{c.Name, text, failed})
		if err != nil {
			return nil, fmt.Errorf("writing the result of %s: %w", c.Name, err)
		}
		fmt.Fprintf(&b, "<tool_response>\n%s\n</tool_response>\n", line)
	}
	return []json.RawMessage{o.Wire.User(b.String())}, nil
}

// call runs a call if the sample has the tool.
func (o *Options) call(ctx context.Context, q *question, call eval.Call) (text string, failed bool, err error) {
	if !stage.Offers(&q.sample.Sample, call) {
		return fmt.Sprintf("Error during execution: there is no function %q that takes such arguments", call.Name), true, nil
	}
	text, failed, err = o.Fabric.Call(ctx, &q.sample.Sample, call)
	if err != nil {
		err = fmt.Errorf("running %s: %w", call.Name, err)
	}
	return text, failed, err
}
