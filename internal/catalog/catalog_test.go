package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/dispatch"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/servertable"
	"github.com/callyard/callyard/pkg/bus"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// announcingWorker is a test worker that announces given servers and serves their definitions.
type announcingWorker struct {
	t         *testing.T
	conn      *bus.Conn
	l         *bus.Listener
	ready     chan struct{}
	defs      map[schema.ServerID]*schema.Definitions
	described atomic.Int64
	hold      chan struct{} // if set, requests for definitions block until it is closed
	mu        sync.Mutex
	me        schema.Worker
}

// heartbeat announces the worker, as a real one does, on each router's hello and every second until
// the test ends.
func (h *announcingWorker) heartbeat() {
	hello := make(chan struct{}, 1)
	w, err := h.conn.WatchHello(func() { hello <- struct{}{} })
	if err != nil {
		h.t.Fatal(err)
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(bus.AnnounceEvery)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-hello:
			case <-tick.C:
			}
			h.announce()
		}
	}()
	h.t.Cleanup(func() {
		w.Stop()
		close(end)
		<-done
	})
	h.announce()
}

// change changes the announcement and publishes it.
func (h *announcingWorker) change(f func(*schema.Worker)) {
	h.mu.Lock()
	f(&h.me)
	h.mu.Unlock()
	h.announce()
}

func newAnnouncingWorker(t *testing.T, srv *bustest.Server, id schema.WorkerID, defs map[schema.ServerID]*schema.Definitions) *announcingWorker {
	t.Helper()
	h := &announcingWorker{t: t, conn: srv.Connect(t, string(id)), ready: make(chan struct{}), defs: defs, me: schema.Worker{ID: id, Started: time.Now()}}
	var err error
	if h.l, err = h.conn.Listen(id, h); err != nil {
		t.Fatal(err)
	}
	close(h.ready)
	t.Cleanup(h.l.Close)
	for server, d := range defs {
		h.me.Servers = append(h.me.Servers, schema.Server{ID: server, State: schema.StateInitialized, Slots: 4, Digest: d.Digest()})
	}
	return h
}

func (h *announcingWorker) announce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.conn.Announce(&h.me); err != nil {
		h.t.Error(err)
	}
}

// announceUntil announces the worker until ok holds, then stops. On a busy machine, the effect of an
// announcement may be delayed.
func (h *announcingWorker) announceUntil(c *Catalog, what string, ok func() bool) {
	h.t.Helper()
	changes, cancel := c.Changes()
	defer cancel()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			h.t.Fatalf("never: %s", what)
		}
		h.announce()
		select {
		case <-changes:
		case <-time.After(bus.AnnounceEvery):
		}
	}
}

func (h *announcingWorker) Call(f *bus.CallFrame, to bus.ReplyTo) {
	<-h.ready
	if f.Method != bus.MethodDescribe {
		h.l.Result(to, f.Seq, &schema.Result{Body: f.Payload})
		return
	}
	h.described.Add(1)
	if h.hold != nil {
		<-h.hold
	}
	h.mu.Lock()
	d := h.defs[f.Server]
	h.mu.Unlock()
	answer := bus.Description{Digest: d.Digest(), Definitions: d}
	h.l.Result(to, f.Seq, &schema.Result{Body: answer.Encode()})
}
func (*announcingWorker) Cancel(uint64) {}

func tools(defs ...string) *schema.Definitions {
	d := &schema.Definitions{Tools: []json.RawMessage{}}
	for _, def := range defs {
		d.Tools = append(d.Tools, json.RawMessage(def))
	}
	return d
}

func open(t *testing.T, srv *bustest.Server) *Catalog {
	t.Helper()
	conn := srv.Connect(t, "front")
	id := schema.NewID("router")
	log := slog.New(slog.DiscardHandler)
	r, err := dispatch.New(conn, id, dispatch.Options{}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := Open(ctx, conn, r, id, Finding{}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = r.Close()
	})
	return c
}

func await(t *testing.T, c *Catalog, what string, ok func() bool) {
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

func has(c *Catalog, server schema.ServerID, tool string) func() bool {
	return func() bool {
		_, err := c.Tool(server, tool)
		return err == nil
	}
}

func TestAServerIsAwaitedUntilItsToolsAreKnown(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	h.hold = make(chan struct{})
	h.heartbeat() // it must not be taken for dead
	polltest.Until(t, "the server is asked for its tools", func() bool { return h.described.Load() > 0 })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := c.Operator().Await(over, "s"); err == nil {
		t.Errorf("%+v is said to be ready, but its tools are not known", s)
	}
	close(h.hold)
	in, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if s, err := c.Operator().Await(in, "s"); err != nil || s.State != schema.StateInitialized {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := c.Tool("s", "a"); err != nil {
		t.Error(err)
	}
}

const oddTool = `{ "name":"a/b c", "x":9007199254740993, "inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"z":1,"a":"<&>"}`

func TestToolsAreShownAsTheServerSentThem(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(oddTool, `{"name":"b"}`, `{"name":"b","second":true}`, `{}`)})
	h.heartbeat()
	await(t, c, "the tools", has(c, "s", "a/b c"))
	all, err := c.Tools("s")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d tools, %v", len(all), err)
	}
	if string(all[0].Raw) != oddTool || !all[0].ReadOnly || all[0].Digest != schema.Digest([]byte(oddTool)) {
		t.Errorf("got %s", all[0].Raw)
	}
	if all[0].Safe {
		t.Error("annotations of a server that is not trusted must not count")
	}
}

