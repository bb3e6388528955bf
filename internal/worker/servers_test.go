package worker_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus"
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

func TestAddedServerIsReplacedByAnotherEntryOfItsName(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", true)
	defer stop(t, w)
	r, c := front(t, srv)
	await(t, c, "the worker", func() bool { return len(c.Workers()) == 1 })
	add := func(edit string) {
		t.Helper()
		command, args, env := mcptest.Command(mcptest.Echo)
		env["EDIT"] = edit
		entry, err := json.Marshal(map[string]any{"command": command, "args": args, "env": env})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Request(t.Context(), w.ID(), bus.MethodStart, "s", entry, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	running := func(old int) (pid int) {
		t.Helper()
		polltest.Until(t, "the server", func() bool {
			s := w.Report().Servers[0]
			pid = s.PID
			return s.State == schema.StateInitialized && s.Added && pid != old
		})
		return pid
	}
	add("1")
	first := running(0)
	add("1")
	if again := running(0); again != first {
		t.Errorf("the same entry replaced process %d by %d", first, again)
	}
	add("2")
	running(first)
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
