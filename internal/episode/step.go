package episode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/reward"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// Types of [StepError], as OpenEnv defines them.
const (
	ErrorExecution = "execution_error"
	ErrorArguments = "invalid_args"
	ErrorTransport = "transport_error"
	ErrorNoTool    = "tool_not_found"
	ErrorTimeout   = "timeout"
)

// StepError is the reason why a call has no result from its tool. It is part of an observation, like
// a result.
type StepError struct {
	Type    string `json:"error_type"`
	Message string `json:"message"`
}

// Observation is the outcome of a step.
type Observation struct {
	// Tool is the called tool. It is "" for a text with several calls or none.
	Tool   string
	CallID schema.CallID
	// Result is the unchanged MCP result of the tool. If it is nil, Error is the reason.
	Result    json.RawMessage
	ToolError bool
	Error     *StepError
	// Text is the observation of a text step: the results of its calls.
	Text string
	// Done reports that the episode has ended. Reward is then its reward, or nil for a masked
	// episode. Before the end, the reward is 0.
	Done       bool
	Reward     *float64
	Components map[reward.Term]float64
	// Truncated reports that a limit ended the episode.
	Truncated bool
	// Masked reports that the episode has no valid result and must not be used for training.
	// FailureKind is the reason. Retryable reports that the task may be started again at once.
	Masked      bool
	FailureKind string
	Retryable   bool
}

// Failure kinds of masked episodes.
const (
	FailureWorkerLost = "worker-lost"     // the worker or its process was lost, and the state with it
	FailureUnknown    = "outcome-unknown" // a call may or may not have run
	FailureCapacity   = "capacity"        // there was no free slot
	FailureQuota      = "quota"           // the caller reached a limit
	FailureCanceled   = "canceled"        // the episode was closed during a step
	FailureOracle     = "oracle"          // the labelled calls could not be replayed
	FailureInternal   = "internal"
)

// errEnded returns the error for a step after the end of its episode, of KindConflict.
func errEnded() error {
	return schema.Errorf(schema.KindConflict, "The episode has ended; begin another one.")
}

// Step calls a tool. The error is a *schema.Error for a step that did not happen: KindConflict
// after the end of the episode. Everything else is an observation.
func (ep *Episode) Step(ctx context.Context, tool string, arguments json.RawMessage) (*Observation, error) {
	return ep.runInOrder(ctx, func(turn int) *Observation {
		if len(arguments) == 0 || string(arguments) == "null" {
			arguments = json.RawMessage("{}")
		}
		if tool == ep.env.FinishTool {
			ep.answer = answerIn(arguments)
			o := &Observation{Tool: tool, Result: json.RawMessage(`{"content":[{"type":"text","text":"The task has ended."}],"isError":false}`)}
			ep.note(turn, "", []eval.Call{{Name: tool, Arguments: arguments}}, []*Observation{o})
			return ep.finish(ctx, o)
		}
		ep.texts = append(ep.texts, blockOf(tool, arguments))
		o := ep.run(ctx, tool, arguments)
		ep.note(turn, "", []eval.Call{{Name: tool, Arguments: arguments}}, []*Observation{o})
		return ep.after(ctx, turn, o)
	})
}

// answerIn returns the answer in the arguments of the finish tool, or nil if they have none.
func answerIn(arguments json.RawMessage) any {
	var given struct {
		Answer any `json:"answer"`
	}
	if json.Unmarshal(arguments, &given) != nil {
		return nil
	}
	return given.Answer
}

// blockOf returns a structured call as a block. A model may send calls in both forms, and all count.
func blockOf(tool string, arguments json.RawMessage) string {
	body, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil { // the arguments are not JSON
		return ""
	}
	return "<tool_call>" + string(body) + "</tool_call>"
}

// StepText parses a text of the model, as evaluation does, and makes the calls in its <tool_call>
// blocks in order. A call of the finish tool ends the episode, and calls after it are not made. A
// text without a call is the answer and ends the episode. Errors are those of Step.
func (ep *Episode) StepText(ctx context.Context, text string) (*Observation, error) {
	return ep.runInOrder(ctx, func(turn int) *Observation { return ep.text(ctx, turn, text) })
}