func TestOperatorSettingsMakeToolsSafe(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"get_x","annotations":{"idempotentHint":true}}`, `{"name":"put_x"}`, `{"name":"list"}`)})
	whole, own := &schema.Retry{Attempts: 2}, &schema.Retry{Attempts: 5}
	h.change(func(w *schema.Worker) {
		w.Servers[0].TrustAnnotations, w.Servers[0].SafeTools = true, []string{"li*"}
		w.Servers[0].Retry, w.Servers[0].ToolRetry = whole, map[string]*schema.Retry{"list": own, "put_x": {Attempts: 1}}
	})
	h.heartbeat()
	await(t, c, "the tools", has(c, "s", "list"))
	for tool, want := range map[string]bool{"get_x": true, "put_x": false, "list": true} {
		if got, err := c.Tool("s", tool); err != nil || got.Safe != want {
			t.Errorf("%s: safe is %v, %v", tool, got.Safe, err)
		}
	}
	for tool, want := range map[string]int{"get_x": 2, "put_x": 0, "list": 5} {
		got, err := c.Tool("s", tool)
		if err != nil || want == 0 && got.Retry != nil || want > 0 && (got.Retry == nil || got.Retry.Attempts != want) {
			t.Errorf("%s: its rule is %+v, %v", tool, got.Retry, err)
		}
	}
}

func TestAFailedServerKeepsItsToolsAndIsShownAsFailed(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	h.heartbeat()
	await(t, c, "the tools", has(c, "s", "a"))
	h.change(func(w *schema.Worker) {
		w.Servers[0].State, w.Servers[0].Error = schema.StateError, "it exited with code 3"
		w.Servers = append(w.Servers, schema.Server{ID: "never", State: schema.StateError, Error: "no such file"})
	})
	await(t, c, "the failure", func() bool { s, _ := c.Server("s"); return s.State == schema.StateError })
	if all, err := c.Tools("s"); err != nil || len(all) != 1 {
		t.Errorf("%d tools, %v", len(all), err)
	}
	if s, _ := c.Server("s"); s.Connected {
		t.Error("it is shown as connected")
	}
	_, err := c.Tools("never")
	if e := schema.AsError(err); e.Kind != schema.KindUnavailable || e.RetryAfter == 0 {
		t.Errorf("a server whose tools were never read: %v", err)
	}
	if _, err := c.Tools("unheard"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an unknown server: %v", err)
	}
}

func TestWorkersWithTheSameServerShareOneDefinition(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	defs := map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)}
	one, two := newAnnouncingWorker(t, srv, "w1", defs), newAnnouncingWorker(t, srv, "w2", defs)
	one.heartbeat()
	await(t, c, "the tools", has(c, "s", "a"))
	two.heartbeat()
	await(t, c, "both workers", func() bool { s, _ := c.Server("s"); return len(s.Workers) == 2 })
	if n := one.described.Load() + two.described.Load(); n != 1 {
		t.Errorf("the definitions were read %d times", n)
	}
}

func TestAnUpgradedServerShowsItsNewTools(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	old := newAnnouncingWorker(t, srv, "old", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	old.heartbeat()
	await(t, c, "the tools", has(c, "s", "a"))
	newer := newAnnouncingWorker(t, srv, "newer", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"b"}`)})
	newer.heartbeat()
	await(t, c, "the new tools", has(c, "s", "b"))
	// The server of one worker changes.
	changed := tools(`{"name":"c"}`)
	newer.mu.Lock()
	newer.defs = map[schema.ServerID]*schema.Definitions{"s": changed}
	newer.mu.Unlock()
	newer.change(func(w *schema.Worker) { w.Servers[0].Digest = changed.Digest() })
	await(t, c, "the changed tools", has(c, "s", "c"))
}

