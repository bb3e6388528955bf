package catalog

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// fleetOfTwo starts a worker with two servers that have the same tools.
func fleetOfTwo(t *testing.T, srv *bustest.Server) *announcingWorker {
	t.Helper()
	same := tools(`{"name":"read","annotations":{"readOnlyHint":true},"_meta":{"tags":["x"]}}`, `{"name":"delete"}`)
	h := newAnnouncingWorker(t, srv, "worker", map[schema.ServerID]*schema.Definitions{"a": same, "b": same})
	h.heartbeat()
	return h
}

func knowsBoth(c *Catalog) func() bool {
	return func() bool {
		_, errA := c.Tools("a")
		_, errB := c.Tools("b")
		return errA == nil && errB == nil
	}
}

func setNames(t *testing.T, c *Catalog, set string) []string {
	t.Helper()
	view, err := c.Sets().View("", set)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(view.Tools))
	for i := range view.Tools {
		names[i] = view.Tools[i].Name
	}
	return names
}

func TestSetReachesEveryFrontDoorAndPersists(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	one, two := open(t, srv), open(t, srv)
	h.announceUntil(one, "the tools", knowsBoth(one))
	h.announceUntil(two, "the tools", knowsBoth(two))
	made, err := one.Sets().Put(t.Context(), "", toolset.Set{Name: "s", Include: []toolset.Selector{{ReadOnly: new(true), Tags: []string{"x"}}}}, 0, "ann")
	if err != nil || made.Revision == 0 || made.By != "ann" {
		t.Fatal(made, err)
	}
	if got := setNames(t, one, "s"); !slices.Equal(got, []string{"a__read", "b__read"}) {
		t.Error(got)
	}
	h.announceUntil(two, "the set at the other front door", func() bool { _, err := two.Sets().View("", "s"); return err == nil })
	changed, err := two.Sets().Put(t.Context(), "", toolset.Set{Name: "s", Include: []toolset.Selector{{Server: "b"}}}, made.Revision, "bob")
	if err != nil {
		t.Fatal(err)
	}
	h.announceUntil(one, "the change", func() bool {
		return slices.Equal(setNames(t, one, "s"), []string{"b__read", "b__delete"}) || slices.Equal(setNames(t, one, "s"), []string{"b__delete", "b__read"})
	})
	three := open(t, srv)
	h.announceUntil(three, "the tools", knowsBoth(three))
	if set, err := three.Sets().Owned("", "s"); err != nil || set.Revision != changed.Revision {
		t.Error(set, err)
	}
	if err := one.Sets().Remove(t.Context(), "", "s", made.Revision); !errors.Is(err, ErrSetChanged) {
		t.Error(err)
	}
	if err := one.Sets().Remove(t.Context(), "", "s", changed.Revision); err != nil {
		t.Error(err)
	}
	if _, err := one.Sets().Owned("", "s"); schema.KindOf(err) != schema.KindNotFound {
		t.Error(err)
	}
}

