package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/mcptest"
)

// sandboxedServer returns a servers file with one scripted server of high risk, which runs in
// bubblewrap sandboxes. The program is in a folder that is accessible to every user.
func sandboxedServer(t *testing.T, id, mode string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // the parent of that one is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(programs.test, "scripted-server"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{id: map[string]any{
		"command": "/opt/scripted/server", "args": []string{mode}, "env": mcptest.Env(mode), "riskLevel": 3,
		"sandbox": "bubblewrap", "bubblewrap": map[string]any{"volumes": []string{dir + ":/opt/scripted:ro"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "servers.json")
	write(t, file, string(text))
	return file
}

func TestHighRiskCallRunsInBubblewrapIfConfigured(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Fatalf("this test needs bubblewrap, which scripts/test.sh --setup brings: %v", err)
	}
	d := startUp(t, setup{servers: sandboxedServer(t, "sandboxed", mcptest.Echo), env: []string{quickStop}})
	d.waitServers(t, 1, "sandboxed")
	result := d.call(t, "sandboxed", "echo", `{"text":"from the sandbox"}`)
	if got := text(t, result); got != "from the sandbox" {
		t.Errorf("it answers %q", got)
	}
	want := map[string]any{
		"risk_level": 3.0, "risk_description": "High risk - Docker execution required", "docker": false, "docker_image": "", "isolation": "bubblewrap", "runtime": "bwrap",
	}
	if diff := cmp.Diff(want, environment(t, result)); diff != "" {
		t.Errorf("where it ran (-want +got):\n%s", diff)
	}
	// The path exists on the host and, separately, in the sandbox.
	path := filepath.Join("/tmp", serverID("sandboxed"))
	d.call(t, "sandboxed", "effect", fmt.Sprintf(`{"path":%q,"id":"x"}`, path))
	if _, err := os.Stat(path); err == nil {
		t.Errorf("the effect of a call in a sandbox is on the host: %v", os.Remove(path))
	}
	for _, item := range object(t, d.get(t, "/servers"))["servers"].([]any) {
		if s := item.(map[string]any); s["running_in_docker"] != false || s["sandbox"].(map[string]any)["isolation"] != "bubblewrap" {
			t.Errorf("GET /servers: %v", s)
		}
	}
	const timeout = 10 * time.Second // includes the start of the sandbox
	p := d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":"sandboxed","tool":"sleep","arguments":{"ms":60000},"timeout_ms":%d}`, timeout.Milliseconds())).problem(t, http.StatusGatewayTimeout, "outcome-unknown")
	if !strings.Contains(p.Detail, "sandbox, which was destroyed") {
		t.Errorf("the caller is told %q", p.Detail)
	}
}

func TestWithoutBubblewrapSandboxedServerIsRefused(t *testing.T) {
	d := startUp(t, setup{servers: sandboxedServer(t, "sandboxed", mcptest.Echo), env: []string{quickStop, "PATH=" + t.TempDir()}})
	d.eventually(t, startWithin, "saying why", func() error {
		if s := d.server(t, "sandboxed"); s.State != "error" || s.Connected || !strings.Contains(s.Error, "install it") {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	if p := d.ask(t, "POST", toolPath("sandboxed", "echo"), `{"text":"x"}`).problem(t, http.StatusServiceUnavailable, "unavailable"); !strings.Contains(p.Detail, "install it") {
		t.Errorf("it refuses with %q", p.Detail)
	}
}

func TestContainerRequiredByPolicyIsNotReplacedByBubblewrap(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "rules:\n  - {name: sandboxes, match: {tool: effect}, sandbox: container}\n")
	d := startUp(t, setup{servers: sandboxedServer(t, "sandboxed", mcptest.Echo), env: []string{quickStop}, flags: []string{"--policy", policy}})
	d.waitServers(t, 1, "sandboxed")
	if p := d.ask(t, "POST", toolPath("sandboxed", "effect"), `{"path":"/tmp/x","id":"x"}`).problem(t, http.StatusForbidden, "forbidden"); !strings.Contains(p.Detail, "weaker isolation (bubblewrap)") {
		t.Errorf("it refuses with %q", p.Detail)
	}
	d.call(t, "sandboxed", "echo", `{"text":"by its level alone"}`)
}
