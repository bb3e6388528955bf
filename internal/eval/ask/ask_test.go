package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/agent/model"
	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// firstToolModel calls the first tool of each request.
type firstToolModel struct {
	wire  model.Wire
	asked atomic.Int64
	fails func(n int64) error
}

func (p *firstToolModel) Ask(_ context.Context, r *model.Request, _ func(string), _ func()) (*model.Answer, error) {
	n := p.asked.Add(1)
	if p.fails != nil {
		if err := p.fails(n); err != nil {
			return nil, err
		}
	}
	a := &model.Answer{Text: fmt.Sprintf("answer %d", n), Usage: model.Usage{Reported: true, Input: 10, Output: 2}}
	tools, err := p.wire.Split(r.Tools)
	if err == nil && len(tools) > 0 {
		a.Calls = []model.Call{{ID: "x", Name: tools[0].Name, Arguments: json.RawMessage(`{"a":1}`)}}
	}
	return a, err
}

func samplesOf(t *testing.T, n int) []stage.Sample {
	t.Helper()
	var all []eval.Sample
	for i := range n {
		all = append(all, eval.Sample{ID: fmt.Sprint("q", i), Question: fmt.Sprint("What is ", i, "?"), Tools: []eval.Tool{
			{Name: "math.add it", Server: "calc", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "sub"},
		}})
	}
	digested, err := stage.WriteSamples(filepath.Join(t.TempDir(), "samples.jsonl"), all)
	if err != nil {
		t.Fatal(err)
	}
	return digested
}

func optionsOf(t *testing.T, spec string) (Options, *firstToolModel) {
	t.Helper()
	s, err := model.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.Open(s, model.Options{BaseURL: "http://127.0.0.1:1", Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	p := &firstToolModel{wire: c.Wire}
	return Options{Model: p, Wire: c.Wire, Name: spec, Parallel: 4}, p
}

func TestAnswersAreKeptUnderTheNamesOfTheSample(t *testing.T) {
	for _, spec := range []string{"openai:m", "responses:m", "anthropic:m", "gemini:m"} {
		path := filepath.Join(t.TempDir(), "responses.jsonl")
		o, _ := optionsOf(t, spec)
		o.Trials = 2
		done, err := Run(t.Context(), path, samplesOf(t, 30), o)
		if err != nil || done.Asked != 60 || done.Usage.Input != 600 {
			t.Fatalf("%s: %+v, %v", spec, done, err)
		}
		all, err := stage.ReadResponses(path)
		if err != nil || len(all) != 60 {
			t.Fatalf("%s: %d answers, %v", spec, len(all), err)
		}
		for _, r := range all {
			if !strings.Contains(string(r.Message), `"arguments":"{\"a\":1}","name":"math.add it"`) {
				t.Fatalf("%s: the message is %s", spec, r.Message)
			}
		}
	}
}

func TestAnsweredSamplesAreNotAskedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "responses.jsonl")
	samples := samplesOf(t, 50)
	o, p := optionsOf(t, "openai:m")
	p.fails = func(n int64) error {
		if n%5 == 0 {
			return errors.New("busy")
		}
		return nil
	}
	done, err := Run(t.Context(), path, samples, o)
	if err != nil || done.Asked != 40 || done.Failed != 10 || done.Fault == nil {
		t.Fatalf("%+v, %v", done, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-20], 0o600); err != nil { // a kill within the last line
		t.Fatal(err)
	}
	p.fails = nil
	if done, err = Run(t.Context(), path, samples, o); err != nil || done.Kept != 39 || done.Asked != 11 {
		t.Errorf("the second run: %+v, %v", done, err)
	}
	before := p.asked.Load()
	if done, err = Run(t.Context(), path, samples, o); err != nil || done.Kept != 50 || p.asked.Load() != before {
		t.Errorf("the third run: %+v, %v, %d requests", done, err, p.asked.Load()-before)
	}
	o.Name = "openai:other"
	if _, err := Run(t.Context(), path, samples, o); err == nil || !strings.Contains(err.Error(), "another folder") {
		t.Errorf("another model: %v", err)
	}
	if _, err := Run(t.Context(), filepath.Join(t.TempDir(), "r"), samples, Options{Model: p, Wire: o.Wire, Name: "x"}); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

func TestRunEndsWhenEveryRequestFails(t *testing.T) {
	o, p := optionsOf(t, "openai:m")
	p.fails = func(int64) error { return errors.New("no route") }
	done, err := Run(t.Context(), filepath.Join(t.TempDir(), "r"), samplesOf(t, 500), o)
	if err == nil || !strings.Contains(err.Error(), "no route") || done.Failed > maxFaults+4 {
		t.Errorf("%+v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.fails = func(n int64) error {
		if n > 100 {
			cancel()
		}
		return nil
	}
	p.asked.Store(0)
	if _, err := Run(ctx, filepath.Join(t.TempDir(), "r"), samplesOf(t, 5000), o); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestTextModeDescribesToolsInTheInstructions(t *testing.T) {
	o, _ := optionsOf(t, "anthropic:m")
	o.Text = true
	q := question{sample: &samplesOf(t, 1)[0]}
	if err := o.prepare(&q); err != nil {
		t.Fatal(err)
	}
	if len(q.request.Tools) != 0 || !strings.Contains(q.request.System, "<tool_call>") || !strings.Contains(q.request.System, `"name":"math.add it","server":"calc"`) {
		t.Errorf("the request is %+v", q.request)
	}
	q.sample.Question = ""
	if err := o.prepare(&q); err == nil {
		t.Error("a sample without a question is asked")
	}
}