// TestConcurrentEditsLoseNothing makes concurrent writers each add a selector.
func TestConcurrentEditsLoseNothing(t *testing.T) {
	srv := bustest.Start(t)
	doors := []*Catalog{open(t, srv), open(t, srv)}
	if _, err := doors[0].Sets().Put(t.Context(), "", toolset.Set{Name: "s", Include: []toolset.Selector{{}}}, 0, ""); err != nil {
		t.Fatal(err)
	}
	const each = 10
	var wg sync.WaitGroup
	for n, c := range doors {
		for i := range each {
			wg.Go(func() {
				mine := toolset.Selector{Server: string(rune('a' + n)), Tool: string(rune('a' + i))}
				for {
					set, err := c.Sets().Owned("", "s")
					if err == nil {
						set.Include = append(slices.Clone(set.Include), mine)
						_, err = c.Sets().Put(t.Context(), "", set.Set, set.Revision, "")
					}
					if err == nil {
						return
					}
					if !errors.Is(err, ErrSetChanged) && schema.KindOf(err) != schema.KindNotFound {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	set, err := doors[0].Sets().Owned("", "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(set.Include); got > 1+2*each {
		t.Errorf("%d selectors", got)
	}
	for _, c := range doors { // the last writer knows all
		if set, err := c.Sets().Owned("", "s"); err == nil && len(set.Include) == 1+2*each {
			return
		}
	}
	t.Error("edits were lost")
}

func TestSetsOfTheConfigurationAreNotChanged(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c := open(t, srv)
	if err := c.Sets().Configure([]toolset.Set{{Name: "a", Include: []toolset.Selector{{Set: "b"}}}}); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Error(err)
	}
	if err := c.Sets().Configure([]toolset.Set{{Name: "fixed", Include: []toolset.Selector{{Tool: "read"}}, Names: &toolset.Naming{Prefix: new("")}}}); err != nil {
		t.Fatal(err)
	}
	h.announceUntil(c, "the tools", knowsBoth(c))
	view, err := c.Sets().View("", "fixed")
	if err != nil || len(view.Tools) != 0 || len(view.LeftOut) != 1 {
		t.Errorf("%+v, %v", view, err)
	}
	for name, err := range map[string]error{
		"put": func() error {
			_, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "fixed", Include: []toolset.Selector{{}}}, 0, "")
			return err
		}(),
		"remove": c.Sets().Remove(t.Context(), "", "fixed", 1),
	} {
		if schema.KindOf(err) != schema.KindConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A set that another set refers to cannot be removed, and a circular set cannot be stored.
	inner, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "inner", Include: []toolset.Selector{{}}}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "outer", Include: []toolset.Selector{{Set: "inner"}}}, 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Sets().Remove(t.Context(), "", "inner", inner.Revision); schema.KindOf(err) != schema.KindConflict {
		t.Error(err)
	}
	if _, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "inner", Include: []toolset.Selector{{Set: "outer"}}}, inner.Revision, ""); schema.KindOf(err) != schema.KindInvalidRequest {
		t.Error(err)
	}
}

func TestManyToolsAreSwitchedAtOnce(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c, other := open(t, srv), open(t, srv)
	h.announceUntil(c, "the tools", knowsBoth(c))
	h.announceUntil(other, "the tools", knowsBoth(other))
	on := func(c *Catalog) string {
		var names []string
		for _, server := range []schema.ServerID{"a", "b"} {
			for _, name := range []string{"delete", "read"} {
				tool, err := c.Tool(server, name)
				if err != nil {
					t.Fatal(err)
				}
				off := tool.Refusal()
				if (off == nil) != tool.Switch.Enabled || (off == nil) != (c.Standing(server, name, "") == nil) || off != nil && schema.KindOf(off) != schema.KindDisabled {
					t.Errorf("%s/%s: %v, %+v, %v", server, name, off, tool.Switch, c.Standing(server, name, ""))
				}
				if off == nil {
					names = append(names, string(server)+"/"+name)
				}
			}
		}
		return strings.Join(names, " ")
	}
	is := func(want string) {
		t.Helper()
		if got := on(c); got != want {
			t.Errorf("on are %q, want %q", got, want)
		}
		h.announceUntil(other, "the same at the other front door", func() bool { return on(other) == want })
	}
	if _, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "reading", Include: []toolset.Selector{{ReadOnly: new(true)}}}, 0, ""); err != nil {
		t.Fatal(err)
	}
	h.announceUntil(other, "the set", func() bool { _, err := other.Sets().Owned("", "reading"); return err == nil })
	if _, fits, err := c.Switches().Many(t.Context(), "*", "del*", "", false, "no deletions", "ann"); err != nil || fits != 2 {
		t.Fatal(fits, err)
	}
	is("a/read b/read")
	if why := c.Standing("a", "delete", ""); why == nil || !strings.Contains(why.Error(), `Tool "delete" of server "a" is disabled: no deletions`) {
		t.Error(why)
	}
	if _, fits, err := c.Switches().Many(t.Context(), "a", "", "reading", false, "", ""); err != nil || fits != 1 {
		t.Fatal(fits, err)
	}
	is("b/read")
	if _, err := c.Switch(t.Context(), "b", "delete", true, "", ""); err != nil { // a pattern turns this tool off
		t.Fatal(err)
	}
	is("b/read")
	f, err := c.Search(t.Context(), Query{Text: "read delete"})
	if err != nil || f.Callable != 1 || len(f.Tools) != 1 {
		t.Error(foundNames(f), f.Callable, err)
	}
	if err := c.Sets().Remove(t.Context(), "", "reading", 1); schema.KindOf(err) != schema.KindConflict {
		t.Errorf("a set by which tools are disabled was removed: %v", err)
	}
	if _, _, err := c.Switches().Many(t.Context(), "a", "read", "", true, "", ""); schema.KindOf(err) != schema.KindNotFound {
		t.Error(err)
	}
	if _, _, err := c.Switches().Many(t.Context(), "", "", "none", false, "", ""); schema.KindOf(err) != schema.KindNotFound {
		t.Error(err)
	}
	if _, _, err := c.Switches().Many(t.Context(), "a", "", "reading", true, "", ""); err != nil {
		t.Fatal(err)
	}
	is("a/read b/read")
	if _, _, err := c.Switches().Many(t.Context(), "*", "del*", "", true, "", ""); err != nil {
		t.Fatal(err)
	}
	is("a/delete a/read b/delete b/read")
	if got := c.Switches().List(); len(got) != 0 {
		t.Error(got)
	}
}

