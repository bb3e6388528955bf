package episode

import (
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

// oneWorkerCatalog is a catalog with one worker that has the server "s" with the given transport.
type oneWorkerCatalog struct {
	oneTool
	transport string
}

func (h oneWorkerCatalog) Holders(schema.ServerID) []schema.Worker {
	return []schema.Worker{{ID: "w", Servers: []schema.Server{{ID: "s", Transport: h.transport, State: schema.StateInitialized}}}}
}

func TestSessionClockNeedsAServerThatSupportsIt(t *testing.T) {
	const clock = "2026-01-31T12:00:00Z"
	for transport, refused := range map[string]bool{"builtin": false, "native": false, "http": true, "sse": true} {
		e := &Environment{Isolation: IsolationSession, Clock: clock, name: "env"}
		if transport == "sse" {
			e.Clock, e.State.Seed = "", true
		}
		ep := &Episode{m: &Manager{o: Options{Catalog: oneWorkerCatalog{transport: transport}}}, env: e, key: "k"}
		if !refused {
			if _, err := ep.leaseOf(t.Context(), "s"); err != nil {
				t.Error(err)
			}
			continue
		}
		if _, err := ep.leaseOf(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "cannot be told the clock") {
			t.Errorf("%s: %v", transport, err)
		}
	}
}

func TestClockIsAcceptedOnlyWithSessionIsolation(t *testing.T) {
	for isolation, want := range map[string]string{"session": "", "shared": "does not count with isolation: shared"} {
		_, err := Load(written(t, map[string]string{"t": "{}\n", "env.yaml": "environments:\n  a:\n    tools: [x/*]\n    tasks_file: t\n    clock: 2026-01-31T12:00:00Z\n    isolation: " + isolation + "\n"}))
		if (err != nil) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", isolation, err)
		}
	}
}
