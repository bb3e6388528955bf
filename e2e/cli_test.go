package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
	"github.com/callyard/callyard/pkg/bus/porttest"
)

// command runs callyard to its end.
func command(t testing.TB, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "callyard"), args...)
	cmd.Env = append(cleanEnviron(), env...)
	cmd.Dir = t.TempDir()
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	fault := cmd.Run()
	var exit *exec.ExitError
	if fault != nil && !errors.As(fault, &exit) {
		t.Fatalf("callyard %s: %v", strings.Join(args, " "), fault)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

func TestEveryCommandHasDocumentedOutputAndExitCode(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"tools": scripted(mcptest.Echo), "gone": scripted(mcptest.Exit)}), env: []string{quickStop}})
	up.waitServers(t, 1, "tools")
	if a := up.ask(t, "PATCH", toolPath("tools", "env"), `{"enabled":false,"reason":"it shows too much"}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	env := []string{"CALLYARD_URL=" + up.url}
	nowhere := []string{"CALLYARD_URL=http://" + porttest.Address(t)}
	for _, c := range []struct {
		env     []string
		args    string // separated by "|"
		code    int
		said    string // expected somewhere in the output
		on      string // the exact stdout, if specified
		notWith string // must not be in the output
	}{
		{args: `call|tools|echo|{"text":"hello"}`, on: "hello\n"},
		{args: `call|tools|echo|text=hello`, on: "hello\n"},
		{args: `call|tools|echo|{"text":"hello"}|--json`, said: `{"content":[{"type":"text","text":"hello"}]}`},
		{args: `call|tools|add|a=2|b=40`, said: "42"},
		{args: `call|tools|fail`, code: 1, said: mcptest.FailText},
		{args: `call|tools`, code: 2, said: "Usage"},
		{args: `call|tools|echo|{"text":`, code: 2},
		{args: `call|tools|echo|text=x|--no-such-flag`, code: 2, said: "no-such-flag"},
		{args: `no-such-command`, code: 2, said: "no-such-command"},
		{args: `call|tools|echo|text=7`, code: 3, said: "/text"},
		{args: `call|tools|nothing`, code: 3, said: `no tool "nothing"`},
		{args: `call|nobody|echo`, code: 3, said: `no server "nobody"`},
		{args: `call|tools|env`, code: 3, said: "it shows too much"},
		{args: `call|tools|crash`, code: 4, said: "may have run"},
		{args: `call|gone|echo|text=x`, code: 4, said: "not ready"},
		{env: nowhere, args: `call|tools|echo|text=x`, code: 4, said: "callyard up"},
		{env: nowhere, args: `servers`, code: 4, said: "not reachable"},
		{args: `servers`, said: "tools"},
		{args: `servers|show|gone`, said: mcptest.ExitText},
		{args: `servers|show|nobody`, code: 3, said: `no server "nobody"`},
		{args: `tools`, said: "echo"},
		{args: `tools|tools|--search|adds`, said: "add", notWith: "sleep"},
		{args: `tools|show|tools|echo`, said: "Answers the text"},
		{args: `tools|disable|tools|sleep|--reason|too slow`, said: "sleep"},
		{args: `call|tools|sleep|ms=1`, code: 3, said: "too slow"},
		{args: `tools|enable|tools|sleep`, said: "sleep"},
		{args: `call|tools|sleep|ms=1`, on: "slept 1 ms\n"},
		{args: `workers`, said: "worker"},
		{args: `keys|new|night`, said: "sha256:"},
		{args: `config|check`, said: "The configuration is valid"},
		{args: `--version`, said: "callyard"},
		{args: `--help`, said: "up"},
	} {
		if c.env == nil {
			c.env = env
		}
		code, stdout, stderr := command(t, c.env, strings.Split(c.args, "|")...)
		if code != c.code || !strings.Contains(stdout+stderr, c.said) || c.on != "" && stdout != c.on {
			t.Errorf("callyard %s: code %d, want %d and %q\nstdout: %s\nstderr: %s", c.args, code, c.code, c.said+c.on, stdout, stderr)
		}
		if c.notWith != "" && strings.Contains(stdout, c.notWith) {
			t.Errorf("callyard %s prints %q: %s", c.args, c.notWith, stdout)
		}
		if c.code == 0 && strings.Contains(stderr, "rror") {
			t.Errorf("callyard %s went well and says %s", c.args, stderr)
		}
	}
	for _, list := range []string{"servers", "tools", "workers"} {
		code, stdout, _ := command(t, env, list, "--json")
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("callyard %s --json: code %d, %s", list, code, stdout)
		}
	}
}

func TestAllConfigFaultsAreReportedTogetherWithPosition(t *testing.T) {
	dir := t.TempDir()
	config, servers := filepath.Join(dir, "callyard.yaml"), filepath.Join(dir, "mcp.json")
	write(t, config, "front_door:\n  listn: 127.0.0.1:1\n  call_timeout: fast\nworker:\n  sessions: many\n")
	write(t, servers, `{"mcpServers":{"x":{"command":"true","riskLvl":3}}}`)
	for _, args := range [][]string{{"config", "check", "--config", config}, {"up", "--config", config}} {
		code, _, said := command(t, []string{"CALLYARD_WORKER_IN_FLIGHT=lots"}, args...)
		if code != 2 {
			t.Errorf("callyard %v ends with %d", args, code)
		}
		for _, part := range []string{"callyard.yaml:2", "front_door.listn", `did you mean "listen"`, "callyard.yaml:3", "call_timeout", "callyard.yaml:5", "worker.sessions", "CALLYARD_WORKER_IN_FLIGHT"} {
			if !strings.Contains(said, part) {
				t.Errorf("callyard %v does not say %s: %s", args, part, said)
			}
		}
	}
	if code, _, said := command(t, nil, "config", "check", "--servers", servers); code != 2 || !strings.Contains(said, "riskLevel") || !strings.Contains(said, "mcp.json:1") {
		t.Errorf("a misspelt risk level: code %d, %s", code, said)
	}
	if code, _, said := command(t, nil, "up", "--listen", "0.0.0.0:0"); code == 0 || !strings.Contains(said, "API keys") {
		t.Errorf("listening for everybody without keys: code %d, %s", code, said)
	}
}

func TestWithoutAPIKeyAccessIsRefused(t *testing.T) {
	_, made, _ := command(t, nil, "keys", "new", "night", "--json")
	var k struct {
		Key   string `json:"key"`
		Entry struct {
			Name string `json:"name"`
			Hash string `json:"hash"`
		} `json:"entry"`
	}
	decode(t, []byte(made), &k)
	config := "front_door:\n  keys:\n    - {name: night, hash: \"" + k.Entry.Hash + "\"}\n"
	up := startUp(t, setup{config: config, env: []string{quickStop}})
	keyFile := filepath.Join(t.TempDir(), "key")
	write(t, keyFile, k.Key+"\n")
	eventually(t, startWithin, "the demo server is ready", func() error {
		a := up.ask(t, "POST", toolPath("demo", "echo"), `{"message":"hi"}`, "Authorization: Bearer "+k.Key)
		if a.status != 200 {
			return &refusal{a}
		}
		return nil
	})
	for want, headers := range map[int][]string{200: {"X-API-Key: " + k.Key}, 401: {"Authorization: Bearer " + k.Key + "x"}} {
		if a := up.ask(t, "POST", toolPath("demo", "echo"), `{"message":"hi"}`, headers...); a.status != want {
			t.Errorf("status %d, want %d: %s", a.status, want, a.body)
		}
	}
	up.ask(t, "POST", toolPath("demo", "echo"), `{"message":"hi"}`).problem(t, 401, "unauthenticated")
	up.ask(t, "GET", "/servers", "").problem(t, 401, "unauthenticated")
	url := "CALLYARD_URL=" + up.url
	if code, out, said := command(t, []string{url, "CALLYARD_KEY_FILE=" + keyFile}, "call", "demo", "echo", "message=hi"); code != 0 || out != "Echo: hi\n" {
		t.Errorf("with the key: code %d, %s %s", code, out, said)
	}
	if code, _, said := command(t, []string{url}, "call", "demo", "echo", "message=hi"); code != 3 || !strings.Contains(said, "CALLYARD_KEY") {
		t.Errorf("without a key: code %d, %s", code, said)
	}
	if strings.Contains(up.out.String(), k.Key) {
		t.Error("the log holds the key")
	}
}

func TestTheLoadGeneratorMeasuresACallyardThatRuns(t *testing.T) {
	withBench(t)
	up := startUp(t, setup{env: []string{quickStop}})
	up.waitServers(t, 1, "demo")
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, nil, "--url", up.url, "bench", "demo", "echo", `{"message":"hi"}`,
		"--quick", "-c", "2", "--duration", "200ms", "--warmup", "50ms", "--out", out)
	if code != 0 || !strings.Contains(stdout, "callyard") {
		t.Fatalf("bench ends with %d\n%s\n%s", code, stdout, stderr)
	}
	for _, name := range []string{"bench.json", "bench.png"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("there is no %s: %v", name, err)
		}
	}
}
