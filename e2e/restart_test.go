package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/callyard/callyard/e2e/proc"
	"github.com/callyard/callyard/internal/mcptest"
)

// callOver makes a call at a ready front door.
func callOver(b *proc.Balancer, c *http.Client, server, tool, arguments string) error {
	url := b.Pick()
	if url == "" {
		return errors.New("no front door is ready")
	}
	a, err := send(c, url, "POST", toolPath(server, tool), arguments)
	if err == nil && a.status != http.StatusOK {
		err = &refusal{a}
	}
	if err != nil {
		return fmt.Errorf("%s of %s at %s: %w", tool, server, url, err)
	}
	return nil
}

func TestARollingRestartOfEveryProcessFailsNoCall(t *testing.T) {
	raced, err := programs.race()
	if err != nil {
		t.Fatal(err)
	}
	nats := startNATS(t, t.TempDir())
	// Nothing here is safe to repeat: the annotations of the server are not trusted.
	servers := serversFile(t, map[string]entry{"steady": scripted(mcptest.Echo)})
	worker := setup{nats: nats.url, servers: servers, bin: raced}
	// The balancer has much more time to notice a stop than it needs, because it may stand still
	// on a busy machine.
	frontDoor := setup{nats: nats.url, bin: raced, env: []string{"CALLYARD_FRONT_DOOR_DRAIN_DELAY=10s"}}
	workers := []*workerProcess{startWorker(t, worker), startWorker(t, worker)}
	doors := []*door{startFrontDoor(t, frontDoor), startFrontDoor(t, frontDoor)}
	for _, d := range doors {
		d.waitServers(t, 2, "steady")
	}

	c := client(t)
	b := proc.StartBalancer(t, c, doors[0].url, doors[1].url)
	l := startLoad(t, 10, func(lane, n int) error {
		if lane%2 == 0 { // a stop hits these in progress
			return callOver(b, c, "steady", "sleep", `{"ms":400}`)
		}
		return callOver(b, c, "steady", "echo", fmt.Sprintf(`{"text":"%d %d"}`, lane, n))
	})
	calm := func(what string) {
		t.Helper()
		l.more(t, 50)
		if l.failed.Load() > 0 {
			t.Fatalf("after %s %d of %d calls have failed: %v", what, l.failed.Load(), l.calls.Load(), l.errors())
		}
	}
	calm("the start")
	for i := range workers {
		workers[i].stop(t)
		calm(fmt.Sprintf("the stop of worker %d", i))
		workers[i] = startWorker(t, worker)
		for _, d := range doors {
			d.waitServers(t, 2, "steady")
		}
		calm(fmt.Sprintf("the restart of worker %d", i))
	}
	for i, d := range doors {
		d.stop(t)
		calm(fmt.Sprintf("the stop of front door %d", i))
		again := frontDoor
		again.listen = d.url[len("http://"):]
		doors[i] = startFrontDoor(t, again)
		eventually(t, soon, "using the new front door", func() error { return b.Uses(d.url) })
		calm(fmt.Sprintf("the restart of front door %d", i))
	}
	l.end()
	l.none(t, "calls during a rolling restart")
	all := []*process{workers[0].process, workers[1].process, doors[0].process, doors[1].process}
	for _, p := range all {
		p.signal(t, syscall.SIGTERM)
	}
	for _, p := range all {
		if code := p.wait(t, stopWithin); code != 0 {
			t.Errorf("%s ends with code %d after SIGTERM", p.Name, code)
		}
	}
}
