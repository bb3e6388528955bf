package worker_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// applied applies the entries to the worker.
func applied(t *testing.T, w *worker.Worker, entries ...config.ServerEntry) {
	t.Helper()
	cfg := settings.WorkerDefaults()
	served, err := worker.Serve(&cfg, entries)
	if err != nil {
		t.Fatal(err)
	}
	w.Apply(served)
}

func TestAChangedServerIsReplacedWithoutFailingCalls(t *testing.T) {
	srv := bustest.Start(t)
	version := func(n int) config.ServerEntry {
		e := entry("s", mcptest.Echo)
		e.Env["EDIT"] = strconv.Itoa(n)
		return e
	}
	w := start(t, srv, "w", false, version(0))
	defer stop(t, w)
	r, c := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))

	var failed, done atomic.Int64
	enough := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				if res, err := r.Do(context.Background(), echoCall("s", "x")); err != nil || res.ToolError {
					failed.Add(1)
					t.Errorf("a call failed: %v", err)
					return
				}
				done.Add(1)
			}
		})
	}
	for n := 1; n <= 20; n++ {
		s, _ := c.Server("s")
		pid := s.PID
		applied(t, w, version(n), entry("other"+strconv.Itoa(n), mcptest.Echo))
		await(t, c, "the changed server", func() bool {
			s, err := c.Server("s")
			return err == nil && s.PID != pid && s.PID != 0
		})
		if failed.Load() > 0 {
			break
		}
	}
	close(enough)
	callers.Wait()
	if done.Load() == 0 {
		t.Error("nothing was called meanwhile")
	}
	await(t, c, "the removed servers to go", func() bool {
		for _, worker := range c.Workers() {
			if len(worker.Servers) != 2 {
				return false
			}
		}
		return true
	})
}

func TestFailedEntryChangeKeepsTheRunningServer(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("s", mcptest.Echo))
	defer stop(t, w)
	r, c := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))
	applied(t, w, entry("s", mcptest.Exit))
	changes, cancel := c.Changes()
	defer cancel()
	for len(w.Pending()) == 0 {
		if res, err := r.Do(context.Background(), echoCall("s", "x")); err != nil || res.ToolError {
			t.Fatalf("the old server does not go on: %v", err)
		}
		select {
		case <-changes:
		default:
		}
	}
	if p := w.Pending(); len(p) != 1 || !strings.Contains(p[0], "continues with its previous entry") {
		t.Errorf("%q", p)
	}
	applied(t, w, entry("s", mcptest.Echo)) // reverted
	if p := w.Pending(); len(p) != 0 {
		t.Errorf("%q", p)
	}
	if res, err := r.Do(context.Background(), echoCall("s", "x")); err != nil || res.ToolError {
		t.Errorf("%v", err)
	}
}

func TestServerRestartAndRaisedRiskTakeEffectAtOnce(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("s", mcptest.Echo))
	defer stop(t, w)
	_, c := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))
	before, _ := c.Server("s")
	if err := c.Operator().Restart(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
	await(t, c, "another process", func() bool {
		s, _ := c.Server("s")
		return s.PID != 0 && s.PID != before.PID && s.Connected
	})
	if err := c.Operator().Restart(context.Background(), "none"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an unknown server: %v", err)
	}
	e := entry("s", mcptest.Echo)
	e.Risk = 2
	applied(t, w, e)
	if s := w.Report().Servers[0]; s.Risk != 2 {
		t.Errorf("the old level is in force: %+v", s)
	}
}
