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
	"github.com/callyard/callyard/internal/format"
)

const awaitEach = 30 * time.Second

// run runs the calls of an answer and returns their outcomes, with a message for the model for each.
// Held calls are decided first. If one remains held, run returns errLeft.
func (a *Agent) run(ctx context.Context, e *entry) (*Results, error) {
	own, texts, err := a.ownResults(ctx, e)
	if err != nil {
		return nil, err
	}
	results := &Results{}
	if len(own) < len(e.Calls) {
		if results, err = a.decided(ctx, e); err != nil {
			return results, err
		}
	}
	if e.inText() {
		return results, nil // all calls were sent
	}
	results.Messages = a.Wire.Join(append(texts, results.Messages...))
	results.Calls = append(own, results.Calls...)
	return results, nil
}

// ownResults answers the calls that are not sent to Callyard: calls of find_tools, and of
// tools that were never shown to the model.
func (a *Agent) ownResults(ctx context.Context, e *entry) (own []CallResult, messages []json.RawMessage, err error) {
	if e.inText() {
		return nil, nil, nil
	}
	for _, c := range e.Calls {
		if !slices.Contains(e.Own, c.Name) {
			continue
		}
		r := CallResult{ID: c.ID, Name: c.Name, State: "refused"}
		text, failed := fmt.Sprintf("There is no tool %q. Use the names of your tools exactly.", c.Name), true
		if c.Name == findTools && a.Transcript.search {
			if err := a.prepareTools(ctx); err != nil {
				return nil, nil, err
			}
			if text, failed, err = a.searchTools(ctx, c.Arguments); err != nil {
				return nil, nil, err
			}
			r.State, r.ToolError = "succeeded", failed
		}
		own, messages = append(own, r), append(messages, a.Wire.Result(c, text, failed))
	}
	return own, messages, nil
}

// decided runs the calls and asks the person to decide held calls until no call is held.
func (a *Agent) decided(ctx context.Context, e *entry) (*Results, error) {
	confirmed, denied := map[string]string{}, map[string]string{}
	for {
		results, err := a.Fabric.Run(ctx, e.Key, e.Body, e.Own)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return a.refused(e, refused), nil
		}
		if err != nil {
			return nil, err
		}
		var held []Held
		for i := range results.Calls {
			r := &results.Calls[i]
			if _, no := denied[r.CallID]; no && r.State != "held" {
				r.State = "denied"
			}
			if !r.IsRefusal() { // approvers may have denied it
				r.ConfirmedBy = confirmed[r.CallID]
			}
			if r.State == "held" {
				held = append(held, Held{r, argumentsOf(e, results.Calls[:i+1])})
			}
		}
		if len(held) == 0 {
			return a.appendComments(results, denied), nil
		}
		began := time.Now()
		for _, h := range held {
			if err := a.decide(ctx, h, confirmed, denied); err != nil {
				return results, err
			}
		}
		a.spent.waited += time.Since(began)
	}
}

// refused returns results for an answer that Callyard cannot accept. The model is told the reason and
// can correct its calls; without results the session would send them again forever.
func (a *Agent) refused(e *entry, refused *RefusedError) *Results {
	results := &Results{}
	for _, c := range e.Calls {
		if slices.Contains(e.Own, c.Name) {
			continue
		}
		r := CallResult{ID: c.ID, Name: c.Name, State: "failed", Problem: &Problem{Type: "/problems/invalid-request", Title: "Invalid request", Detail: refused.Reason}}
		results.Calls = append(results.Calls, r)
		results.Messages = append(results.Messages, a.Wire.Result(c, "No call of this answer ran: "+refused.Reason, true))
	}
	if e.inText() {
		results.Messages = []json.RawMessage{a.Wire.User("No call of this answer ran: " + refused.Reason)}
	}
	return results
}

// decide asks the person to decide one held call.
func (a *Agent) decide(ctx context.Context, h Held, confirmed, denied map[string]string) error {
	r := h.Result
	if confirmed[r.CallID] != "" { // already decided, but not yet applied
		_, err := a.Fabric.Await(ctx, r.CallID, awaitEach)
		return err
	}
	d, comment, err := a.Person.Decide(ctx, h)
	if err != nil {
		return err
	}
	switch d {
	case Approve, Deny:
		if r.Confirmation == nil || r.Confirmation.ID == "" {
			return fmt.Errorf("the call %s can only be decided by its approvers", r.CallID)
		}
		if err := a.Fabric.Decide(ctx, r.Confirmation.ID, d == Approve); err != nil {
			// It may have expired, or been decided elsewhere, while the person thought about it.
			if state, unknown := a.Fabric.Await(ctx, r.CallID, 0); unknown == nil && state != "held" {
				return nil
			}
			return err
		}
		if d == Deny {
			denied[r.CallID] = comment
		} else {
			confirmed[r.CallID] = "caller"
		}
		return nil
	case Wait:
		confirmed[r.CallID] = "approvers"
		for {
			state, err := a.Fabric.Await(ctx, r.CallID, awaitEach)
			if err != nil {
				return err
			}
			if state != "held" {
				return nil
			}
		}
	}
	return errLeft
}

// argumentsOf returns the arguments of the last of the results, as the model wrote them. Calls can have
// the same id, or none as those of Gemini, so calls that look alike are told apart by their order.
func argumentsOf(e *entry, results []CallResult) json.RawMessage {
	last := results[len(results)-1]
	before := 0
	for _, r := range results[:len(results)-1] {
		if r.ID == last.ID && r.Name == last.Name {
			before++
		}
	}
	for _, c := range e.Calls {
		if c.Name != last.Name || c.ID != last.ID && !e.inText() {
			continue
		}
		if before == 0 {
			return c.Arguments
		}
		before--
	}
	return nil
}

// appendComments appends the person's comments on denials.
func (a *Agent) appendComments(results *Results, denied map[string]string) *Results {
	for i := range results.Calls {
		if comment := denied[results.Calls[i].CallID]; comment != "" {
			results.Messages = append(results.Messages, a.Wire.User(fmt.Sprintf("I denied the call of %s: %s", results.Calls[i].Name, comment)))
		}
	}
	return results
}

// inText reports whether the calls were written in the text of the answer.
func (e *entry) inText() bool {
	return len(e.Body) > 0 && string(e.Body[:min(8, len(e.Body))]) == `{"text":`
}

// readText extracts calls from the text of an answer. Models write calls there if their server
// does not parse their call format. Only calls of tools that are shown count, and the answer's body
// has these calls alone: Callyard knows more tools, and would also find calls of those in the text.
func (a *Agent) readText(e *entry) {
	found := format.Extract(e.Text, func(name string) ([]byte, bool) { return nil, a.Tools.isShown(name) })
	calls := make([]model.Call, 0, len(found))
	var text strings.Builder
	for i, f := range found {
		if f.Err != nil || !a.Tools.isShown(f.Name) {
			return // run all calls or none
		}
		// Marshal writes < as an escape, so arguments cannot contain the closing tag.
		call, err := json.Marshal(map[string]any{"name": f.Name, "arguments": json.RawMessage(f.Arguments)})
		if err != nil {
			return // cannot happen: the arguments are JSON
		}
		fmt.Fprintf(&text, "<tool_call>%s</tool_call>\n", call)
		calls = append(calls, model.Call{ID: fmt.Sprintf("text_%d", i), Name: f.Name, Arguments: f.Arguments})
	}
	if len(calls) == 0 {
		return
	}
	body, err := json.Marshal(map[string]string{"text": text.String()})
	if err != nil {
		return // cannot happen: text always encodes
	}
	e.Calls, e.Body = calls, body
}
