package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// object decodes any JSON object.
func object(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	decode(t, text, &m)
	return m
}

// startBridge starts callyard in the same way as MCP Bridge: with environment
// variables only, and the example configuration.
func startBridge(t testing.TB, env ...string) *door {
	t.Helper()
	port := fmt.Sprint(porttest.Port(t)) // PORT cannot be 0
	env = append([]string{"MCP_CONFIG_PATH=deploy/examples/mcp_bridge.json", "PORT=" + port, quickStop}, env...)
	up := startUp(t, setup{anyPort: true, dir: programs.root, data: t.TempDir(), env: env})
	if want := "http://127.0.0.1:" + port; up.url != want {
		t.Errorf("it listens on %s, PORT asks for %s", up.url, want)
	}
	return up
}

func TestAConfigurationOfMCPBridgeWorksUnchanged(t *testing.T) {
	graph := filepath.Join(t.TempDir(), "graph.jsonl")
	up := startBridge(t,
		// One server of the file is changed, and another one is added.
		"MCP_SERVER_MEMORY_ENV="+fmt.Sprintf(`{"MEMORY_FILE_PATH":%q}`, graph),
		"MCP_SERVER_EXTRA_COMMAND="+filepath.Join(programs.test, "scripted-server"),
		"MCP_SERVER_EXTRA_ARGS=echo,second",
		`MCP_SERVER_EXTRA_ENV={"BRIDGE_SAYS":"hello"}`,
		"MCP_SERVER_EXTRA_RISK_LEVEL=1",
	)
	ids := []string{"everything", "extra", "filesystem", "memory", "thinking"}
	up.waitServers(t, 1, ids...)

	health := object(t, up.get(t, "/health"))
	if health["status"] != "ok" || health["serverCount"] != float64(len(ids)) {
		t.Errorf("GET /health: %v", health)
	}
	if uptime, ok := health["uptime"].(float64); !ok || uptime <= 0 || uptime > 600 {
		t.Errorf("the uptime is %v", health["uptime"])
	}
	lists := map[string]any{"/health": health["servers"], "/servers": object(t, up.get(t, "/servers"))["servers"]}
	for path, list := range lists {
		var seen []string
		for _, item := range list.([]any) {
			s := item.(map[string]any)
			seen = append(seen, s["id"].(string))
			for member, want := range map[string]any{
				"connected": true, "initialization_state": "initialized", "risk_level": 1.0,
				"risk_description": "Low risk - Standard execution", "running_in_docker": false,
			} {
				if s[member] != want {
					t.Errorf("GET %s: %s of %s is %v, want %v", path, member, s["id"], s[member], want)
				}
			}
			if pid, ok := s["pid"].(float64); !ok || !alive(int(pid)) {
				t.Errorf("GET %s: the pid of %s is %v, which is no process", path, s["id"], s["pid"])
			}
		}
		if diff := cmp.Diff(ids, seen); diff != "" {
			t.Errorf("GET %s (-want +got):\n%s", path, diff)
		}
	}

	for path, key := range map[string]string{"/servers/everything/tools": "tools", "/servers/everything/resources": "resources", "/servers/everything/prompts": "prompts"} {
		answer := object(t, up.get(t, path))
		if list, ok := answer[key].([]any); !ok || len(list) == 0 {
			t.Errorf("GET %s has no %s: %v", path, key, answer)
		}
	}
	if got := text(t, up.call(t, "everything", "echo", `{"message":"bridge"}`)); got != "Echo: bridge" {
		t.Errorf("echo answers %q", got)
	}
	up.call(t, "memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":[]}]}`)
	if kept, err := os.ReadFile(graph); err != nil || !strings.Contains(string(kept), "Ada") {
		t.Errorf("MCP_SERVER_MEMORY_ENV had no effect: %q, %v", kept, err)
	}
	if env := text(t, up.call(t, "extra", "env", `{}`)); !strings.Contains(env, "BRIDGE_SAYS=hello") {
		t.Errorf("MCP_SERVER_EXTRA_ENV had no effect: %s", env)
	}
}

func TestAVariableReplacesAServerOfTheFile(t *testing.T) {
	up := startBridge(t, "MCP_SERVER_THINKING_COMMAND="+filepath.Join(programs.test, "scripted-server"), "MCP_SERVER_THINKING_ARGS=echo")
	up.waitServers(t, 1, "thinking")
	if err := up.echo("thinking", "replaced"); err != nil {
		t.Error(err)
	}
	if s := object(t, up.get(t, "/servers/thinking")); s["risk_level"] != 1.0 {
		t.Errorf("the replaced server has lost its risk level: %v", s)
	}
}

func TestRefusalsHaveTheErrorMemberOfMCPBridge(t *testing.T) {
	up := startUp(t, setup{env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	for _, c := range []struct {
		method, path, body string
		status             int
		kind               string
	}{
		{"POST", "/servers/nobody/tools/echo", `{}`, 404, "not-found"},
		{"POST", "/servers/demo/tools/nothing", `{}`, 404, "not-found"},
		{"POST", "/servers/demo/tools/echo", `{"message":1}`, 422, "invalid-arguments"},
		{"POST", "/servers", `{"id":"x","command":"true"}`, 403, "forbidden"},
		{"DELETE", "/servers/demo", ``, 403, "forbidden"},
	} {
		up.ask(t, c.method, c.path, c.body).problem(t, c.status, c.kind) // checks the member error
	}
}

func TestServersCanBeAddedOnceTheOperatorAllowsIt(t *testing.T) {
	up := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"fixed": scripted(mcptest.Echo)}),
		env:     []string{quickStop, "CALLYARD_FRONT_DOOR_ADD_SERVERS=true", "CALLYARD_WORKER_API_SERVERS=true"},
	})
	up.waitServers(t, 1, "fixed")
	body := func(id string, more map[string]any) string {
		e := scripted(mcptest.Echo)
		m := map[string]any{"id": id, "command": e.Command, "args": e.Args, "env": e.Env}
		for k, v := range more {
			m[k] = v
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a := up.ask(t, "POST", "/servers", body("added", map[string]any{"riskLevel": 1}))
	added := object(t, a.body)
	pid, _ := added["pid"].(float64)
	delete(added, "pid")
	want := map[string]any{
		"id": "added", "status": "connected", "risk_level": 1.0, "risk_description": "Low risk - Standard execution", "running_in_docker": false,
	}
	if diff := cmp.Diff(want, added); a.status != 201 || diff != "" || !alive(int(pid)) {
		t.Fatalf("POST /servers answers %d with pid %v (-want +got):\n%s", a.status, pid, diff)
	}
	if err := up.echo("added", "at once"); err != nil {
		t.Errorf("an added server can be called at once: %v", err)
	}
	up.ask(t, "POST", "/servers", body("added", nil)).problem(t, 409, "conflict")
	up.ask(t, "POST", "/servers", body("fixed", nil)).problem(t, 409, "conflict")
	up.ask(t, "POST", "/servers", body("high", map[string]any{"riskLevel": 3})).problem(t, 400, "invalid-request")
	up.ask(t, "POST", "/servers", body("wrong", map[string]any{"riskLevel": 4})).problem(t, 400, "invalid-request")
	up.ask(t, "DELETE", "/servers/fixed", "").problem(t, 409, "conflict")

	a = up.ask(t, "DELETE", "/servers/added", "")
	if diff := cmp.Diff(map[string]any{"status": "disconnected"}, object(t, a.body)); a.status != 200 || diff != "" {
		t.Errorf("DELETE answers %d (-want +got):\n%s", a.status, diff)
	}
	gone(t, soon, "the removed server", []int{int(pid)})
	eventually(t, soon, "the removed server leaves the list", func() error {
		if s, ok := up.servers(t)["added"]; ok {
			return fmt.Errorf("it is %q", s.State)
		}
		return nil
	})
	up.ask(t, "DELETE", "/servers/added", "").problem(t, 404, "not-found")
}

func TestUnenforceableRiskLevelStopsTheStart(t *testing.T) {
	risky := func(level int) string {
		e := scripted(mcptest.Echo)
		e.RiskLevel = level
		return serversFile(t, map[string]entry{"calm": scripted(mcptest.Echo), "wild": e})
	}
	for name, s := range map[string]setup{
		"riskLevel 3 in the file":          {servers: risky(3)},
		"riskLevel 3 by a variable":        {servers: risky(1), env: []string{"MCP_SERVER_WILD_RISK_LEVEL=3"}},
		"invalid risk level by a variable": {servers: risky(1), env: []string{"MCP_SERVER_WILD_RISK_LEVEL=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"callyard", "worker"} {
				p := start(t, s.program(t, command))
				if code := p.wait(t, startWithin); code != 2 {
					t.Errorf("%s ends with code %d, want 2", command, code)
				}
				said := p.out.String()
				if !strings.Contains(said, "wild") || !strings.Contains(said, "riskLevel") || strings.Contains(said, "calm") {
					t.Errorf("%s does not name the server and its riskLevel: %s", command, said)
				}
			}
		})
	}
}
