package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

func TestAuditRecordOfHeldCallIsCompleteAndReadable(t *testing.T) {
	data, effects := t.TempDir(), filepath.Join(t.TempDir(), "effects")
	d := startUp(t, setup{data: data, servers: serversFile(t, map[string]entry{"pay": risky(2, scripted(mcptest.Echo))}), env: []string{quickStop}})
	d.waitServers(t, 1, "pay")
	h := d.hold(t, "pay", "effect", fmt.Sprintf(`{"path":%q,"id":"secret-argument"}`, effects))
	if a := d.confirm(t, h.ID, "true"); a.status != 200 {
		t.Fatalf("confirmed: %d %s", a.status, a.body)
	}
	audit := func(args ...string) (string, error) {
		out, err := exec.Command(filepath.Join(bin(t), "callyard"), append([]string{"audit", args[0], "--data", data}, args[1:]...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := audit("verify"); err == nil || !strings.Contains(out, "`callyard audit` can also ask the front door, with --url") {
		t.Errorf("while the data folder is in use: %v %s", err, out)
	}
	d.stop(t)
	if out, err := audit("verify"); err != nil || !strings.Contains(out, "is intact") {
		t.Errorf("verify: %v %s", err, out)
	}
	out, err := audit("list", "--call", h.CallID)
	if err != nil || strings.Contains(out, "secret-argument") {
		t.Errorf("list: %v %s", err, out)
	}
	at := 0
	for _, kind := range []string{"held", "decided", "spent", "ran", "ended"} {
		i := strings.Index(out[at:], kind)
		if i < 0 {
			t.Fatalf("%s is missing, or not in order:\n%s", kind, out)
		}
		at += i
	}
}
