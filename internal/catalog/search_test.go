package catalog

import (
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestSearchRespectsServersSwitchesAndLimits(t *testing.T) {
	srv := bustest.Start(t)
	same := tools(`{"name":"read_file","description":"Reads a file"}`, `{"name":"weather","description":"The weather of a city"}`)
	h := newAnnouncingWorker(t, srv, "worker", map[schema.ServerID]*schema.Definitions{"a": same, "b": same})
	h.me.Servers = append(h.me.Servers, schema.Server{ID: "dead", State: schema.StateError, Error: "exited"})
	c := open(t, srv)
	h.heartbeat()
	h.announceUntil(c, "the tools of both servers", func() bool {
		_, errA := c.Tools("a")
		_, errB := c.Tools("b")
		return errA == nil && errB == nil
	})
	f, err := c.Search(t.Context(), Query{Text: "read a file quickly"})
	if got := foundNames(f); err != nil || !slices.Equal(got, []string{"a/read_file", "b/read_file", "a/weather", "b/weather"}) || f.Callable != 4 || !slices.Equal(f.Unknown, []string{"dead"}) || !slices.Equal(f.Unmatched, []string{"quickly"}) {
		t.Errorf("%v, %d callable, %v unknown, %v unmatched, %v", got, f.Callable, f.Unknown, f.Unmatched, err)
	}
	if f, err = c.Search(t.Context(), Query{Text: "read a file", Most: 1}); err != nil || len(f.Tools) != 1 || f.Callable != 4 || f.Tools[0].Score <= 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = c.Search(t.Context(), Query{Text: "file", Server: "b"}); err != nil || !slices.Equal(foundNames(f), []string{"b/read_file"}) || f.Callable != 2 || f.Unknown != nil {
		t.Errorf("%v, %d callable, %v, %v", foundNames(f), f.Callable, f.Unknown, err)
	}
	if _, err := c.Switch(t.Context(), "a", "read_file", false, "old", "ops"); err != nil {
		t.Fatal(err)
	}
	if f, err = c.Search(t.Context(), Query{Text: "file"}); err != nil || !slices.Equal(foundNames(f), []string{"b/read_file"}) || f.Callable != 3 {
		t.Errorf("%v, %d callable, %v", foundNames(f), f.Callable, err)
	}
	if _, err = c.Search(t.Context(), Query{Text: "file", Server: "none"}); schema.KindOf(err) != schema.KindNotFound {
		t.Error("a server that is not there was searched")
	}
	if f, err = c.Search(t.Context(), Query{Text: "zebra"}); err != nil || len(f.Tools) != 0 {
		t.Errorf("%v, %v", foundNames(f), err)
	}
	if _, err = c.Search(t.Context(), Query{Text: "file", Set: "none"}); schema.KindOf(err) != schema.KindNotFound {
		t.Error("a set that is not there was searched")
	}
	if _, err := c.Sets().Put(t.Context(), "", toolset.Set{Name: "sky", Include: []toolset.Selector{{Tool: "weather"}}}, 0, "ops"); err != nil {
		t.Fatal(err)
	}
	if f, err = c.Search(t.Context(), Query{Text: "the weather in a file", Set: "sky"}); err != nil || !slices.Equal(foundNames(f), []string{"a/weather", "b/weather"}) || f.Callable != 2 || f.Tools[0].NameInSet != "a__weather" {
		t.Errorf("%+v, %v", f, err)
	}
}

func foundNames(f Found) (all []string) {
	for _, t := range f.Tools {
		all = append(all, string(t.Server)+"/"+t.Name)
	}
	return all
}
