package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/eval/ask"
	"github.com/callyard/callyard/internal/eval/rundir"
)

// evalModel is the model that `callyard eval run` queries.
type evalModel struct {
	name, baseURL string
	headers       []string
	calls         string
	options       ask.Options
}

func (m *evalModel) flags(f *pflag.FlagSet) {
	f.StringVar(&m.name, "model", "", "model to ask, as PROVIDER:NAME; see callyard agent")
	f.StringVar(&m.baseURL, "base-url", "", "address of the model's API in place of the provider's")
	f.StringArrayVar(&m.headers, "header", nil, "header for the model's API, as Name: value; can be repeated")
	f.StringVar(&m.calls, "calls", "api", "how the model calls tools: api (the tool calls of its API), or text (<tool_call> blocks, as in the published evaluation)")
	f.IntVar(&m.options.Trials, "trials", 1, "answers to each question")
	f.IntVar(&m.options.Parallel, "parallel", 8, "requests to the model at the same time")
	f.IntVar(&m.options.MaxOutput, "max-output", 0, "tokens of one answer (default: the provider's)")
}

// ask queries the model and prints a summary.
func (m *evalModel) ask(ctx context.Context, c *client, o rundir.Options) error {
	if m.calls != "api" && m.calls != "text" {
		return fail(exitUsage, "--calls must be api or text.")
	}
	if m.options.Trials < 1 || m.options.Parallel < 1 {
		return fail(exitUsage, "--trials and --parallel must be at least 1.")
	}
	opened, err := (&agentOptions{baseURL: m.baseURL, headers: m.headers}).openModel(m.name)
	if err != nil {
		return err
	}
	defer opened.Close()
	m.options.Model, m.options.Wire, m.options.Name, m.options.Text = opened, opened.Wire, opened.Spec.String(), m.calls == "text"
	line := askedLine{s: c.note}
	m.options.Told = line.show
	done, err := rundir.Ask(ctx, o, m.options)
	line.line.clear()
	switch {
	case done == nil:
		return fail(exitUsage, "%w", err)
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, "Interrupted after %d answers. The same command continues.", done.Asked)
	}
	if err := c.note.text(fmt.Sprintf("%s, %d kept, %d without an answer; %d tokens in, %d out.\n", count(done.Asked, "answer"), done.Kept, done.Failed, done.Usage.Input, done.Usage.Output)); err != nil {
		return err
	}
	switch {
	case err != nil:
		return fail(exitUnreachable, "%w", err)
	case done.Failed > 0:
		return fail(exitUnreachable, "%s no answer; the same command asks again. One of the reasons: %w", countOf(done.Failed, "question has", "questions have"), done.Fault)
	}
	return nil
}

// askedLine shows the number of answers: at a terminal on one line, elsewhere every few seconds. It
// is safe for concurrent use.
type askedLine struct {
	s    screen
	mu   sync.Mutex
	line progressLine
	last time.Time
}

func (a *askedLine) show(done, all int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := fmt.Sprintf("%d of %s", done, count(all, "answer"))
	now := time.Now()
	switch {
	case a.s.terminal && now.Sub(a.last) >= drawEvery:
		a.line.s = a.s
		_ = a.line.draw(text) // best effort: the answers are stored anyway
	case !a.s.terminal && now.Sub(a.last) >= sayEvery:
		_ = a.s.text(text + "\n")
	default:
		return
	}
	a.last = now
}