func (ep *Episode) text(ctx context.Context, turn int, text string) *Observation {
	ep.inText = true
	ep.texts = append(ep.texts, eval.WithoutCalls(text, ep.env.FinishTool)) // as for structured calls, the finish tool does not count
	x := eval.Extract(&eval.Response{Text: text}, ep.table.graded, ep.table.known)
	o := &Observation{}
	var seen []*Observation
	finished := len(x.Rescued) == 0
	if finished {
		ep.answer = text
	}
	for _, c := range x.Calls {
		if c.Name == ep.env.FinishTool {
			ep.answer = answerIn(c.Arguments)
			finished = true
			break
		}
		if o.Truncated = ep.late(); o.Truncated { // a text can have any number of calls
			break
		}
		one := ep.run(ctx, c.Name, c.Arguments)
		seen = append(seen, one)
		if one.Masked {
			o.Masked, o.FailureKind, o.Retryable, o.CallID = true, one.FailureKind, one.Retryable, one.CallID
			break
		}
	}
	if len(x.Calls) == 0 {
		for _, c := range x.Rescued { // calls in a wrong format are parsed but not run
			ep.calls = append(ep.calls, reward.Call{Name: c.Name, Arguments: c.Arguments, Outcome: reward.Refused})
		}
	}
	o.Text = observationText(seen)
	ep.note(turn, text, x.Calls, seen)
	if (finished || o.Truncated) && !o.Masked {
		return ep.finish(ctx, o)
	}
	return ep.after(ctx, turn, o)
}

// runInOrder runs a step after all earlier steps have ended. It does not run the step if the episode has
// ended or its time limit has passed. After the last step it closes the episode, because a trainer
// that never resets must not run out of places and processes.
func (ep *Episode) runInOrder(ctx context.Context, step func(turn int) *Observation) (o *Observation, err error) {
	defer func() { // last, because Close waits for the running step
		if err == nil && o.Done && !ep.oracle {
			ep.Close()
		}
	}()
	defer ep.enter()()
	ep.stepping.Lock()
	defer ep.stepping.Unlock()
	if ep.Status().Done {
		return nil, errEnded()
	}
	defer ep.spans.step(ctx, ep)(&o)
	if over := ep.overdue(); over != nil {
		return over, nil
	}
	turn, err := ep.turn()
	if err != nil {
		return nil, err
	}
	return step(turn), nil
}

// observationText returns the results as one text for a model.
func observationText(seen []*Observation) string {
	var b strings.Builder
	for _, o := range seen {
		body := string(o.Result)
		if o.Error != nil {
			body = o.Error.Message
		}
		fmt.Fprintf(&b, "<tool_response>\n%s\n</tool_response>\n", body)
	}
	return b.String()
}

// turn counts a step and returns its number.
func (ep *Episode) turn() (int, error) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.done {
		return 0, errEnded()
	}
	ep.steps++
	return ep.steps, nil
}

// late reports whether the time limit of the episode has passed before its end.
func (ep *Episode) late() bool {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return !ep.done && ep.m.o.Now().Sub(ep.began) > ep.env.Limits.Time
}

// overdue ends the episode if its time limit has passed. Otherwise it returns nil.
func (ep *Episode) overdue() *Observation {
	if !ep.late() {
		return nil
	}
	o := &Observation{Truncated: true, Error: &StepError{ErrorTimeout, "The time of the episode has passed; the call was not made."}}
	return ep.finish(ep.ctx, o)
}

// after ends the episode if this was its last step.
func (ep *Episode) after(ctx context.Context, turn int, o *Observation) *Observation {
	switch {
	case o.Masked:
		return ep.end(o)
	case turn >= ep.env.Limits.Steps:
		o.Truncated = true
		return ep.finish(ctx, o)
	}
	zero := 0.0
	o.Reward = &zero
	return o
}

