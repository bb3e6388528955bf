package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// balancer spreads calls over front doors the way a load balancer does: it looks
// at /readyz every so often and uses those that are ready.
type balancer struct {
	client *http.Client
	urls   []string
	next   atomic.Int64
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	ready []string
}

// lookEvery is well below the second for which a front door that is about to
// stop says so.
const lookEvery = 100 * time.Millisecond

func startBalancer(t testing.TB, urls ...string) *balancer {
	ctx, stop := context.WithCancel(context.Background())
	b := &balancer{client: client(t), urls: urls, stop: stop}
	b.look()
	b.wait.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.look()
			}
		}
	})
	t.Cleanup(func() {
		stop()
		b.wait.Wait()
	})
	return b
}

func (b *balancer) look() {
	var ready []string
	for _, url := range b.urls {
		if a, err := send(b.client, url, "GET", "/readyz", ""); err == nil && a.status == http.StatusOK {
			ready = append(ready, url)
		}
	}
	b.mu.Lock()
	b.ready = ready
	b.mu.Unlock()
}

// uses says whether the balancer takes the front door for ready.
func (b *balancer) uses(url string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ready := range b.ready {
		if ready == url {
			return true
		}
	}
	return false
}

func (b *balancer) call(server, tool, arguments string) error {
	b.mu.Lock()
	ready := b.ready
	b.mu.Unlock()
	if len(ready) == 0 {
		return errors.New("no front door is ready")
	}
	url := ready[int(b.next.Add(1))%len(ready)]
	a, err := send(b.client, url, "POST", toolPath(server, tool), arguments)
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
	// Nothing here may be repeated: the annotations of the server do not count.
	servers := serversFile(t, map[string]entry{"steady": scripted(mcptest.Echo)})
	worker := setup{nats: nats.url, servers: servers, bin: raced}
	frontDoor := setup{nats: nats.url, bin: raced}
	workers := []*workerProcess{startWorker(t, worker), startWorker(t, worker)}
	doors := []*door{startFrontDoor(t, frontDoor), startFrontDoor(t, frontDoor)}
	for _, d := range doors {
		d.waitServers(t, 2, "steady")
	}

	b := startBalancer(t, doors[0].url, doors[1].url)
	l := startLoad(t, 10, func(lane, n int) error {
		if lane%2 == 0 { // a stop meets these in the middle
			return b.call("steady", "sleep", `{"ms":400}`)
		}
		return b.call("steady", "echo", fmt.Sprintf(`{"text":"%d %d"}`, lane, n))
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
		eventually(t, soon, "the balancer uses the new front door", func() error {
			if !b.uses(d.url) {
				return errors.New("it does not")
			}
			return nil
		})
		calm(fmt.Sprintf("the restart of front door %d", i))
	}
	l.end()
	l.none(t, "calls during a rolling restart")
	for _, p := range []*process{workers[0].process, workers[1].process, doors[0].process, doors[1].process} {
		p.stop(t)
	}
}
