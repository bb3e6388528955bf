package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestAnotherFrontDoorGetsTheOutcomeAndFencesTheCall(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("s", mcptest.Echo))
	defer stop(t, w)
	owner, c := front(t, srv)
	heir, _ := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))
	file := filepath.Join(t.TempDir(), "effects")
	goOn := file + ".go"
	slow := &schema.Call{ID: schema.NewCallID(), Server: "s", Tool: "effect", Arguments: []byte(fmt.Sprintf(`{"path":%q,"id":"slow","after":%q}`, file, goOn)), Timeout: time.Minute, Durable: true}
	var res *schema.Result
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if res, err = owner.Do(context.Background(), slow); err != nil {
			t.Error(err)
		}
	})
	polltest.Until(t, "the call runs", func() bool {
		effects, err := mcptest.ReadEffects(file)
		return err == nil && effects["slow"] == 1
	})
	ctx := context.Background()
	later := echoCall("s", "later")
	later.Durable = true
	ask := func(ids ...schema.CallID) []dispatch.Outcome {
		t.Helper()
		outcomes, err := heir.Ask(ctx, w.ID(), ids, 0)
		if err != nil {
			t.Fatal(err)
		}
		return outcomes
	}
	if f := ask(slow.ID, later.ID); f[0].State != dispatch.OutcomeRunning || f[1].State != dispatch.OutcomeNever {
		t.Errorf("while it runs: %+v", f)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	// The owner gets its answer and may ask for it again: the answer is stored slightly after it
	// was sent.
	deadline := time.After(time.Minute)
	for f := ask(slow.ID)[0]; ; f = ask(slow.ID)[0] {
		if f.State == dispatch.OutcomeEnded {
			if f.Err != nil || string(f.Result.Body) != string(res.Body) || f.Result.Worker != w.ID() {
				t.Errorf("remembered %+v of %+v", f, res)
			}
			break
		}
		select {
		case <-deadline:
			t.Fatalf("it never ends: %+v", f)
		default:
		}
	}
	if _, err := owner.Do(ctx, later); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("the old owner sends what was said never to have started: %v", err)
	}
	if _, err := heir.Do(ctx, later); err != nil {
		t.Errorf("the new owner sends it: %v", err)
	}
	if _, err := heir.Ask(ctx, "worker_of_another_start", []schema.CallID{later.ID}, 0); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("a worker that is not there: %v", err)
	}
}
