package episode

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/pkg/schema"
)

// pair is a catalog with one tool of a built-in server at two workers.
type pair struct{ oneTool }

func (pair) Holders(schema.ServerID) (out []schema.Worker) {
	for _, id := range []schema.WorkerID{"dead", "live"} {
		out = append(out, schema.Worker{ID: id, Servers: []schema.Server{{ID: "files", State: schema.StateInitialized, Transport: "builtin"}}})
	}
	return out
}

// halfDead is a fabric whose worker "dead" was killed, and counts the calls that went there.
type halfDead struct {
	Calls
	lost int
}

func (h *halfDead) Submit(_ context.Context, r calls.Request) (calls.Outcome, error) {
	if r.Call.Lease.Worker == "dead" {
		h.lost++
		return calls.Outcome{}, schema.Errorf(schema.KindServerFailed, "gone")
	}
	return calls.Outcome{Result: &schema.Result{Body: []byte(`{"content":[]}`)}}, nil
}

func TestEpisodesAvoidAWorkerThatIsLostAndStillListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Load(written(t, map[string]string{
			"env.yaml":    "environments:\n  notes:\n    tools: [files/*]\n    tasks_file: tasks.jsonl\n",
			"tasks.jsonl": `{"id":"a","question":"a"}`,
		}))
		if err != nil {
			t.Fatal(err)
		}
		fabric := &halfDead{}
		m := New(Options{File: f, Calls: fabric, Catalog: pair{}, Log: slog.New(slog.DiscardHandler)})
		defer m.Close()
		play := func(episodes int) (masked int) {
			t.Helper()
			for range episodes {
				ep, err := m.Begin(t.Context(), f.Environments["notes"], Begin{Task: f.Environments["notes"].tasks.byID["a"]})
				if err != nil {
					t.Fatal(err)
				}
				o, err := ep.Step(t.Context(), "read", nil)
				if err != nil {
					t.Fatal(err)
				}
				if o.Masked {
					masked++
				}
				ep.Close()
			}
			return masked
		}
		// Episodes are distributed at random, so that 64 miss one of two workers never.
		if masked := play(64); masked != 1 || fabric.lost != 1 {
			t.Errorf("%d of 64 episodes are masked, want one", masked)
		}
		time.Sleep(lostFor) // a worker that was partitioned and is back is used again
		if masked := play(64); masked != 1 {
			t.Errorf("after a while, %d of 64 episodes are masked, want one", masked)
		}
	})
}

// A trainer may begin its next episode elsewhere and never reset or delete the last one.
func TestAnEndedEpisodeFreesItsPlace(t *testing.T) {
	f, err := Load(written(t, map[string]string{
		"env.yaml":    "environments:\n  notes:\n    tools: [files/*]\n    tasks_file: tasks.jsonl\n    limits: {episodes: 1}\n",
		"tasks.jsonl": `{"id":"a","question":"a"}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{File: f, Calls: &halfDead{}, Catalog: pair{}, Log: slog.New(slog.DiscardHandler)})
	defer m.Close()
	env := f.Environments["notes"]
	for range 3 {
		ep, err := m.Begin(t.Context(), env, Begin{Task: env.tasks.byID["a"]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Begin(t.Context(), env, Begin{Task: env.tasks.byID["a"]}); schema.KindOf(err) != schema.KindUnavailable {
			t.Errorf("a second episode at the same time: %v", err)
		}
		if o, err := ep.Step(t.Context(), "finish", nil); err != nil || !o.Done {
			t.Fatalf("%+v, %v", o, err)
		}
		if _, err := ep.Step(t.Context(), "read", nil); schema.KindOf(err) != schema.KindConflict || ep.Last() == nil || !ep.Status().Done {
			t.Errorf("after its end: %v, %+v", err, ep.Status())
		}
	}
}
