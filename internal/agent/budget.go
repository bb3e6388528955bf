package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/format"
)

// Limits holds the budgets of one prompt. 0 means no limit.
type Limits struct {
	Steps   int           // requests to the model
	Calls   int           // tool calls
	Tokens  int64         // in requests and answers
	Cost    float64       // in the unit of the prices
	Repeats int           // calls of the same tool with the same arguments
	Time    time.Duration // excluding the time in which people decide
	Prices  *Prices
}

// errTime means that the time was spent during a request to the model.
var errTime = errors.New("the time is spent")

// Prices holds the prices of one model, per million tokens. If Cached is nil, cached tokens cost as
// much as other input.
type Prices struct {
	Input  float64  `json:"input"`
	Cached *float64 `json:"cached_input"`
	Output float64  `json:"output"`
}

func (p *Prices) cached() float64 {
	if p.Cached == nil {
		return p.Input
	}
	return *p.Cached
}

// Negative reports whether any of the prices is below zero.
func (p *Prices) Negative() bool { return min(p.Input, p.cached(), p.Output) < 0 }

// usage counts the use of a prompt's budgets.
type usage struct {
	limits  Limits
	steps   int
	calls   int
	usage   model.Usage
	repeats map[string]int
	began   time.Time
	waited  time.Duration
}

func (s *usage) begin(l Limits) {
	*s = usage{limits: l, repeats: make(map[string]int), began: time.Now(), usage: model.Usage{Reported: true}}
}

// cost returns the cost of the tokens, or nil if there are no prices.
func (s *usage) cost() *float64 {
	p := s.limits.Prices
	if p == nil {
		return nil
	}
	cost := (float64(s.usage.Input-s.usage.Cached)*p.Input + float64(s.usage.Cached)*p.cached() + float64(s.usage.Output)*p.Output) / 1e6
	return &cost
}

// beforeStep returns the budget that is exhausted, or counts a step and returns "".
func (s *usage) beforeStep() string {
	l := &s.limits
	total := s.usage.Input + s.usage.Output
	switch {
	case l.Steps > 0 && s.steps >= l.Steps:
		return fmt.Sprintf("%d steps (--max-steps)", l.Steps)
	case l.Tokens > 0 && total >= l.Tokens:
		return fmt.Sprintf("%d of %d tokens (--max-tokens)", total, l.Tokens)
	case l.Cost > 0 && s.cost() != nil && *s.cost() >= l.Cost:
		return fmt.Sprintf("a cost of %.4f of %.4f (--max-cost)", *s.cost(), l.Cost)
	case l.Time > 0 && time.Since(s.began)-s.waited >= l.Time:
		return s.timeOver()
	}
	s.steps++
	return ""
}

func (s *usage) timeOver() string { return fmt.Sprintf("%s (--time)", s.limits.Time) }

// limit returns the context of a request to the model, which ends when the time is spent.
func (s *usage) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.limits.Time <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, s.began.Add(s.limits.Time+s.waited), errTime)
}

// beforeCalls returns the budget that the calls of an answer exceed, or counts them and returns "".
func (s *usage) beforeCalls(calls []model.Call) string {
	l := &s.limits
	if l.Calls > 0 && s.calls+len(calls) > l.Calls {
		return fmt.Sprintf("%d calls (--max-calls); the model asked for %d more", s.calls, len(calls))
	}
	s.calls += len(calls)
	for _, c := range calls {
		key := c.Name + "\x00" + string(c.Arguments)
		if s.repeats[key]++; l.Repeats > 0 && s.repeats[key] > l.Repeats {
			return fmt.Sprintf("%d calls of %s with the same arguments (--max-repeat)", l.Repeats, c.Name)
		}
	}
	return ""
}

// countTokens counts the tokens of a request and its answer. It estimates them if the API does not report
// them.
func (s *usage) countTokens(r *model.Request, a *model.Answer) {
	used := a.Usage
	if !used.Reported {
		in, err := json.Marshal(r.Messages)
		if err == nil {
			used.Input = int64(format.Tokens(in) + format.Tokens(r.Tools) + format.Tokens([]byte(r.System)))
		}
		used.Output = int64(format.Tokens(a.Body))
	}
	s.usage = s.usage.Add(used)
}
