package rolling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// startSingle starts one NATS server and returns its URL.
func startSingle(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	p := proc.Start(t, proc.Program{Path: programs.test + "/nats-server", Args: []string{"-a", "127.0.0.1", "-p", "-1", "-js", "-sd", dir}})
	at := p.Says(t, `Listening for client connections on (127\.0\.0\.1:\d+)`)[1]
	p.Says(t, `Server is ready`)
	return "nats://" + at
}

// The two releases differ in the version of the bus, which is the largest possible
// difference. Neither decodes messages of the other, and waiting calls are not lost.
func TestIncompatibleReleasesIgnoreEachOther(t *testing.T) {
	t.Parallel()
	now, next := bin(t, programs.now), bin(t, programs.next)
	for _, c := range []struct{ name, door, worker, other string }{
		{"an old front door and a new worker", now, next, now},
		{"a new front door and an old worker", next, now, next},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newProcessFiles(t, startSingle(t), "")
			h.replicas = 1
			ports := porttest.Ports(t, 3)
			worker := h.role(t, program{name: "worker", from: c.worker, port: ports[0]})
			worker.up(t)
			// A worker that stands still for some seconds counts as gone; calls wait for its return.
			door := h.role(t, program{name: "frontdoor", from: c.door, port: ports[1], env: []string{"CALLYARD_FRONT_DOOR_WORKER_WAIT=10s"}})
			door.up(t)
			door.Eventually(t, proc.StartWithin, "saying why it does not use the worker", func() error {
				a, err := send(door.http, http.MethodGet, door.url+"/servers/"+plainServer, "")
				if err == nil && !strings.Contains(string(a.body), "upgrade the older one") {
					err = a
				}
				return err
			})
			// A synchronous caller is asked to try again, and a durable call waits.
			call := func(id string) string {
				return fmt.Sprintf(`{"server":%q,"tool":"effect","arguments":{"path":%q,"id":%q}}`, plainServer, h.effects, id)
			}
			a, err := send(door.http, http.MethodPost, door.url+"/calls", call("waits"))
			if err != nil || a.status != http.StatusServiceUnavailable && a.status != http.StatusNotFound || a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
				t.Fatalf("a call that nobody can run: %v %v", a, err)
			}
			if effects, err := mcptest.ReadEffects(h.effects); err != nil || len(effects) != 0 {
				t.Errorf("it ran: %v, %v", effects, err)
			}
			// With an additional worker of its own version, every call runs.
			right := h.role(t, program{name: "worker", from: c.other, port: ports[2]})
			right.up(t)
			sees(t, door, 1)
			for n := range 20 {
				if a, err := send(door.http, http.MethodPost, door.url+"/calls", call(fmt.Sprint("goes ", n))); err != nil || a.status != http.StatusOK {
					t.Fatalf("call %d beside a worker of another version: %v %v", n, a, err)
				}
			}
			// A call that is stored while that worker is away is parked, and runs once.
			right.Stop(t)
			door.Eventually(t, proc.StartWithin, "noticing that the worker is gone", func() error {
				a, err := send(door.http, http.MethodGet, door.url+"/servers/"+plainServer, "")
				if err == nil && strings.Contains(string(a.body), `"initialized"`) {
					err = a
				}
				return err
			})
			a, err = send(door.http, http.MethodPost, door.url+"/calls", call("parked"), "Prefer: respond-async")
			var parked struct {
				ID string `json:"id"`
			}
			if err != nil || a.status != http.StatusAccepted {
				t.Fatalf("a stored call is not taken: %v %v", a, err)
			}
			if parked.ID = a.header.Get("Location"); parked.ID == "" {
				t.Fatalf("no location: %v", a)
			}
			right.up(t)
			door.Eventually(t, patience, "running what was parked", func() error {
				a, err := send(door.http, http.MethodGet, door.url+parked.ID+"?wait=5", "")
				if err != nil {
					return err
				}
				var s struct {
					State string `json:"state"`
				}
				if json.Unmarshal(a.body, &s) != nil || s.State != "succeeded" {
					return a
				}
				return nil
			})
			effects, err := mcptest.ReadEffects(h.effects)
			if err != nil || effects["parked"] != 1 || effects["waits"] != 0 || len(effects) != 21 {
				t.Errorf("the effects are %v, %v", effects, err)
			}
		})
	}
}
