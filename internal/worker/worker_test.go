package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/telemetry"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper(sandbox.Sweep, worker.SweepEpisodes))
	}
	mcptest.MaybeServe()
	goleak.VerifyTestMain(m)
}

func entry(id, mode string, opts ...mcptest.Option) config.ServerEntry {
	command, args, env := mcptest.Command(mode, opts...)
	return config.ServerEntry{ID: id, Type: config.TypeStdio, Command: command, Args: args, Env: env}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, srv *bustest.Server, name string, api bool, entries ...config.ServerEntry) *worker.Worker {
	t.Helper()
	cfg := settings.WorkerDefaults()
	cfg.Name = name
	served, err := worker.Serve(&cfg, entries)
	if err != nil {
		t.Fatal(err)
	}
	o := worker.Options{Name: name, Version: "test", Conn: srv.Connect(t, name), Servers: served, Metrics: telemetry.NewMetrics(), Log: quiet()}
	if api {
		o.Parse = func(id schema.ServerID, entry json.RawMessage) (worker.Served, error) {
			return worker.ParseAdded(&cfg, id, entry)
		}
	}
	w, err := worker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func stop(t *testing.T, w *worker.Worker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func front(t *testing.T, srv *bustest.Server) (*dispatch.Router, *catalog.Catalog) {
	t.Helper()
	conn := srv.Connect(t, "front")
	id := schema.NewID("router")
	r, err := dispatch.New(conn, id, dispatch.Options{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := catalog.Open(ctx, conn, r, id, catalog.Finding{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = r.Close()
	})
	return r, c
}

// await waits until the condition holds after a change of the catalog.
func await(t *testing.T, c *catalog.Catalog, what string, ok func() bool) {
	t.Helper()
	changes, cancel := c.Changes()
	defer cancel()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-changes:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func hasTools(c *catalog.Catalog, id string) func() bool {
	return func() bool {
		tools, err := c.Tools(schema.ServerID(id))
		s, _ := c.Server(schema.ServerID(id))
		return err == nil && len(tools) > 0 && s.Connected
	}
}

func echoCall(server, text string) *schema.Call {
	return &schema.Call{ID: schema.NewCallID(), Server: schema.ServerID(server), Tool: "echo", Arguments: []byte(fmt.Sprintf(`{"text":%q}`, text)), Timeout: 10 * time.Second}
}

func TestCallRunsOnARealServerOfTheCatalog(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("echo server", mcptest.Echo), entry("modern", mcptest.Echo, mcptest.Modern()))
	defer stop(t, w)
	r, c := front(t, srv)
	for _, id := range []string{"echo server", "modern"} {
		await(t, c, id+" is ready", hasTools(c, id))
		res, err := r.Do(context.Background(), echoCall(id, "héllo\n"))
		if err != nil || res.ToolError || res.Worker != w.ID() {
			t.Fatalf("%s: %+v, %v", id, res, err)
		}
		var body struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(res.Body, &body); err != nil || len(body.Content) == 0 {
			t.Fatalf("%s answered %s", id, res.Body)
		}
	}
}

func TestWorkerSendsLastAnswersAfterItsGracePeriod(t *testing.T) {
	srv := bustest.Start(t)
	w := start(t, srv, "w", false, entry("s", mcptest.Echo))
	_, c := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Stop(ended); err != nil {
		t.Errorf("stopping with a grace that has ended: %v", err)
	}
}

func TestStoppingWorkerAcceptsCallsUntilRoutersAreNotified(t *testing.T) {
	here, there := bustest.StartPair(t)
	w := start(t, here, "w", false, entry("s", mcptest.Echo))
	conn := there.Connect(t, "front")
	r, err := dispatch.New(conn, schema.NewID("router"), dispatch.Options{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	ready, stops := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	watch, err := conn.WatchPresence(func(is *schema.Worker) {
		switch {
		case is.Draining: // this router learns of it too late
			last.Do(func() { close(stops) })
		case len(is.Servers) == 1 && is.Servers[0].State == schema.StateInitialized:
			r.SetWorker(is)
			first.Do(func() { close(ready) })
		}
	}, func(*schema.FrontDoor) {})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	<-ready
	if _, err := r.Do(t.Context(), echoCall("s", "before")); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { stop(t, w) })
	<-stops
	if _, err := r.Do(t.Context(), echoCall("s", "on its way")); err != nil {
		t.Errorf("a call that was sent before its router heard that the worker stops: %v", err)
	}
}

func TestStoppingWorkerFinishesItsCalls(t *testing.T) {
	srv := bustest.Start(t)
	one := start(t, srv, "one", false, entry("s", mcptest.Echo))
	r, c := front(t, srv)
	await(t, c, "one is ready", hasTools(c, "s"))
	slow := &schema.Call{ID: schema.NewCallID(), Server: "s", Tool: "sleep", Arguments: []byte(`{"ms":700}`), Timeout: 10 * time.Second}
	errs := make(chan error, 1)
	running := make(chan struct{})
	var once sync.Once
	slow.Progress = func([]byte) { once.Do(func() { close(running) }) }
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := r.Do(context.Background(), slow)
		errs <- err
	})
	<-running
	two := start(t, srv, "two", false, entry("s", mcptest.Echo))
	defer stop(t, two)
	await(t, c, "two is ready", func() bool {
		s, _ := c.Server("s")
		n := 0
		for _, w := range s.Workers {
			if w.Report.State == schema.StateInitialized {
				n++
			}
		}
		return n == 2
	})
	load, endLoad := context.WithCancel(context.Background())
	for range 8 {
		wg.Go(func() {
			for load.Err() == nil {
				if _, err := r.Do(context.Background(), echoCall("s", "x")); err != nil {
					t.Errorf("a call failed during the drain: %v", err)
				}
			}
		})
	}
	stop(t, one)
	if err := <-errs; err != nil {
		t.Errorf("the running call ended with %v", err)
	}
	endLoad()
	wg.Wait()
}

func TestServersCanBeAddedAndRemovedWhereTheOperatorAllowsIt(t *testing.T) {
	srv := bustest.Start(t)
	closed := start(t, srv, "closed", false, entry("s", mcptest.Echo))
	defer stop(t, closed)
	_, c := front(t, srv)
	await(t, c, "s is ready", hasTools(c, "s"))
	command, args, env := mcptest.Command(mcptest.Echo)
	def, err := json.Marshal(map[string]any{"command": command, "args": args, "env": env})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := c.Operator().Add(ctx, "added", "me", def); schema.KindOf(err) != schema.KindUnavailable {
		t.Fatalf("no worker takes servers, yet: %v", err)
	}
	open := start(t, srv, "open", true, entry("s", mcptest.Echo))
	defer stop(t, open)
	await(t, c, "open is seen", func() bool { return len(c.Workers()) == 2 })
	s, err := c.Operator().Add(ctx, "added", "me", def)
	if err != nil || !s.Connected {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := c.Operator().Add(ctx, "added", "me", def); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("twice: %v", err)
	}
	// A worker that starts later gets it too.
	later := start(t, srv, "later", true)
	defer stop(t, later)
	await(t, c, "later holds it", func() bool {
		s, _ := c.Server("added")
		return len(s.Workers) == 2
	})
	if err := c.Operator().Remove(ctx, "s"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("a server of the servers file was removed: %v", err)
	}
	if err := c.Operator().Remove(ctx, "added"); err != nil {
		t.Fatal(err)
	}
	await(t, c, "added is gone", func() bool {
		_, err := c.Server("added")
		return schema.KindOf(err) == schema.KindNotFound
	})
	if _, err := c.Operator().Add(ctx, "bad", "me", []byte(`{"command":"/does/not/exist"}`)); err == nil {
		t.Error("a server that cannot start must be an error")
	}
	if _, err := c.Operator().Add(ctx, "typo", "me", []byte(`{"command":"x","riskLvl":3}`)); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := c.Operator().Add(ctx, "risky", "me", []byte(`{"command":"x","riskLevel":3}`)); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Errorf("a risk that cannot be honoured: %v", err)
	}
}

func TestUnenforceableRiskLevelIsRefused(t *testing.T) {
	cfg := settings.WorkerDefaults()
	for _, level := range []int{3} {
		e := entry("s", mcptest.Echo)
		e.Risk = level
		if _, err := worker.Serve(&cfg, []config.ServerEntry{e}); err == nil || len(err.Error()) < 60 {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

func TestAServerGoesOnlyToWorkersThatCarryItsLabels(t *testing.T) {
	cfg := settings.WorkerDefaults()
	cfg.Labels = map[string]string{"zone": "a", "gpu": "yes"}
	want := map[string]map[string]string{"plain": nil, "match": {"zone": "a"}, "both": {"zone": "a", "gpu": "yes"}, "other": {"zone": "b"}, "missing": {"disk": "fast"}}
	var entries []config.ServerEntry
	for id, labels := range want {
		e := entry(id, mcptest.Echo)
		e.Labels = labels
		entries = append(entries, e)
	}
	served, err := worker.Serve(&cfg, entries)
	if err != nil {
		t.Fatal(err)
	}
	got := map[schema.ServerID]bool{}
	for _, s := range served {
		got[s.Session.Spec.ID] = true
	}
	if len(got) != 3 || got["other"] || got["missing"] {
		t.Errorf("took %v", got)
	}
}
