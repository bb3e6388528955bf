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
)

// Model is a language model; a [model.Client] is one.
type Model interface {
	Ask(ctx context.Context, r *model.Request, text func(string), restart func()) (*model.Answer, error)
}

// Fabric is a running Callyard.
type Fabric interface {
	// Tools returns the tools in the format of the model. query and budget, in tokens, select
	// the best ones; "" and 0 select all.
	Tools(ctx context.Context, query string, budget int) (*ToolList, error)
	// Run runs the calls in the answer of a model, but for those of the names in own. With the
	// same key the same calls run once.
	Run(ctx context.Context, key string, body json.RawMessage, own []string) (*Results, error)
	// Decide confirms or denies a held call.
	Decide(ctx context.Context, confirmation string, approve bool) error
	// Await waits up to the time for a held call to leave that state, and returns its state.
	Await(ctx context.Context, call string, wait time.Duration) (state string, err error)
}

// Results are what became of the calls of one answer.
type Results struct {
	Messages []json.RawMessage `json:"messages"` // for the model
	Calls    []CallResult      `json:"calls"`
}

// CallResult is what became of one call.
type CallResult struct {
	ID           string        `json:"id,omitempty"` // of the provider
	Name         string        `json:"name"`
	Server       string        `json:"server,omitempty"`
	Tool         string        `json:"tool,omitempty"`
	CallID       string        `json:"call_id,omitempty"`
	State        string        `json:"state"` // succeeded, failed, held, unknown; denied and refused by this package
	ToolError    bool          `json:"tool_error,omitempty"`
	ConfirmedBy  string        `json:"confirmed_by,omitempty"`
	Problem      *Problem      `json:"problem,omitempty"`
	Confirmation *Confirmation `json:"-"` // never written: it has a token
}

// IsRefusal says whether Callyard refused to run the call: by policy, by a switch, or because
// the caller may not.
func (r *CallResult) IsRefusal() bool {
	if r.State != "failed" || r.Problem == nil {
		return false
	}
	switch strings.TrimPrefix(r.Problem.Type, "/problems/") {
	case "forbidden", "disabled", "denied":
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

// Confirmation is what a held call needs.
type Confirmation struct {
	ID      string    // of the confirmation; "" where only people can decide
	People  bool      // approvers decide, not the caller
	Risk    int       // level
	Reason  string    // of the policy
	Page    string    // where people decide; "" if not known
	Expires time.Time // zero if not known
}

// Decision is what a person says to a held call.
type Decision int

// The decisions.
const (
	Deny    Decision = iota
	Approve          // confirm it now
	Wait             // for others to decide
	Leave            // end the session; the call stays held
)

// Held is a call that waits for a decision.
type Held struct {
	Result    *CallResult
	Arguments json.RawMessage // as the model wrote them
}

// Person is who looks at the session.
type Person interface {
	// Text is called with each piece of the model's answer, Restart when it begins again.
	Text(piece string)
	Restart()
	// Calls is told the calls of an answer before they run, Results what became of them.
	Calls(calls []model.Call)
	Results(results *Results)
	// Decide decides a held call. comment is for the model.
	Decide(ctx context.Context, h Held) (d Decision, comment string, err error)
}

// Stop is why a session ended.
type Stop string

// The reasons.
const (
	Answered  Stop = "answered"
	Truncated Stop = "truncated" // the model reached its greatest answer, or was blocked
	HeldCall  Stop = "held"      // a call waits for a decision
	Budget    Stop = "budget"
)

// Report is how a session went.
type Report struct {
	Answer  string       `json:"answer"`
	Stop    Stop         `json:"stop"`
	Reason  string       `json:"reason,omitempty"` // which budget, or the model's word
	Session string       `json:"session"`
	Steps   int          `json:"steps"` // requests to the model
	Calls   []CallResult `json:"calls"`
	Usage   model.Usage  `json:"usage"`
	Cost    *float64     `json:"cost"` // null where no prices are known
}

// Agent is one session. It is used by one goroutine.
type Agent struct {
	Model      Model
	Wire       model.Wire
	Loose      bool // calls in the text of an answer are run
	Plain      bool // the model is told to write calls as JSON; for models without tool calls
	Fabric     Fabric
	Person     Person
	Tools      *Tools
	Limits     Limits
	Transcript *Transcript
	System     string
	Stream     bool
	MaxOutput  int // tokens of one answer; 0: the provider's default

	spent  spent
	unsent bool // the calls of the last answer were not sent: a budget is spent
}

// errLeft says that the session ends while a call is held.
var errLeft = errors.New("a call is held")

// Ask sends a prompt and runs the loop until the model answers, a budget is spent, or a call
// stays held. With prompt "" it continues an interrupted session. Calls that were sent and have no
// results are sent again before the prompt, with their key. The report is complete where the error
// is nil.
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
			var err error
			if last, err = a.step(ctx); err != nil {
				return nil, err
			}
			r.Steps++
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

// drop ends an answer whose calls will not be sent: a budget was spent, or the model was stopped
// within it.
func (a *Agent) drop() error {
	e := a.Transcript.lastAnswer
	if e == nil || !a.unsent && !truncated(e.Stop) {
		return nil
	}
	a.unsent = false
	return a.Transcript.append(entry{Type: entryEnd, Turn: e.Turn, Messages: a.skipped(e)})
}

// skipped tells the model that the calls of an answer did not run: APIs refuse a conversation in
// which a call has no result. Calls in a text need none.
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

// step asks the model once. The answer is in the transcript when it returns.
func (a *Agent) step(ctx context.Context) (*entry, error) {
	if err := a.Tools.prepare(ctx, a.Fabric, a.Wire, a.Transcript, !a.Plain); err != nil {
		return nil, err
	}
	request := &model.Request{System: a.System, Messages: a.Transcript.Messages(), Tools: a.Tools.shown(a.Wire), MaxOutput: a.MaxOutput}
	if a.Plain {
		request.System, request.Tools = a.plainSystem(), nil
	}
	var text func(string)
	if a.Stream && !a.Plain {
		text = a.Person.Text
	}
	answer, err := a.Model.Ask(ctx, request, text, a.Person.Restart)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Plain:
		a.Person.Text(plainResponse(answer.Text))
	case !a.Stream:
		a.Person.Text(answer.Text)
	}
	a.spent.asked(request, answer)
	e := entry{
		Type: entryAnswer, Turn: a.Transcript.turns + 1, Key: fmt.Sprintf("%s.%d", a.Transcript.ID, a.Transcript.turns+1),
		Body: answer.Body, Messages: answer.Messages, Text: answer.Text, Calls: answer.Calls, Stop: answer.Stop, Usage: &answer.Usage,
	}
	if len(e.Calls) == 0 && (a.Loose || a.Plain) {
		a.readText(&e)
	}
	if !e.inText() {
		for _, c := range e.Calls {
			if !a.Tools.isShown(c.Name) && !slices.Contains(e.Own, c.Name) {
				e.Own = append(e.Own, c.Name)
			}
		}
	}
	if err := a.Transcript.append(e); err != nil {
		return nil, err
	}
	return a.Transcript.lastAnswer, nil
}

// turn runs the calls of an answer. more is false where there are none: the answer is final.
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
		a.unsent = true
		a.end(r, Budget, why)
		return false, nil
	}
	a.unsent = false
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

// truncated says whether the model was stopped within its answer: its last call may be
// incomplete.
func truncated(stop string) bool {
	return slices.Contains([]string{"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete", "content_filter", "refusal", "SAFETY", "MALFORMED_FUNCTION_CALL"}, stop)
}
