package rest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/frontdoor/frontdoortest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// takesIntents returns a function that sets whether NATS has space for intents.
func (f *fabric) takesIntents() func(approve bool) {
	f.t.Helper()
	js := bustest.JetStream(f.t, f.NATS.URL)
	intents, err := js.Stream(f.t.Context(), "callyard_intents")
	if err != nil {
		f.t.Fatal(err)
	}
	return func(approve bool) { // may be called on any goroutine
		c := intents.CachedInfo().Config
		if c.MaxBytes = 1; approve {
			c.MaxBytes = -1
		}
		if _, err := js.UpdateStream(f.t.Context(), c); err != nil {
			f.t.Error(err)
		}
	}
}

// A worker refuses the call, and the intent of the attempt at another worker cannot be stored.
// Nothing has started, and the call was not canceled.
func TestCallIsRetriedIfItsSecondIntentCannotBeWritten(t *testing.T) {
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
	// A call with a key is sent alone, not in a batch.
	a := f.do("POST", "/servers/demo/tools/echo", `{}`, "Content-Type", "application/json", "Prefer", "respond-async", "Idempotency-Key", "k")
	if a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	polltest.Until(t, "an intent that is refused", func() bool { return strings.Contains(f.Logged.String(), "intents cannot be written") })
	takeIntents(true)
	id := strings.TrimPrefix(a.header.Get("Location"), "/calls/")
	var state string
	polltest.Until(t, "the end of the call", func() bool {
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
