package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/agent"
	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/visible"
)

// agentPerson is the user of `callyard agent`: a person at a terminal, or a program.
type agentPerson struct {
	c        *client
	o        *agentOptions
	terminal bool // a person can answer questions
	lines    lineReader
	confirm  string
	midLine  bool // the last output of the answer did not end with a line break
	events   *json.Encoder
	fault    error // the first write error
}

func newAgentPerson(c *client, o *agentOptions) *agentPerson {
	p := &agentPerson{c: c, o: o, terminal: isTerminal(c.in), lines: lineReader{bufio.NewReader(c.in)}}
	if p.confirm = o.confirm; p.confirm == "" {
		p.confirm = "deny"
		if p.terminal {
			p.confirm = "ask"
		}
	}
	if o.output == "stream-json" {
		p.events = plainjson.NewEncoder(c.out.w)
	}
	return p
}

// event writes an event of stream-json.
func (p *agentPerson) event(kind string, members map[string]any) {
	if p.events == nil {
		return
	}
	members["type"] = kind
	if err := p.events.Encode(members); err != nil {
		p.wrote(fmt.Errorf("writing the output: %w", err))
	}
}

// wrote records a write error. The session continues, because its calls may have run.
func (p *agentPerson) wrote(err error) { p.fault = cmp.Or(p.fault, err) }

// prompt reads a line of input.
func (p *agentPerson) prompt(ctx context.Context) (string, error) {
	if err := p.c.note.text("> "); err != nil {
		return "", err
	}
	return untilInterrupt(ctx, p.lines.read)
}

// Text implements [agent.Person].
func (p *agentPerson) Text(piece string) {
	p.event("text", map[string]any{"text": piece})
	if p.o.output != "text" || piece == "" {
		return
	}
	p.wrote(p.c.out.text(visible.Terminal(piece)))
	p.midLine = !strings.HasSuffix(piece, "\n")
}

// Restart implements [agent.Person].
func (p *agentPerson) Restart() {
	p.event("restart", map[string]any{})
	p.endLine()
	p.print("(The model's API failed; its answer begins again.)\n")
}

func (p *agentPerson) endLine() {
	if p.midLine {
		p.wrote(p.c.out.text("\n"))
		p.midLine = false
	}
}

// print prints a message to the person, separate from the answer.
func (p *agentPerson) print(text string) {
	if p.o.output == "text" {
		_ = p.c.note.text(text)
	}
}

// Calls implements [agent.Person].
func (p *agentPerson) Calls(calls []model.Call) {
	p.endLine()
	for _, c := range calls {
		p.event("call", map[string]any{"id": c.ID, "name": c.Name, "arguments": jsonOrText(c.Arguments)})
		text := "→ " + oneLine(c.Name)
		if !p.o.hideJSON {
			text += " " + p.folded(c.Arguments)
		}
		p.print(text + "\n")
	}
}

// jsonOrText returns arguments as JSON if they are valid, else as text. A model may write invalid
// JSON.
func jsonOrText(raw json.RawMessage) any {
	if json.Valid(raw) {
		return raw
	}
	return string(raw)
}

// folded formats JSON on one line if it fits, else indented.
func (p *agentPerson) folded(raw json.RawMessage) string {
	if text := oneLine(string(raw)); columnsOf(text) <= p.o.jsonWidth {
		return text
	}
	return "\n" + visible.Terminal(pretty(raw))
}

// Results implements [agent.Person].
func (p *agentPerson) Results(results *agent.Results) {
	texts := resultTexts(results.Messages)
	for i := range results.Calls {
		r := &results.Calls[i]
		p.event("result", map[string]any{"call": r})
		text := "← " + oneLine(r.Name) + ": " + r.State
		switch {
		case r.Problem != nil:
			text += ": " + oneLine(cmp.Or(r.Problem.Detail, r.Problem.Title))
		case r.ToolError:
			text += ", and the tool reported an error"
		}
		p.print(text + "\n")
		if r.State == "succeeded" && !p.o.hideJSON && len(texts) == len(results.Calls) && texts[i] != "" {
			p.print(p.result(texts[i]) + "\n")
		}
	}
}

