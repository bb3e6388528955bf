package episode

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// oneToolCatalog is a catalog with one tool of a built-in server at one worker.
type oneToolCatalog struct{ oneTool }

func (oneToolCatalog) Holders(schema.ServerID) []schema.Worker {
	return []schema.Worker{{ID: "w", Servers: []schema.Server{{ID: "files", State: schema.StateInitialized, Transport: "builtin"}}}}
}

// TestTheFormOfCallsDoesNotChangeTheReward plays the same episode with calls in texts, with
// structured calls, and with both. All have the same answer and the same reward.
func TestTheFormOfCallsDoesNotChangeTheReward(t *testing.T) {
	f, err := Load(written(t, map[string]string{
		"env.yaml":    "environments:\n  notes:\n    tools: [files/*]\n    tasks_file: tasks.jsonl\n    success: answer == \"42\"\n    reward: {weights: {success: 1}}\ntranscripts: kept\n",
		"tasks.jsonl": `{"id":"a","question":"a","expected":["read"]}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{File: f, Calls: echoes{}, Catalog: oneToolCatalog{}, Log: slog.New(slog.DiscardHandler)})
	defer m.Close()
	begin := func() *Episode {
		t.Helper()
		ep, err := m.Begin(t.Context(), f.Environments["notes"], Begin{Task: f.Environments["notes"].tasks.byID["a"], Principal: schema.Principal{Name: "trainer"}})
		if err != nil {
			t.Fatal(err)
		}
		return ep
	}
	for name, play := range map[string]func(ep *Episode) (*Observation, error){
		"calls": func(ep *Episode) (*Observation, error) {
			if _, err := ep.Step(t.Context(), "read", nil); err != nil {
				return nil, err
			}
			return ep.Step(t.Context(), "finish", []byte(`{"answer":"42"}`))
		},
		"texts": func(ep *Episode) (*Observation, error) {
			if _, err := ep.StepText(t.Context(), `<tool_call>{"name":"read"}</tool_call>`); err != nil {
				return nil, err
			}
			return ep.StepText(t.Context(), `<tool_call>{"name":"finish","arguments":{"answer":"42"}}</tool_call>`)
		},
		"a call and a text": func(ep *Episode) (*Observation, error) {
			if _, err := ep.Step(t.Context(), "read", []byte(`{"a":"</tool_call>"}`)); err != nil {
				return nil, err
			}
			return ep.StepText(t.Context(), "42")
		},
		"a call, and a wrong call in a text": func(ep *Episode) (*Observation, error) {
			if _, err := ep.Step(t.Context(), "read", nil); err != nil {
				return nil, err
			}
			if _, err := ep.StepText(t.Context(), `<tool_call>{"name":"nope"}</tool_call>`); err != nil {
				return nil, err
			}
			return ep.StepText(t.Context(), "42")
		},
		"one text": func(ep *Episode) (*Observation, error) {
			return ep.StepText(t.Context(), `<tool_call>{"name":"read"}</tool_call><tool_call>{"name":"finish","arguments":{"answer":"42"}}</tool_call><tool_call>{"name":"write"}</tool_call>`)
		},
	} {
		ep := begin()
		o, err := play(ep)
		if err != nil || !o.Done || o.Reward == nil || o.Components["success"] != 1 {
			t.Fatalf("%s: %+v, %v", name, o, err)
		}
		switch {
		case name == "one text": // the model wrote a call of another tool behind the finish, which is not made
			if len(ep.calls) != 1 || strings.Contains(o.Text, "write") {
				t.Errorf("%s: %d calls, %s", name, len(ep.calls), o.Text)
			}
		case name == "a call, and a wrong call in a text":
			if o.Components["selection"] != 2.0/3 { // one of two called tools is expected
				t.Errorf("%s: %v", name, o.Components)
			}
		case o.Components["selection"] != 2 || o.Components["format"] != 1:
			t.Errorf("%s: %v", name, o.Components)
		}
		ep.Close()
	}
}

// slow is a [Calls] in which every call takes a minute.
type slow struct{ Calls }

func (slow) Submit(context.Context, calls.Request) (calls.Outcome, error) {
	time.Sleep(time.Minute)
	return calls.Outcome{Result: &schema.Result{Body: []byte(`{"content":[]}`)}}, nil
}

func TestTheTimeLimitEndsATextOfManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Load(written(t, map[string]string{
			"env.yaml":    "environments:\n  notes:\n    tools: [files/*]\n    tasks_file: tasks.jsonl\n    limits: {time: 90s}\n",
			"tasks.jsonl": `{"id":"a","question":"a","expected":["read"]}`,
		}))
		if err != nil {
			t.Fatal(err)
		}
		m := New(Options{File: f, Calls: slow{}, Catalog: oneToolCatalog{}, Log: slog.New(slog.DiscardHandler)})
		defer m.Close()
		ep, err := m.Begin(t.Context(), f.Environments["notes"], Begin{Task: f.Environments["notes"].tasks.byID["a"]})
		if err != nil {
			t.Fatal(err)
		}
		o, err := ep.StepText(t.Context(), strings.Repeat(`<tool_call>{"name":"read"}</tool_call>`, 1000))
		if err != nil || !o.Done || !o.Truncated || o.Masked || o.Reward == nil || len(ep.calls) != 2 {
			t.Errorf("%+v, %v, after %d calls, want 2", o, err, len(ep.calls))
		}
	})
}
