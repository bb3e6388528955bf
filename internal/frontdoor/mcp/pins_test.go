package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

func TestQuarantinedToolIsHiddenAndCallsGetTheReason(t *testing.T) {
	f := openFabric(t, nil)
	define := func(description string) {
		f.define("bank", schema.Definitions{Tools: []json.RawMessage{raw(`{"name":"pay","description":"` + description + `","inputSchema":{"type":"object"}}`)}})
	}
	define("one")
	f.Worker.Change(func(w *schema.Worker) {
		w.Servers[slices.IndexFunc(w.Servers, func(s schema.Server) bool { return s.ID == "bank" })].Pin = schema.PinQuarantine
	})
	listed := func() string { return f.ask("/mcp", "tools/list", "", "").result(t) }
	cat := f.endpoint.o.Catalog
	f.WaitFor("the record", func() bool {
		pins, err := cat.Pins("bank")
		return err == nil && !pins.Recorded.IsZero() && strings.Contains(listed(), "bank__pay")
	})
	define("two")
	f.WaitFor("the quarantine", func() bool { return !strings.Contains(listed(), "bank__pay") })
	got := f.call("/mcp", "bank__pay", `{}`).result(t)
	if !strings.Contains(got, "in quarantine") || !strings.Contains(got, `"isError":true`) {
		t.Error(got)
	}
	tool, err := cat.Tool("bank", "pay")
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Operator().Accept(t.Context(), "bank", []catalog.Acceptance{{Tool: "pay", Digest: tool.Digest}}, "ops"); err != nil {
		t.Fatal(err)
	}
	f.WaitFor("the accepted tool", func() bool { return strings.Contains(listed(), `"two"`) })
}
