package worker_test

import (
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// Cancellations arrive on another subscription than calls.
func TestACancellationThatArrivesBeforeItsCallStopsTheCall(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("s", mcptest.Echo))
	t.Cleanup(func() { stop(t, w) })
	router, cat := front(t, srv)
	await(t, cat, "the server", hasTools(cat, "s"))
	for seq := range uint64(20_000) { // of calls that have ended
		w.Cancel(seq + 100)
	}
	w.Cancel(1)
	w.Cancel(1)
	for seq, want := range map[uint64]bus.OutcomeState{1: bus.OutcomeNever, 2: bus.OutcomeEnded} {
		id := schema.NewCallID()
		w.Call(&bus.CallFrame{Seq: seq, ID: id, Server: "s", Tool: "echo", Payload: []byte(`{"text":"x"}`), Budget: 10 * time.Second, Keep: true}, "somebody.")
		var got bus.OutcomeState
		polltest.Until(t, "the call ends", func() bool {
			outcomes, err := router.Ask(t.Context(), w.ID(), []schema.CallID{id}, 0)
			if err != nil {
				t.Fatal(err)
			}
			got = outcomes[0].State
			return got != bus.OutcomeRunning
		})
		if got != want {
			t.Errorf("call %d is %s, want %s", seq, got, want)
		}
	}
}
