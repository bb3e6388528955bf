package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/mcptest"
)

// badServer is a misbehaving server, with the expected outcomes of its calls.
type badServer struct {
	mode string
	opts []mcptest.Option
	ends []int // statuses
}

func TestFaultyServersDoNotAffectCallsOfOthers(t *testing.T) {
	unknown, ok, broken := 504, 200, 502
	bad := map[string]badServer{
		"silent":     {mode: mcptest.Silent, ends: []int{503, broken}},
		"exits":      {mode: mcptest.Exit, ends: []int{503, broken}},
		"mute":       {mode: mcptest.MuteCalls, ends: []int{unknown}},
		"garbage":    {mode: mcptest.Garbage, ends: []int{ok}},
		"flood":      {mode: mcptest.Garbage, opts: []mcptest.Option{mcptest.Flood()}, ends: []int{ok, unknown, 503, broken}},
		"huge":       {mode: mcptest.Huge, ends: []int{broken}},
		"deep":       {mode: mcptest.Deep, ends: []int{ok, broken}},
		"wrong-id":   {mode: mcptest.WrongID, ends: []int{unknown}},
		"twice":      {mode: mcptest.DuplicateAnswers, ends: []int{ok}},
		"half":       {mode: mcptest.HalfLine, ends: []int{unknown}},
		"grandchild": {mode: mcptest.Grandchild, opts: []mcptest.Option{mcptest.PIDFile(filepath.Join(t.TempDir(), "pids"))}, ends: []int{ok}},
	}
	servers := map[string]entry{"good": scripted(mcptest.Echo)}
	for id, b := range bad {
		servers[id] = scripted(b.mode, b.opts...)
	}
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop, "CALLYARD_WORKER_START_TIMEOUT=2s"}})
	up.waitServers(t, 1, "good", "mute", "garbage", "huge", "deep", "wrong-id", "twice", "half", "grandchild")

	stop := make(chan struct{})
	var wait sync.WaitGroup
	endAll := sync.OnceFunc(func() { close(stop); wait.Wait() })
	defer endAll()
	var mu sync.Mutex
	seen := map[string]map[int]int{}
	for id := range bad {
		seen[id] = map[int]int{}
	}
	for id, b := range bad {
		wait.Go(func() {
			for n := 0; n == 0 || id != "huge" || n < 3; n++ { // a hundred megabytes, so three calls suffice
				a, err := up.tryCall(id, "echo", `{"text":"x"}`, "Callyard-Timeout-Ms: "+b.timeout())
				if err != nil {
					t.Errorf("calling %s: %v", id, err)
					return
				}
				mu.Lock()
				seen[id][a.status]++
				mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	good := runCalls(10, 2000, func(n int) error { return up.echo("good", fmt.Sprint("call ", n)) })
	good.none(t, "calls of the good server")
	// The good server is called until each bad one has been called.
	rest := startLoad(t, 2, func(lane, n int) error { return up.echo("good", fmt.Sprint(lane, " ", n)) })
	eventually(t, startWithin, "each bad server ends a call", func() error {
		mu.Lock()
		defer mu.Unlock()
		for id := range bad {
			if len(seen[id]) == 0 {
				return fmt.Errorf("no call of %s has ended", id)
			}
		}
		return nil
	})
	rest.more(t, 1)
	rest.end()
	rest.none(t, "calls of the good server")
	endAll()
	for id, b := range bad {
		for status, n := range seen[id] {
			if !contains(b.ends, status) {
				t.Errorf("%d calls of %s ended with %d, want %v", n, id, status, b.ends)
			}
		}
	}
	a := up.ask(t, "POST", toolPath("exits", "echo"), `{"text":"x"}`)
	if !strings.Contains(string(a.body), "exit") {
		t.Errorf("the refusal does not say that the server exits: %s", a.body)
	}
	if s := up.server(t, "exits"); s.Connected || !strings.Contains(s.StderrTail, mcptest.ExitText) {
		t.Errorf("what the server said at its end is not shown: %+v", s)
	}
	if s := up.server(t, "silent"); s.Connected || s.State == "initialized" {
		t.Errorf("a silent server is shown as %+v", s)
	}
}

// timeout is short only for servers whose calls may end by it.
func (b badServer) timeout() string {
	if contains(b.ends, http.StatusGatewayTimeout) {
		return "500"
	}
	return "60000"
}

func contains(list []int, n int) bool {
	for _, have := range list {
		if have == n {
			return true
		}
	}
	return false
}
