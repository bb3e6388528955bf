package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// footprint is the set of resources of a process.
type footprint struct {
	Goroutines  int
	Descriptors int
	Processes   int
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// footprint measures the process of the door from outside. It closes the connections
// of the test first, so that only one is counted.
func (d *door) footprint(t testing.TB) footprint {
	t.Helper()
	d.http.CloseIdleConnections()
	found := goroutinesLine.FindSubmatch(d.get(t, "/metrics"))
	if found == nil {
		t.Fatal("/metrics has no go_goroutines")
	}
	goroutines, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	files, err := descriptors(d.pid())
	if err != nil {
		t.Fatal(err)
	}
	return footprint{goroutines, files, len(descendants(t, d.pid()))}
}

// most returns the maximum footprint of a number of measurements, because a few goroutines
// start and end with every announcement.
func (d *door) most(t testing.TB, looks int) footprint {
	t.Helper()
	var most footprint
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for range looks {
		now := d.footprint(t)
		most.Goroutines = max(most.Goroutines, now.Goroutines)
		most.Descriptors = max(most.Descriptors, now.Descriptors)
		most.Processes = max(most.Processes, now.Processes)
		<-tick.C
	}
	return most
}

func TestManyCallsAndSessionsLeakNothing(t *testing.T) {
	const calls, replacements, warmUp = 10_000, 100, 5
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"server": scripted(mcptest.Echo)}), env: []string{quickStop}})
	up.waitServers(t, 1, "server")
	restarted := 0
	replace := func() {
		t.Helper()
		old := up.server(t, "server").PID
		kill9(t, old)
		restarted++
		up.eventually(t, soon, "having another server process", func() error {
			s := up.server(t, "server")
			if !s.Connected || s.PID == old || s.PID == 0 || s.Workers[0].Restarts != restarted {
				return fmt.Errorf("the server is %q with pid %d after %d restarts: %s", s.State, s.PID, s.Workers[0].Restarts, s.Error)
			}
			return nil
		})
		// A session that has served a call is replaced without a pause the next time.
		if err := up.echo("server", "back"); err != nil {
			t.Fatal(err)
		}
	}
	load := func(n int) {
		t.Helper()
		runCalls(10, n, func(i int) error { return up.echo("server", fmt.Sprint("call ", i)) }).none(t, "calls")
	}
	load(calls / 20)
	for range warmUp {
		replace()
	}
	before := up.most(t, 50)
	if before.Processes < 2 || before.Descriptors < 5 || before.Goroutines < 5 {
		t.Fatalf("the footprint cannot be right: %+v", before)
	}
	load(calls)
	for range replacements {
		replace()
	}
	up.eventually(t, soon, "having no call under way", func() error {
		var list struct {
			Workers []struct {
				InFlight int `json:"in_flight"`
			} `json:"workers"`
		}
		up.read(t, "/workers", &list)
		if s := up.server(t, "server"); s.InFlight != 0 || len(list.Workers) != 1 || list.Workers[0].InFlight != 0 {
			return fmt.Errorf("the front door counts %d, the workers %+v", s.InFlight, list.Workers)
		}
		return nil
	})
	// Equal except for a few goroutines of the runtime: a leak would be a hundred times as large.
	const slack = 5
	up.eventually(t, soon, "holding what it held before", func() error {
		now := up.footprint(t)
		if now.Processes > before.Processes || now.Goroutines > before.Goroutines+slack || now.Descriptors > before.Descriptors+slack {
			return fmt.Errorf("it holds %+v, before it held %+v", now, before)
		}
		return nil
	})
}
