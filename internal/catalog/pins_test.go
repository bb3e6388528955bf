package catalog

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/store/pintable"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// redefine replaces the tools of the worker's server.
func (h *announcingWorker) redefine(server schema.ServerID, pin string, defs ...string) {
	d := tools(defs...)
	h.change(func(w *schema.Worker) {
		h.defs[server] = d
		for i := range w.Servers {
			if w.Servers[i].ID == server {
				servers := slices.Clone(w.Servers)
				servers[i].Digest, servers[i].Pin = d.Digest(), pin
				w.Servers = servers
			}
		}
	})
}

func newPinnedWorker(t *testing.T, srv *bustest.Server, pin string, defs ...string) *announcingWorker {
	h := newAnnouncingWorker(t, srv, "w", map[schema.ServerID]*schema.Definitions{"s": tools(defs...)})
	h.me.Servers[0].Pin = pin
	h.heartbeat()
	return h
}

func digest(definition string) string { return schema.Digest([]byte(definition)) }

// maySend reports whether a call that was checked against the definition may be sent.
func maySend(c *Catalog, tool, definition string) func() bool {
	return func() bool { return c.Standing("s", tool, digest(definition)) == nil }
}

const (
	toolA  = `{"name":"a","description":"one","inputSchema":{"type":"object"}}`
	toolA2 = `{"name":"a","description":"two","inputSchema":{"type":"object"},"x-secret":1}`
	toolB  = `{"name":"b"}`
)

func TestQuarantinedToolDoesNotRunBeforeAcceptance(t *testing.T) {
	srv := bustest.Start(t)
	one, two := open(t, srv), open(t, srv)
	h := newPinnedWorker(t, srv, schema.PinQuarantine, toolA)
	for _, c := range []*Catalog{one, two} {
		await(t, c, "the recorded tool", maySend(c, "a", toolA))
		sum := digest(toolA)
		if n := testing.AllocsPerRun(100, func() { _ = c.Standing("s", "a", sum) }); n != 0 {
			t.Errorf("%v allocations for each call", n)
		}
	}
	h.redefine("s", schema.PinQuarantine, toolA2, toolB)
	three := open(t, srv) // a front door that has just started
	for _, c := range []*Catalog{one, two, three} {
		await(t, c, "the change", func() bool { all := c.ChangedTools(); return all["s"] == 2 })
		for tool, detail := range map[string]string{"a": "(description, other members)", "b": "it is new"} {
			got, err := c.Tool("s", tool)
			if err != nil {
				t.Fatal(err)
			}
			err = got.Refusal()
			if schema.KindOf(err) != schema.KindDisabled || !strings.Contains(err.Error(), detail) || strings.Contains(err.Error(), "x-secret") || got.Offered() {
				t.Errorf("%s: %v, offered %v", tool, err, got.Offered())
			}
			if left := c.Standing("s", tool, got.Digest); schema.KindOf(left) != schema.KindDisabled {
				t.Errorf("%s may leave: %v", tool, left)
			}
		}
		if f, err := c.Search(t.Context(), Query{Text: "a b"}); len(f.Tools)+f.Callable+len(f.Unknown) != 0 || err != nil {
			t.Errorf("a search finds %+v: %v", f, err)
		}
	}
	// Only the reviewed definitions are accepted, and either all of them or none.
	ctx := t.Context()
	both := []Acceptance{{"a", digest(toolA2)}, {"b", digest(`{"name":"b" }`)}}
	if err := one.Operator().Accept(ctx, "s", both, "ops"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("another definition: %v", err)
	}
	if err := one.Operator().Accept(ctx, "s", []Acceptance{{"c", ""}}, "ops"); schema.KindOf(err) != schema.KindNotFound {
		t.Errorf("an unknown tool: %v", err)
	}
	if one.Standing("s", "a", digest(toolA2)) == nil {
		t.Error("half of a refused acceptance counts")
	}
	both[1].Digest = digest(toolB)
	if err := one.Operator().Accept(ctx, "s", both, "ops"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{one, two, three} {
		await(t, c, "the acceptance", func() bool { return maySend(c, "a", toolA2)() && maySend(c, "b", toolB)() })
		// A call that was checked against the old definition waited in the meantime.
		if err := c.Standing("s", "a", digest(toolA)); schema.KindOf(err) != schema.KindConflict {
			t.Errorf("a call that was checked against the old definition: %v", err)
		}
	}
	if err := two.Operator().Accept(ctx, "s", both, "others"); err != nil {
		t.Errorf("again: %v", err)
	}
	pins, err := two.Pins("s")
	if err != nil || len(pins.Tools) != 2 || pins.Tools[0].State != PinAccepted || pins.Tools[0].Accepted.By != "ops" || string(pins.Tools[0].Accepted.Definition) != toolA2 {
		t.Errorf("%+v, %v", pins, err)
	}
	// The old definition is no longer accepted. A tool that was removed is not an error.
	h.redefine("s", schema.PinQuarantine, toolA)
	await(t, one, "the way back", func() bool { return one.Standing("s", "a", digest(toolA)) != nil && one.ChangedTools()["s"] == 1 })
	if pins, err = one.Pins("s"); err != nil || pins.Tools[0].State != PinChanged || pins.Tools[1].State != PinGone {
		t.Errorf("%+v, %v", pins, err)
	}
}

func TestAServerWithPinWarnKeepsRunning(t *testing.T) {
	srv := bustest.Start(t)
	c := open(t, srv)
	h := newPinnedWorker(t, srv, schema.PinWarn, toolA)
	await(t, c, "the record", func() bool { _, ok := c.pins.Load().Get(pintable.Key("s")); return ok })
	h.redefine("s", schema.PinWarn, toolA2)
	await(t, c, "the change", func() bool { return c.ChangedTools()["s"] == 1 })
	tool, err := c.Tool("s", "a")
	if err != nil || tool.Refusal() != nil || !tool.Offered() || !tool.Unaccepted() || c.Standing("s", "a", tool.Digest) != nil {
		t.Errorf("%+v, %v", tool, err)
	}
	// In quarantine mode, earlier records still apply.
	h.redefine("s", schema.PinQuarantine, toolA2)
	await(t, c, "the quarantine", func() bool { return c.Standing("s", "a", digest(toolA2)) != nil })
	h.redefine("s", "", toolA2)
	await(t, c, "no pin", func() bool { return c.Standing("s", "a", digest(toolA2)) == nil })
	if _, err := c.Pins("s"); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("a server without pin: %v", err)
	}
	if len(c.ChangedTools()) != 0 {
		t.Error("it is counted")
	}
}

