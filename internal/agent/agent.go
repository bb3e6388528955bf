package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/pkg/schema"
)

// Model is a language model. [model.Client] implements it.
type Model interface {
	Ask(ctx context.Context, r *model.Request, text func(string), restart func()) (*model.Answer, error)
}

// Fabric is a running Callyard.
type Fabric interface {
	// Tools returns the tools in the format of the model. A query or a budget, in tokens, selects
	// the best matches; "" and 0 select all tools.
	Tools(ctx context.Context, query string, budget int) (*ToolList, error)
	// Run runs the calls in body, the answer of a model, except those whose names are in own. The
	// idempotency key ensures that repeated requests run the calls only once. The error is a
	// [RefusedError] if no call runs because of the body.
	Run(ctx context.Context, key string, body json.RawMessage, own []string) (*Results, error)
	// Decide confirms or denies a held call.
	Decide(ctx context.Context, confirmation string, approve bool) error
	// Await waits for a held call to leave the state held, at most for the duration wait, and returns
	// its state.
	Await(ctx context.Context, call string, wait time.Duration) (state string, err error)
}

// RefusedError means that Callyard cannot accept an answer of the model, for example because it has too
// many calls.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Results holds the outcomes of the calls of one answer.
type Results struct {
	Messages []json.RawMessage `json:"messages"` // for the model
	Calls    []CallResult      `json:"calls"`
}

// CallResult is the outcome of one call.
type CallResult struct {
	ID           string        `json:"id,omitempty"` // assigned by the model provider
	Name         string        `json:"name"`
	Server       string        `json:"server,omitempty"`
	Tool         string        `json:"tool,omitempty"`
	CallID       string        `json:"call_id,omitempty"`
	State        string        `json:"state"` // succeeded, failed, held or unknown; this package also sets denied and refused
	ToolError    bool          `json:"tool_error,omitempty"`
	ConfirmedBy  string        `json:"confirmed_by,omitempty"`
	Problem      *Problem      `json:"problem,omitempty"`
	Confirmation *Confirmation `json:"-"` // not written to JSON, because it contains a token
}

// IsRefusal reports whether the call did not run because it was not allowed: by the policy, an approver
// or the permissions of the caller, because the tool is disabled, or because nobody approved it in time.
func (r *CallResult) IsRefusal() bool {
	if r.State != "failed" || r.Problem == nil {
		return false
	}
	switch schema.Kind(strings.TrimPrefix(r.Problem.Type, "/problems/")) {
	case schema.KindForbidden, schema.KindDisabled, schema.KindExpired:
		return true
	}
	return false
}

// Problem is the reason that a call failed.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Confirmation holds the data for the decision of a held call.
type Confirmation struct {
	ID      string    // of the confirmation; "" if only approvers can decide
	People  bool      // approvers decide, not the caller
	Risk    int       // risk level
	Reason  string    // given by the policy
	Page    string    // URL of the approval page; "" if unknown
	Expires time.Time // zero if unknown
}

// Decision is the decision of a person about a held call.
type Decision int

// The decisions.
const (
	Deny    Decision = iota
	Approve          // confirm the call now
	Wait             // wait for approvers to decide
	Leave            // end the session and keep the call held
)

// Held is a call that waits for a decision.
type Held struct {
	Result    *CallResult
	Arguments json.RawMessage // as the model wrote them
}

// Person is the user interface of the session.
type Person interface {
	// Text receives each piece of the model's answer. Restart discards the pieces so far, because
	// the answer is requested again.
	Text(piece string)
	Restart()
	// Calls receives the calls of an answer before they run, Results their outcomes.
	Calls(calls []model.Call)
	Results(results *Results)
	// Decide decides a held call. comment is passed to the model.
	Decide(ctx context.Context, h Held) (d Decision, comment string, err error)
}

// Stop is the reason why a prompt ended.
type Stop string