// run makes one call and returns its observation.
func (ep *Episode) run(ctx context.Context, name string, arguments json.RawMessage) *Observation {
	o := &Observation{Tool: name}
	made := reward.Call{Name: name, Arguments: arguments, Outcome: reward.Refused}
	known := ep.table.names[name]
	if known == nil {
		o.Error = &StepError{ErrorNoTool, fmt.Sprintf("There is no tool %q.", name)}
	} else {
		made.Risk = max(1, known.risk)
		if made.Risk == 2 { // a call that is not held counts as level 1
			made.Risk = 1
		}
		call := ep.call(known.server, known.tool, arguments)
		o.CallID = call.ID
		res, held, err := ep.submit(ctx, call)
		if held != nil {
			made.Risk = held.Level
		}
		if l := call.Lease; l.Worker != "" && l.ID == "" && schema.KindOf(err) == schema.KindServerFailed {
			ep.m.lost.add(l.Worker, time.Now())
		}
		made.Outcome = ep.observe(o, res, held, err)
	}
	ep.calls = append(ep.calls, made)
	ep.results = append(ep.results, resultFact(name, known, o, made.Outcome))
	return o
}

// simulated is the result of a simulated held call.
const simulated = `{"content":[{"type":"text","text":"The call was made."}],"isError":false}`

// submit makes a call and, if the policy holds it, responds as the environment configures. held is
// set for a held call. If such a call was not allowed, there is no result.
func (ep *Episode) submit(ctx context.Context, call *schema.Call) (res *schema.Result, held *calls.Held, err error) {
	ctx, cancel := context.WithCancel(ep.spans.below(ctx))
	defer cancel()
	defer context.AfterFunc(ep.ctx, cancel)()
	out, err := ep.m.o.Calls.Submit(ctx, calls.Request{Call: call})
	switch {
	case err != nil:
		return nil, nil, err
	case out.Held != nil:
		res, err = ep.answerHeld(ctx, out.Held)
		return res, out.Held, err
	case out.Accepted != nil: // the policy requires a durable call
		s, err := ep.m.o.Calls.Await(ctx, out.Accepted, ep.who)
		if err != nil {
			return nil, nil, err
		}
		res, err = ep.m.o.Calls.Result(ctx, s)
		return res, nil, err
	}
	return out.Result, nil, nil
}

// answerHeld responds to a held call as the environment configures.
func (ep *Episode) answerHeld(ctx context.Context, h *calls.Held) (*schema.Result, error) {
	if ep.env.Confirm == ConfirmAllow && h.Token != "" {
		done, err := ep.m.o.Calls.Confirm(ctx, calls.Confirmation{Token: h.Token, Confirm: true, Principal: ep.who, Attempt: string(h.CallID)})
		if err != nil {
			return nil, err
		}
		return done.Result, nil
	}
	if _, err := ep.m.o.Calls.Cancel(ctx, h.CallID, ep.who); err != nil {
		return nil, err
	}
	if ep.env.Confirm == ConfirmSimulate {
		return &schema.Result{Body: []byte(simulated)}, nil
	}
	return nil, nil
}

// observe sets the result in the observation and returns the outcome.
func (ep *Episode) observe(o *Observation, res *schema.Result, held *calls.Held, err error) reward.Outcome {
	switch {
	case err != nil:
		return ep.failed(o, schema.AsError(err))
	case res == nil:
		o.Error = &StepError{ErrorExecution, "The call was denied: " + risk.JoinReasons(held.Reasons)}
		return reward.Denied
	}
	o.Result, o.ToolError = res.Body, res.ToolError
	switch {
	case held != nil && ep.env.Confirm == ConfirmSimulate:
		return reward.Simulated
	case res.ToolError:
		return reward.ToolError
	}
	return reward.OK
}