func TestChangesAreReportedWithActorAndReason(t *testing.T) {
	srv := bustest.Start(t)
	h := fleetOfTwo(t, srv)
	c, other := open(t, srv), open(t, srv)
	h.announceUntil(c, "the tools", knowsBoth(c))
	h.announceUntil(other, "the tools", knowsBoth(other))
	told := make(chan FleetChange, 100)
	defer other.Watch(func(change FleetChange) { told <- change })()
	expect := func(want ...FleetChange) {
		t.Helper()
		for _, w := range want {
			select {
			case got := <-told:
				if got.At.IsZero() {
					t.Error("no time")
				}
				if got.At = w.At; got != w {
					t.Errorf("%+v, want %+v", got, w)
				}
			case <-t.Context().Done():
				return
			}
		}
	}
	if _, err := c.Switch(t.Context(), "a", "delete", false, "dangerous", "ann"); err != nil {
		t.Fatal(err)
	}
	expect(FleetChange{Type: ToolDisabled, Server: "a", Tool: "delete", Actor: "ann", Reason: "dangerous"})
	if _, err := c.Switch(t.Context(), "a", "delete", true, "", "bob"); err != nil {
		t.Fatal(err)
	}
	expect(FleetChange{Type: ToolEnabled, Server: "a", Tool: "delete", Actor: "bob"})
	if _, _, err := c.Switches().Many(t.Context(), "b", "", "", false, "closed", "ann"); err != nil {
		t.Fatal(err)
	}
	expect(FleetChange{Type: ToolDisabled, Server: "b", Tool: "delete", Actor: "ann", Reason: "closed"}, FleetChange{Type: ToolDisabled, Server: "b", Tool: "read", Actor: "ann", Reason: "closed"})
	if _, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "s", Include: []toolset.Selector{{}}}, 0, "eve"); err != nil {
		t.Fatal(err)
	}
	expect(FleetChange{Type: SetAdded, Set: "s", Tenant: schema.DefaultTenant, Actor: "eve"})
	h.change(func(w *schema.Worker) {
		w.Servers = slices.Clone(w.Servers)
		for i := range w.Servers {
			if w.Servers[i].ID == "a" {
				w.Servers[i].State, w.Servers[i].Error = schema.StateError, "exited"
			}
		}
	})
	expect(FleetChange{Type: ServerOffline, Server: "a", Reason: "exited"})
	h.change(func(w *schema.Worker) {
		w.Servers = slices.Clone(w.Servers)
		for i := range w.Servers {
			w.Servers[i].State, w.Servers[i].Error = schema.StateInitialized, ""
		}
	})
	expect(FleetChange{Type: ServerOnline, Server: "a"})
}