// The reasons.
const (
	Answered  Stop = "answered"
	Truncated Stop = "truncated" // the model reached its output limit, or was blocked
	HeldCall  Stop = "held"      // a call waits for a decision
	Budget    Stop = "budget"
)

// Report is the outcome of one prompt.
type Report struct {
	Answer  string       `json:"answer"`
	Stop    Stop         `json:"stop"`
	Reason  string       `json:"reason,omitempty"` // the exhausted budget, or the model's stop reason
	Session string       `json:"session"`
	Steps   int          `json:"steps"` // requests to the model
	Calls   []CallResult `json:"calls"`
	Usage   model.Usage  `json:"usage"`
	Cost    *float64     `json:"cost"` // null if prices are unknown
}

// Agent runs one session. It must be used by one goroutine at a time.
type Agent struct {
	Model      Model
	Wire       model.Wire
	Loose      bool // also run calls that the model writes as text
	Plain      bool // instruct the model to write calls as JSON, for models without tool calls
	Fabric     Fabric
	Person     Person
	Tools      *Tools
	Limits     Limits
	Transcript *Transcript
	System     string
	Stream     bool
	MaxOutput  int // maximum number of tokens of one answer; 0 means the provider's default

	spent usage
}

// errLeft ends the session while a call is held.
var errLeft = errors.New("a call is held")

// Ask sends a prompt and runs the loop until the model answers, a budget is exhausted, or a call
// remains held. If prompt is "", it continues an interrupted session. Calls that were sent but have
// no results are sent again before the prompt, with the same idempotency key. The report is complete
// if the error is nil.
func (a *Agent) Ask(ctx context.Context, prompt string) (*Report, error) {
	a.spent.begin(a.Limits)
	r := &Report{Session: a.Transcript.ID, Calls: []CallResult{}}
	if prompt != "" {
		if err := a.drop(); err != nil {
			return nil, err
		}
	}
	for {
		last := a.Transcript.lastAnswer
		if prompt != "" && (last == nil || len(last.Calls) == 0) {
			if err := a.Transcript.append(entry{Type: entryUser, Text: prompt, Messages: []json.RawMessage{a.Wire.User(prompt)}}); err != nil {
				return nil, err
			}
			prompt, last = "", nil
		}
		if last == nil {
			if why := a.spent.beforeStep(); why != "" {
				return a.end(r, Budget, why), nil
			}
			r.Steps++
			var err error
			if last, err = a.step(ctx); errors.Is(err, errTime) {
				return a.end(r, Budget, a.spent.timeOver()), nil
			} else if err != nil {
				return nil, err
			}
		}
		more, err := a.turn(ctx, r, last)
		switch {
		case errors.Is(err, errLeft):
			return a.end(r, HeldCall, ""), nil
		case err != nil:
			return nil, err
		case !more:
			return r, nil
		}
	}
}

// drop closes an answer whose calls will not be sent, because a budget was exhausted or the answer
// was truncated.
func (a *Agent) drop() error {
	e := a.Transcript.lastAnswer
	if e == nil || !a.Transcript.unsent && !truncated(e.Stop) {
		return nil
	}
	return a.Transcript.append(entry{Type: entryEnd, Turn: e.Turn, Messages: a.skipped(e)})
}

// skipped returns messages for the model that the calls of an answer did not run. APIs refuse a
// conversation in which a call has no result. Calls in a text need no result.
func (a *Agent) skipped(e *entry) []json.RawMessage {
	if len(e.Calls) == 0 || e.inText() {
		return nil
	}
	why := "This call did not run: the budget of the user's prompt was spent."
	if truncated(e.Stop) {
		why = "This call did not run: your answer was truncated."
	}
	messages := make([]json.RawMessage, 0, len(e.Calls))
	for _, c := range e.Calls {
		messages = append(messages, a.Wire.Result(c, why, true))
	}
	return a.Wire.Join(messages)
}

func (a *Agent) end(r *Report, stop Stop, reason string) *Report {
	r.Stop, r.Reason, r.Usage, r.Cost = stop, reason, a.spent.usage, a.spent.cost()
	return r
}