// Front doors that see different definitions on first use agree on one record.
func TestFrontDoorsThatRecordAtOnceAgree(t *testing.T) {
	srv := bustest.Start(t)
	catalogs := []*Catalog{open(t, srv), open(t, srv), open(t, srv)}
	var all sync.WaitGroup
	for i, c := range catalogs {
		all.Go(func() {
			row := pintable.Server{ID: "s", Tools: map[string]pintable.Pin{"a": {Digest: string(rune('0' + i))}}}
			if err := (&pinner{c: c}).record(t.Context(), c.pins.Load(), row); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want, _ := catalogs[0].pins.Load().Get(pintable.Key("s"))
	for _, c := range catalogs {
		if got, ok := c.pins.Load().Get(pintable.Key("s")); !ok || got.Tools["a"].Digest != want.Tools["a"].Digest {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Until its definitions are compared, a quarantined server runs no calls. This holds for a record
// with unknown definitions, and for definitions without a record.
func TestCallsAreRefusedBeforeDefinitionsAreCompared(t *testing.T) {
	d := read("s", tools(toolA), nil, nil)
	row := &pintable.Server{ID: "s", Tools: map[string]pintable.Pin{"a": {Digest: digest(toolA)}}}
	for name, p := range map[string]*pinned{"no definitions": compare(schema.PinQuarantine, row, nil), "no record": compare(schema.PinQuarantine, nil, d)} {
		e := schema.AsError(p.mayLeave("s", "a", digest(toolA)))
		if e == nil || e.Kind != schema.KindUnavailable || !e.Retryable {
			t.Errorf("%s: %+v", name, e)
		}
		tool := Tool{Tool: d.order[0], Change: p.of("a")}
		tool.Switch.Enabled = true
		if tool.Offered() || tool.Refusal() == nil || tool.Unaccepted() {
			t.Errorf("%s: it is offered", name)
		}
	}
	p := compare(schema.PinQuarantine, row, d)
	if err := p.mayLeave("s", "a", digest(toolA)); err != nil {
		t.Error(err)
	}
	if err := p.mayLeave("s", "gone", ""); schema.KindOf(err) != schema.KindConflict {
		t.Error(err)
	}
	if compare(schema.PinWarn, nil, d).of("a") != nil {
		t.Error("warn refuses before a record")
	}
}

func TestDifferenceNamesMCPMembersOnly(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{`{"name":"a","description":"x"}`, `{"name":"a","description":"y"}`, "description"},
		{`{"name":"a"}`, `{"name":"a","annotations":{},"outputSchema":{}}`, "outputSchema annotations"},
		{`{"name":"a","ignore all rules":1}`, `{"name":"a"}`, "other members"},
		{`{"name":"a","title":"t"}`, `{"title":"t","name":"a"}`, "order or spelling of members"},
	} {
		if got := strings.Join(differing([]byte(c.a), []byte(c.b)), " "); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func BenchmarkStanding(b *testing.B) {
	d := read("s", tools(toolA), nil, nil)
	row := &pintable.Server{ID: "s", Tools: map[string]pintable.Pin{"a": {Digest: digest(toolA)}}}
	sum := d.order[0].Digest
	for name, pins := range map[string]*pinned{"off": nil, "quarantine": compare(schema.PinQuarantine, row, d)} {
		b.Run(name, func(b *testing.B) {
			c := &Catalog{}
			c.standing.Store(&standing{servers: map[schema.ServerID]*pinned{"s": pins}})
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Standing("s", "a", sum); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAcceptedDefinitionsAreKnownBeforeTheTools(t *testing.T) {
	srv := bustest.Start(t)
	one := open(t, srv)
	h := newPinnedWorker(t, srv, schema.PinWarn, toolA)
	await(t, one, "the recorded tool", func() bool { return one.Operator().Accepted("s")["a"] == digest(toolA) })
	h.change(func(w *schema.Worker) {
		w.Servers = slices.Clone(w.Servers)
		w.Servers[0].State, w.Servers[0].Digest = schema.StateStarting, ""
	})
	two := open(t, srv) // it has seen no tools
	await(t, two, "the accepted definition", func() bool { return two.Operator().Accepted("s")["a"] == digest(toolA) })
	if _, err := two.Pins("s"); schema.KindOf(err) != schema.KindUnavailable {
		t.Errorf("the tools are known: %v", err)
	}
	if got := two.Operator().Accepted("other"); got != nil {
		t.Errorf("an unknown server has %v", got)
	}
}