// Decide implements [agent.Person].
func (p *agentPerson) Decide(ctx context.Context, h agent.Held) (agent.Decision, string, error) {
	r, q := h.Result, h.Result.Confirmation
	p.event("held", map[string]any{"call": r, "arguments": jsonOrText(h.Arguments)})
	people := q == nil || q.People
	confirm := p.confirm
	if confirm == "wait" && !people {
		confirm = "deny" // only this agent has the token, so nobody else can confirm the call
	}
	switch confirm {
	case "wait":
		switch {
		case q != nil && q.Page != "":
			p.print("Waiting for approval at " + oneLine(q.Page) + "\n")
		case q != nil && !q.Expires.IsZero():
			p.print("Waiting for the decision about the call " + r.CallID + ", until " + q.Expires.Local().Format(time.DateTime) + "\n")
		default:
			p.print("Waiting for the decision about the call " + r.CallID + "\n")
		}
		return agent.Wait, "", nil
	case "deny":
		if people {
			return agent.Leave, "", nil
		}
		return agent.Deny, "nobody was there to confirm it", nil
	}
	if err := p.c.note.text(p.card(h)); err != nil {
		return agent.Leave, "", err
	}
	for {
		choice := "Run this call? [y]es, [n]o, [q]uit: "
		if people {
			choice = "Approvers decide. [w]ait for them, or [q]uit and continue later: "
		}
		if err := p.c.note.text(choice); err != nil {
			return agent.Leave, "", err
		}
		line, err := untilInterrupt(ctx, p.lines.read)
		if ctx.Err() != nil {
			return agent.Leave, "", ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return agent.Leave, "", nil
		}
		if err != nil {
			return agent.Leave, "", err
		}
		answer, comment, _ := strings.Cut(line, " ")
		switch strings.ToLower(answer) {
		case "y", "yes":
			if !people {
				return agent.Approve, "", nil
			}
		case "n", "no":
			if !people {
				return agent.Deny, strings.TrimSpace(comment), nil
			}
		case "w", "wait":
			if people {
				return agent.Wait, "", nil
			}
		case "q", "quit":
			return agent.Leave, "", nil
		}
	}
}

// card renders a held call with all of its arguments.
func (p *agentPerson) card(h agent.Held) string {
	r, q := h.Result, h.Result.Confirmation
	var b strings.Builder
	fmt.Fprintf(&b, "\nThis call needs a confirmation.\n  server  %s\n  tool    %s\n", oneLine(r.Server), oneLine(r.Tool))
	if q != nil {
		fmt.Fprintf(&b, "  risk    %d\n", q.Risk)
		if q.Reason != "" {
			fmt.Fprintf(&b, "  reason  %s\n", oneLine(q.Reason))
		}
		if !q.Expires.IsZero() {
			fmt.Fprintf(&b, "  until   %s\n", q.Expires.Local().Format(time.DateTime))
		}
		if q.Page != "" {
			fmt.Fprintf(&b, "  page    %s\n", oneLine(q.Page))
		}
	}
	fmt.Fprintf(&b, "  arguments\n%s\n", visible.Terminal(pretty(h.Arguments)))
	return b.String()
}

// report prints the outcome of a prompt. session is the value of --resume for the session.
func (p *agentPerson) report(r *agent.Report, session string) error {
	p.endLine()
	if p.events != nil {
		p.event("report", map[string]any{"report": r})
		return p.fault
	}
	if p.o.output == "json" {
		body, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		return p.c.out.raw(body)
	}
	switch r.Stop {
	case agent.HeldCall:
		for _, c := range r.Calls {
			if c.State == "held" {
				p.print(fmt.Sprintf("The call %s of %s is held. Continue with `callyard agent --resume %s` when it is decided.\n", c.CallID, oneLine(c.Name), session))
			}
		}
	case agent.Budget:
		p.print("The session ended: the budget of " + r.Reason + " is spent.\n")
	case agent.Truncated:
		p.print("The model stopped without an answer (" + oneLine(r.Reason) + ").\n")
	}
	return p.fault
}
