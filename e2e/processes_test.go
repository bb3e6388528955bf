package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// fleet is a nats-server with front doors and workers.
type fleet struct {
	nats    *natsProcess
	doors   []*door
	workers []*workerProcess
}

// zoneConfig returns the configuration of a worker with a label.
func zoneConfig(zone string) string {
	return fmt.Sprintf("worker:\n  name: %s\n  labels:\n    zone: %s\n", zone, zone)
}

// startZones starts two front doors and two workers, one in each zone, over the
// streams in dir.
func startZones(t testing.TB, dir, servers string) *fleet {
	t.Helper()
	f := &fleet{nats: startNATS(t, dir)}
	for _, zone := range []string{"north", "south"} {
		f.workers = append(f.workers, startWorker(t, setup{nats: f.nats.url, servers: servers, config: zoneConfig(zone)}))
	}
	for range 2 {
		f.doors = append(f.doors, startFrontDoor(t, setup{nats: f.nats.url, env: []string{quickStop}}))
	}
	return f
}

// stop stops all processes gracefully, the broker last.
func (f *fleet) stop(t testing.TB) {
	t.Helper()
	for _, d := range f.doors {
		d.stop(t)
	}
	for _, w := range f.workers {
		w.stop(t)
	}
	f.nats.signal(t, 15)
	f.nats.wait(t, stopWithin) // its exit code is not ours to check
}

func TestCallsCrossBetweenProcessesAndLabelsPlaceServers(t *testing.T) {
	north, south := scripted(mcptest.Echo), scripted(mcptest.Echo, mcptest.Modern())
	north.Labels, south.Labels = map[string]string{"zone": "north"}, map[string]string{"zone": "south"}
	servers := serversFile(t, map[string]entry{"everywhere": scripted(mcptest.Echo), "only-north": north, "only-south": south})
	f := startZones(t, t.TempDir(), servers)

	for _, d := range f.doors {
		d.waitServers(t, 2, "everywhere")
		d.waitServers(t, 1, "only-north", "only-south")
		for id, want := range map[string]string{"only-north": f.workers[0].id, "only-south": f.workers[1].id} {
			if got := d.server(t, id).Workers[0].ID; got != want {
				t.Errorf("%s is on %s, want it on %s", id, got, want)
			}
			a, err := d.tryCall(id, "sleep", `{"ms":1}`)
			if err != nil || a.status != 200 || a.header.Get("Callyard-Worker") != want {
				t.Errorf("a call of %s: %d by %s, %v; want it by %s", id, a.status, a.header.Get("Callyard-Worker"), err, want)
			}
		}
	}
	// Each front door uses both workers of a server that is on both.
	for _, d := range f.doors {
		ran := make(chan string, 1000)
		l := runCalls(10, 100, func(int) error {
			a, err := d.tryCall("everywhere", "sleep", `{"ms":5}`)
			if err == nil && a.status != 200 {
				err = &refusal{a}
			}
			ran <- a.header.Get("Callyard-Worker")
			return err
		})
		l.none(t, "calls of a server on two workers")
		close(ran)
		seen := map[string]bool{}
		for id := range ran {
			seen[id] = true
		}
		want := []string{f.workers[0].id, f.workers[1].id}
		slices.Sort(want)
		if got := keys(seen); !slices.Equal(got, want) {
			t.Errorf("the calls ran on %v, want %v", got, want)
		}
	}
	var list struct {
		Workers []struct {
			ID     string            `json:"id"`
			Name   string            `json:"name"`
			PID    int               `json:"pid"`
			Labels map[string]string `json:"labels"`
		} `json:"workers"`
	}
	f.doors[0].read(t, "/workers", &list)
	if len(list.Workers) != 2 {
		t.Fatalf("GET /workers has %d workers: %+v", len(list.Workers), list)
	}
	for _, w := range list.Workers {
		if w.Labels["zone"] != w.Name || !strings.HasPrefix(w.ID, w.Name) || !alive(w.PID) {
			t.Errorf("GET /workers shows %+v", w)
		}
	}
}

func TestDisabledToolStaysDisabledEverywhereAndAfterRestarts(t *testing.T) {
	dir := t.TempDir()
	servers := serversFile(t, map[string]entry{"tools": scripted(mcptest.Echo)})
	f := startZones(t, dir, servers)
	for _, d := range f.doors {
		d.waitServers(t, 2, "tools")
	}
	if a := f.doors[0].ask(t, "PATCH", toolPath("tools", "crash"), `{"enabled":false,"reason":"it ends the server"}`); a.status != 200 {
		t.Fatalf("switching off answers %d: %s", a.status, a.body)
	}
	isOff := func(d *door) {
		t.Helper()
		eventually(t, soon, "the tool is off", func() error {
			a := d.ask(t, "GET", "/tools?server=tools", "")
			var list struct {
				Tools []struct {
					Name    string `json:"name"`
					Enabled bool   `json:"enabled"`
					Reason  string `json:"reason"`
				} `json:"tools"`
			}
			decode(t, a.body, &list)
			for _, tool := range list.Tools {
				if tool.Name == "crash" && (tool.Enabled || tool.Reason != "it ends the server") {
					return fmt.Errorf("it is shown as %+v", tool)
				}
			}
			return nil
		})
		a := d.ask(t, "POST", toolPath("tools", "crash"), `{}`)
		if p := a.problem(t, 403, "tool-disabled"); !strings.Contains(p.Detail, "it ends the server") {
			t.Errorf("the refusal hides the reason: %s", p.Detail)
		}
		if err := d.echo("tools", "others go on"); err != nil {
			t.Error(err)
		}
	}
	isOff(f.doors[1])
	isOff(f.doors[0])
	f.stop(t)

	f = startZones(t, dir, servers)
	for _, d := range f.doors {
		d.waitServers(t, 2, "tools")
		isOff(d)
	}
	if a := f.doors[1].ask(t, "PATCH", toolPath("tools", "crash"), `{"enabled":true}`); a.status != 200 {
		t.Fatalf("switching on answers %d: %s", a.status, a.body)
	}
	eventually(t, soon, "the tool is on at the other front door", func() error {
		// The call crashes its server, as intended.
		if a := f.doors[0].ask(t, "POST", toolPath("tools", "crash"), `{}`); a.status == 403 {
			return &refusal{a}
		}
		return nil
	})
}
