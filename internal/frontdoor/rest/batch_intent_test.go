package rest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// takesIntents returns what says whether NATS has room for intents.
func (f *fabric) takesIntents() func(approve bool) {
	f.t.Helper()
	js := bustest.JetStream(f.t, f.NATS.URL)
	intents, err := js.Stream(f.t.Context(), "callyard_intents")
	if err != nil {
		f.t.Fatal(err)
	}
	return func(approve bool) { // on any goroutine
		c := intents.CachedInfo().Config
		if c.MaxBytes = 1; approve {
			c.MaxBytes = -1
		}
		if _, err := js.UpdateStream(f.t.Context(), c); err != nil {
			f.t.Error(err)
		}
	}
}

// A worker refuses the call, and the intent of the attempt at another one finds no room:
// nothing has started, and nobody canceled anything.
func TestACallWhoseSecondIntentCannotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := openFabric(t, nil)
	other := frontdoortest.StartWorker(t, f.NATS.Connect(t, "worker-2"), "worker-2", script)
	f.WaitFor("the other worker", func() bool {
		return slices.ContainsFunc(f.api.o.Catalog.Workers(), func(w schema.Worker) bool { return w.ID == "worker-2" })
	})
	takeIntents := f.takesIntents()
	var once sync.Once
	for _, w := range []*frontdoortest.Worker{f.Worker, other} {
		w.Refuse(func() (full bool) {
			once.Do(func() {
				takeIntents(false)
				full = true
			})
			return full
		})
	}
	// Under a key it goes by itself, and not with a batch.
	a := f.do("POST", "/servers/demo/tools/echo", `{}`, "Content-Type", "application/json", "Prefer", "respond-async", "Idempotency-Key", "k")
	if a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	until(t, "an intent that is refused", func() bool { return strings.Contains(f.Logged.String(), "intents cannot be written") })
	takeIntents(true)
	id := strings.TrimPrefix(a.header.Get("Location"), "/calls/")
	var state string
	until(t, "the end of the call", func() bool {
		state = f.stateOfCall(id)
		return state != "queued" && state != "running"
	})
	if state != "succeeded" {
		t.Errorf("the call is %s", state)
	}
	seen := 0
	for _, w := range []*frontdoortest.Worker{f.Worker, other} {
		for _, c := range w.Calls() {
			if c.Tool == "echo" {
				seen++
			}
		}
	}
	if seen != 2 {
		t.Errorf("it was sent %d times, once to be refused and once to run is asked for", seen)
	}
}