// failed converts the failure of a call to an observation. It masks the observation if the episode
// has no valid result after it.
func (ep *Episode) failed(o *Observation, e *schema.Error) reward.Outcome {
	switch e.Kind {
	case schema.KindInvalidArguments, schema.KindInvalidRequest, schema.KindTooLarge:
		message := e.Detail
		for _, f := range e.Faults {
			message += " " + f.Pointer + ": " + f.Message
		}
		o.Error = &StepError{ErrorArguments, message}
		return reward.Refused
	case schema.KindForbidden, schema.KindDisabled:
		o.Error = &StepError{ErrorExecution, e.Detail}
		return reward.Denied
	case schema.KindProtocol, schema.KindResultTooLarge, schema.KindInputRequired:
		o.Error = &StepError{ErrorExecution, e.Detail}
		return reward.ToolError
	case schema.KindOutcomeUnknown:
		if e.TimedOut {
			o.Error = &StepError{ErrorTimeout, e.Detail}
			return reward.Timeout
		}
	}
	o.Error = &StepError{ErrorTransport, e.Detail}
	o.Masked, o.FailureKind, o.Retryable = true, failureKind(e.Kind), e.Kind == schema.KindUnavailable || e.Kind == schema.KindQuota
	if ep.ctx.Err() != nil {
		o.FailureKind, o.Retryable = FailureCanceled, false
	}
	return ""
}

func failureKind(k schema.Kind) string {
	switch k {
	case schema.KindOutcomeUnknown:
		return FailureUnknown
	case schema.KindServerFailed, schema.KindNotFound: // the tool existed when the episode began
		return FailureWorkerLost
	case schema.KindUnavailable:
		return FailureCapacity
	case schema.KindQuota:
		return FailureQuota
	case schema.KindCanceled:
		return FailureCanceled
	}
	return FailureInternal
}

// finish computes the reward and ends the episode.
func (ep *Episode) finish(ctx context.Context, o *Observation) *Observation {
	item := reward.Item{Tools: ep.table.graded, Expected: ep.task.Expected, MaxRisk: ep.task.MaxRisk, Calls: ep.calls}
	if ep.inText {
		item.Completion = strings.Join(ep.texts, "\n")
	}
	err := ep.judge(ctx, &item)
	if err != nil {
		o.Masked, o.FailureKind = true, failureKind(schema.KindOf(err))
		if unable, ok := errors.AsType[*oracleError](err); ok {
			o.FailureKind = FailureOracle
			ep.m.o.Log.Warn("the labelled calls of a task could not be replayed", "environment", ep.env.name, "task", ep.task.ID, "error", unable.cause)
		}
		return ep.end(o)
	}
	scored := ep.env.scorer.Score(&item)
	o.Reward, o.Components, o.Masked, o.FailureKind = scored.Reward, scored.Components, scored.Masked, scored.FailureKind
	return ep.end(o)
}

// judge evaluates the state and the success condition, if the reward needs them.
func (ep *Episode) judge(ctx context.Context, item *reward.Item) (err error) {
	if ep.env.scorer.Weight(reward.State) != 0 || ep.env.check != nil && (ep.env.State.Dir != "" || ep.env.State.Tool != "") {
		if item.State, err = ep.digest(ctx); err != nil {
			return err
		}
		// The oracle needs processes too. An episode that kept its own could wait forever.
		ep.release()
		clear(ep.leases)
		if item.ExpectedState, err = ep.m.expectedState(ctx, ep); err != nil {
			return err
		}
	}
	if ep.env.check != nil {
		f := facts{results: ep.results, answer: ep.answer, task: ep.task.Members, steps: ep.steps, state: item.State, expectedState: item.ExpectedState}
		holds := ep.env.check.holds(&f)
		item.Success = &holds
	}
	return nil
}

// end marks the episode as ended.
func (ep *Episode) end(o *Observation) *Observation {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	o.Done = true
	if o.Masked {
		o.Reward, o.Components = nil, nil
	}
	ep.done, ep.final = true, o
	return o
}

// resultFact returns a result as a variable for conditions.
func resultFact(name string, known *environmentTool, o *Observation, outcome reward.Outcome) map[string]any {
	fact := map[string]any{"tool": name, "server": "", "ok": outcome == reward.OK, "outcome": string(outcome), "text": "", "structured": map[string]any{}}
	if known != nil {
		fact["server"], fact["tool"] = known.server, known.tool
	}
	var body struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Structured any `json:"structuredContent"`
	}
	if json.Unmarshal(o.Result, &body) == nil {
		if len(body.Content) > 0 {
			fact["text"] = body.Content[0].Text
		}
		if body.Structured != nil {
			fact["structured"] = body.Structured
		}
	}
	return fact
}
