package worker_test

import (
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/schema"
)

// The worker refuses calls that were checked against a definition other than that of its session,
// and calls without a digest. None of them reaches the tool.
func TestPinnedServerRunsOnlyCallsOfItsDefinition(t *testing.T) {
	e := entry("pay", mcptest.Echo)
	e.Pin = schema.PinQuarantine
	off := entry("free", mcptest.Echo)
	f := startFleet(t, "", e, off)
	for digest, want := range map[string]schema.Kind{"": schema.KindConflict, "sha256:00": schema.KindUnavailable} {
		frame := f.effect("pay", "never")
		frame.ToolDigest, frame.Approval = digest, ""
		if e := f.send(frame); e == nil || e.Kind != want {
			t.Errorf("%q: %+v, want %s", digest, e, want)
		}
	}
	if n := f.ran(); n != 0 {
		t.Errorf("%d calls ran", n)
	}
	frame := f.effect("pay", "one")
	frame.Approval = ""
	if e := f.send(frame); e != nil {
		t.Error(e)
	}
	frame = f.effect("free", "two") // without pin any digest will do
	frame.ToolDigest, frame.Approval = "sha256:00", ""
	if e := f.send(frame); e != nil {
		t.Error(e)
	}
	if n := f.ran(); n != 2 {
		t.Errorf("%d calls ran, want 2", n)
	}
}