// step sends one request to the model. It returns after the answer is in the transcript.
func (a *Agent) step(ctx context.Context) (*entry, error) {
	if err := a.prepareTools(ctx); err != nil {
		return nil, err
	}
	request := &model.Request{System: a.System, Messages: a.Transcript.Messages(), Tools: a.Tools.definitions(a.Wire), MaxOutput: a.MaxOutput}
	if a.Plain {
		request.System, request.Tools = a.plainSystem(), nil
	}
	var text func(string)
	if a.Stream && !a.Plain {
		text = a.Person.Text
	}
	asking, done := a.spent.limit(ctx)
	defer done()
	answer, err := a.Model.Ask(asking, request, text, a.Person.Restart)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(context.Cause(asking), errTime):
		// A model that does not answer must not hold the session. What it used is unknown.
		a.spent.countTokens(request, &model.Answer{})
		return nil, errTime
	case err != nil:
		return nil, err
	}
	switch {
	case a.Plain:
		a.Person.Text(plainResponse(answer.Text))
	case !a.Stream:
		a.Person.Text(answer.Text)
	}
	a.spent.countTokens(request, answer)
	e := entry{
		Type: entryAnswer, Turn: a.Transcript.turns + 1, Key: fmt.Sprintf("%s.%d", a.Transcript.ID, a.Transcript.turns+1),
		Body: answer.Body, Messages: answer.Messages, Text: answer.Text, Calls: answer.Calls, Stop: answer.Stop, Usage: &answer.Usage,
	}
	if len(e.Calls) == 0 && (a.Loose || a.Plain) {
		a.readText(&e)
	}
	if !e.inText() {
		for _, c := range e.Calls {
			// Callyard refuses the calls whose names cannot be in a list of names: they name no tool.
			listed := strings.TrimSpace(c.Name) != "" && !strings.Contains(c.Name, ",")
			if listed && !a.Tools.isShown(c.Name) && !slices.Contains(e.Own, c.Name) {
				e.Own = append(e.Own, c.Name)
			}
		}
	}
	if err := a.Transcript.append(e); err != nil {
		return nil, err
	}
	return a.Transcript.lastAnswer, nil
}

// turn runs the calls of an answer. If there are none, more is false and the answer is final.
func (a *Agent) turn(ctx context.Context, r *Report, e *entry) (more bool, err error) {
	if len(e.Calls) == 0 || truncated(e.Stop) {
		if r.Answer = e.Text; a.Plain {
			r.Answer = plainResponse(e.Text)
		}
		if truncated(e.Stop) || e.Text == "" {
			a.end(r, Truncated, e.Stop)
		} else {
			a.end(r, Answered, "")
		}
		return false, a.Transcript.append(entry{Type: entryEnd, Turn: e.Turn, Messages: a.skipped(e)})
	}
	if why := a.spent.beforeCalls(e.Calls); why != "" {
		a.end(r, Budget, why)
		return false, a.Transcript.mark(entryUnsent)
	}
	if err := a.Transcript.mark(entrySent); err != nil {
		return false, err
	}
	a.Person.Calls(e.Calls)
	results, err := a.run(ctx, e)
	if results != nil {
		r.Calls = append(r.Calls, results.Calls...)
	}
	if err != nil {
		return false, err
	}
	a.Person.Results(results)
	return true, a.Transcript.append(entry{Type: entryResults, Turn: e.Turn, Messages: results.Messages, Results: results.Calls})
}

// truncated reports whether the model was stopped before its answer was complete. The last call of
// such an answer may be incomplete.
func truncated(stop string) bool {
	switch stop {
	case "length", "content_filter", // OpenAI chat completions
		"max_output_tokens", "incomplete", // OpenAI Responses
		"max_tokens", "refusal", "model_context_window_exceeded", // Anthropic
		"MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "OTHER", // Gemini
		"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return true
	}
	return false
}
