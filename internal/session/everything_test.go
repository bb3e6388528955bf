package session

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/pkg/schema"
)

func TestTheConformanceServerOfTheSDKWorksOverPipes(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "everything-server")
	build := exec.Command("go", "build", "-o", exe, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	p := open(t, Config{Spec: launch.Spec{ID: "everything", Type: "stdio", Command: exe}})
	if s := p.ready(); s.Protocol != "2026-07-28" {
		t.Errorf("got %+v", s)
	}
	defs, sum := p.Definitions()
	if len(defs.Tools) < 20 || len(defs.Resources) == 0 || len(defs.ResourceTemplates) == 0 || len(defs.Prompts) == 0 {
		t.Errorf("%d tools, %d resources, %d templates, %d prompts", len(defs.Tools), len(defs.Resources), len(defs.ResourceTemplates), len(defs.Prompts))
	}
	must(t, p.call("test_simple_text", "{}"))
	if !must(t, p.call("test_error_handling", "{}")).ToolError {
		t.Error("isError was not seen")
	}
	var got atomic.Int32
	_, wait := p.begin(&Request{Name: "test_tool_with_progress", Progress: func([]byte) { got.Add(1) }})
	if must(t, wait()); got.Load() != 3 {
		t.Errorf("%d of 3 progress notifications came before the result", got.Load())
	}
	// The server asks for a capability that we did not declare, as the conformance suite wants.
	wantKind(t, p.call("test_input_required_result_elicitation", "{}"), schema.KindInputRequired, true)
	_, wait = p.begin(&Request{Method: schema.MethodReadResource, Params: []byte(`{"uri":"test://static-text"}`)})
	if o := must(t, wait()); !strings.Contains(string(o.Body), "static-text") {
		t.Errorf("got %s", o.Body)
	}
	must(t, p.call("test_trigger_tool_change", "{}"))
	p.until("the change was seen", func(s schema.Server) bool { return s.Digest != sum })
}