func TestSilentWorkerIsRemovedWithinSeconds(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	h.announceUntil(c, "the tools", has(c, "s", "a"))
	began := time.Now()
	await(t, c, "its end", func() bool { return len(c.Workers()) == 0 })
	if took := time.Since(began); took > 10*silentFor {
		t.Errorf("it took %s", took)
	}
	s, err := c.Server("s")
	if err != nil || s.Connected || s.State != schema.StateError || len(s.Workers) != 0 {
		t.Errorf("its server must be known as failed: %+v, %v", s, err)
	}
	if _, err := c.Tool("s", "a"); err != nil {
		t.Errorf("its tools must still be known: %v", err)
	}
	later := newAnnouncingWorker(t, srv, "later", map[schema.ServerID]*schema.Definitions{"other": tools(`{"name":"b"}`)})
	later.heartbeat()
	await(t, c, "another worker", has(c, "other", "b"))
	back := newAnnouncingWorker(t, srv, "back", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	back.heartbeat()
	await(t, c, "its return", func() bool { s, _ := c.Server("s"); return s.Connected })
	back.change(func(w *schema.Worker) { w.Servers = nil })
	await(t, c, "its removal on purpose", func() bool {
		_, err := c.Server("s")
		return schema.KindOf(err) == schema.KindNotFound
	})
}

func TestToolSwitchReachesEveryFrontDoorAndPersists(t *testing.T) {
	srv := bustest.Start(t)
	one, two := open(t, srv), open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	h.heartbeat()
	await(t, one, "the tools", has(one, "s", "a"))
	await(t, two, "the tools", has(two, "s", "a"))
	ctx := context.Background()
	if _, err := one.Switch(ctx, "s", "a", false, "it deletes things", "ops"); err != nil {
		t.Fatal(err)
	}
	off := func(c *Catalog) func() bool {
		return func() bool {
			tool, err := c.Tool("s", "a")
			return err == nil && !tool.Switch.Enabled && tool.Switch.Reason == "it deletes things" && tool.Switch.By == "ops"
		}
	}
	if !off(one)() {
		t.Error("the front door that switched does not see it")
	}
	await(t, two, "the switch", off(two))
	three := open(t, srv)
	await(t, three, "the switch after a restart", off(three))
	if _, err := three.Switch(ctx, "s", "a", true, "", "ops"); err != nil {
		t.Fatal(err)
	}
	await(t, two, "the switch back", func() bool { return !off(two)() })
	if _, err := one.Switch(ctx, "s", "nope", false, "", ""); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an unknown tool: %v", err)
	}
}

func TestDisabledToolsAndRemovedServersRefuseCallsAtEveryFrontDoor(t *testing.T) {
	srv := bustest.Start(t)
	one, two := open(t, srv), open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`, `{"name":"b"}`)})
	h.change(func(w *schema.Worker) { w.APIServers = true })
	h.heartbeat()
	for _, c := range []*Catalog{one, two} {
		await(t, c, "the tools", has(c, "s", "a"))
		if err := c.Standing("s", "a", ""); err != nil {
			t.Error(err)
		}
		if err := c.Standing("x", "a", ""); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("a server that there never was: %v", err)
		}
	}
	ctx := t.Context()
	if _, err := one.Switch(ctx, "s", "a", false, "", "ops"); err != nil {
		t.Fatal(err)
	}
	off := func() bool { return schema.KindOf(two.Standing("s", "a", "")) == schema.KindDisabled }
	if schema.KindOf(one.Standing("s", "a", "")) != schema.KindDisabled {
		t.Error("it does not stand where it was switched off")
	}
	await(t, two, "the switch", off)
	if tool, err := two.Tool("s", "a"); err != nil || tool.Refusal().Error() != two.Standing("s", "a", "").Error() {
		t.Errorf("who comes now is told something else: %v, %v, %v", tool.Refusal(), two.Standing("s", "a", ""), err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = two.Standing("s", "b", "") }); n != 0 {
		t.Errorf("%v allocations for each call", n)
	}
	if _, err := two.Switch(ctx, "s", "a", true, "", "ops"); err != nil {
		t.Fatal(err)
	}
	await(t, one, "the switch back", func() bool { return one.Standing("s", "a", "") == nil })
	// A removed API server disappears at once, whatever its workers still report.
	if err := one.added.Put(ctx, servertable.Server{ID: "s", Definition: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	one.addedChanged()
	await(t, two, "the row", func() bool { _, ok := two.added.Get(servertable.Key("s")); return ok })
	if err := one.Operator().Remove(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{one, two} {
		await(t, c, "the removal", func() bool { return schema.KindOf(c.Standing("s", "b", "")) == schema.KindNotFound })
		if _, err := c.Tool("s", "b"); schema.KindOf(err) != schema.KindNotFound {
			t.Errorf("a call that comes now: %v", err)
		}
	}
	if err := two.added.Put(ctx, servertable.Server{ID: "s", Definition: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	await(t, one, "the server that was added again", func() bool { return one.Standing("s", "b", "") == nil })
}

func TestRoutersShareTheSlotsOfAWorker(t *testing.T) {
	srv := bustest.Start(t)
	one, two := open(t, srv), open(t, srv)
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(`{"name":"a"}`)})
	h.heartbeat()
	for _, c := range []*Catalog{one, two} {
		await(t, c, "the tools", has(c, "s", "a"))
	}
	for _, c := range []*Catalog{one, two} {
		polltest.Until(t, "each of two routers has half of the slots", func() bool { return c.Routers() == 2 && c.router.Load()["s"].Slots == 2 })
	}
}
