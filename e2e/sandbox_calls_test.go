package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/mcptest"
)

// inContainer returns the environment that results from a container of the image report.
func inContainer(image string) map[string]any {
	return map[string]any{
		"risk_level": 3.0, "risk_description": "High risk - Docker execution required", "docker": true, "docker_image": image,
		"isolation": "container", "runtime": "runc",
	}
}

func TestHighRiskCallRunsInAContainerAndReportsIt(t *testing.T) {
	id, image := serverID("demo"), demoInSandbox(t)
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{id: {RiskLevel: 3, Docker: map[string]any{"image": image}}}), env: []string{quickStop}})
	d.waitServers(t, 1, id)
	result := d.call(t, id, "echo", `{"message":"from the sandbox"}`)
	if got := text(t, result); got != "Echo: from the sandbox" {
		t.Errorf("it answers %q", got)
	}
	if diff := cmp.Diff(inContainer(image), environment(t, result)); diff != "" {
		t.Errorf("where it ran (-want +got):\n%s", diff)
	}
	failed := d.call(t, id, "fail", `{"reason":"as told"}`)
	if object(t, failed)["isError"] != true || environment(t, failed) == nil {
		t.Errorf("an error of the tool is answered with %s", failed)
	}
	for _, path := range []string{"/servers", "/health"} {
		for _, item := range object(t, d.get(t, path))["servers"].([]any) {
			s := item.(map[string]any)
			if s["pid"] != 0.0 || s["running_in_docker"] != true || s["risk_level"] != 3.0 || s["connected"] != true {
				t.Errorf("GET %s: %v", path, s)
			}
		}
	}
	// The same call through the other endpoints.
	a := d.ask(t, "POST", "/calls", `{"server":"`+id+`","tool":"echo","arguments":{"message":"x"}}`)
	if a.status != http.StatusOK || environment(t, a.body) == nil {
		t.Errorf("POST /calls answers %d %s", a.status, a.body)
	}
	d.stop(t)
	noSandboxes(t, "", id)
}

func TestConcurrentSandboxedCallsSucceedAndLeaveNoContainer(t *testing.T) {
	t.Parallel()
	id, image := serverID("many"), demoInSandbox(t)
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{id: {RiskLevel: 3, Docker: map[string]any{"image": image, "pool": 2}}}), env: []string{quickStop}})
	d.waitServers(t, 1, id)
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := next.Add(1); i <= 100; i = next.Add(1) {
				want := fmt.Sprintf("Echo: %d", i)
				a, err := d.tryCall(id, "echo", fmt.Sprintf(`{"message":"%d"}`, i))
				if err != nil || a.status != http.StatusOK || !strings.Contains(string(a.body), want) || !strings.Contains(string(a.body), `"isolation":"container"`) {
					t.Errorf("call %d: %d %.500s, %v", i, a.status, a.body, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("100 sandboxed calls at 10 at once took %v", time.Since(began).Round(time.Millisecond))
	metrics := string(d.get(t, "/metrics"))
	if !strings.Contains(metrics, `callyard_sandboxes_started_total{server="`+id+`"} 1`) { // more than a hundred
		t.Errorf("the metrics do not count the containers")
	}
	// Check the host instead of the engine's lists of volumes and networks, because other tests
	// use the engine too.
	d.eventually(t, soon, "sandboxes in the pool", func() error {
		looked := 0
		for _, sandbox := range sandboxesOf(t, "", id) {
			has, err := docker("", "inspect", "--format", `{{range .Mounts}}{{.Type}} {{end}}{{.HostConfig.NetworkMode}}`, sandbox)
			if err != nil && !strings.Contains(err.Error(), "No such object") {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if looked++; strings.Contains(has, "volume") || !strings.HasSuffix(has, "none") {
				t.Errorf("a sandbox has %q", has)
			}
		}
		if looked == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	d.stop(t)
	noSandboxes(t, "", id)
}

func TestAHungSandboxIsRemovedAfterItsDeadline(t *testing.T) {
	id := serverID("hung")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{id: sandboxed(t, mcptest.IgnoreEOF, nil)}), env: []string{quickStop}})
	d.waitServers(t, 1, id)
	const timeout = 10 * time.Second // includes the start of the container
	began := time.Now()
	p := d.ask(t, "POST", "/calls", fmt.Sprintf(`{"server":%q,"tool":"sleep","arguments":{"ms":60000},"timeout_ms":%d}`, id, timeout.Milliseconds())).problem(t, http.StatusGatewayTimeout, "outcome-unknown")
	if !strings.Contains(p.Detail, "container, which was destroyed") {
		t.Errorf("the caller is told %q", p.Detail)
	}
	for len(sandboxesOf(t, "", id)) > 0 {
		if late := time.Since(began) - timeout; late > 20*time.Second { // far less than the duration of the tool
			t.Fatalf("the container is there %v after the deadline", late)
		}
	}
	d.eventually(t, soon, "counting the kill", func() error {
		if !strings.Contains(string(d.get(t, "/metrics")), `callyard_sandboxes_killed_total{reason="deadline",server="`+id+`"} 1`) {
			return fmt.Errorf("it is not counted")
		}
		return nil
	})
}

// hang starts a call that does not end and waits until it runs in a container.
func (d *door) hang(t testing.TB, host, id string) <-chan answer {
	t.Helper()
	over := make(chan answer, 1)
	go func() {
		a, _ := d.try("POST", "/calls", fmt.Sprintf(`{"server":%q,"tool":"sleep","arguments":{"ms":60000},"timeout_ms":60000}`, id))
		over <- a
	}()
	eventually(t, startWithin, "the call has a container", func() error {
		s := d.server(t, id)
		if sandboxes := sandboxesOf(t, host, id); len(s.Workers) == 0 || s.Workers[0].Sessions == 0 || len(sandboxes) == 0 {
			return fmt.Errorf("%d containers, and the server is %+v", len(sandboxes), s)
		}
		return nil
	})
	return over
}

func TestContainersOfAKilledWorkerAreRemoved(t *testing.T) {
	id := serverID("killed")
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{id: sandboxed(t, mcptest.IgnoreEOF, map[string]any{"pool": 2})})})
	d.waitServers(t, 1, id)
	over := d.hang(t, "", id)
	began := time.Now()
	d.kill9(t)
	<-over
	for len(sandboxesOf(t, "", id)) > 0 {
		if time.Since(began) > time.Minute {
			t.Fatalf("containers are left: %v", sandboxesOf(t, "", id))
		}
	}
	t.Logf("they were gone after %v", time.Since(began).Round(10*time.Millisecond))
}

func TestWithoutDockerEngineOrImageNothingRunsUnsandboxed(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	missing := scripted(mcptest.Echo)
	missing.RiskLevel, missing.Docker = 3, map[string]any{"image": "callyard-e2e/no-such-image:at-all"}
	wide := scripted(mcptest.Echo)
	wide.RiskLevel, wide.Docker = 3, map[string]any{"image": "callyard-e2e/no-such-image:at-all", "privileged": true}
	risky := scripted(mcptest.Echo) // its policy requires a container that it does not have
	halfway := scripted(mcptest.Echo)
	halfway.Docker = missing.Docker
	servers := serversFile(t, map[string]entry{"missing": missing, "wide": wide, "plain": scripted(mcptest.Echo), "risky": risky, "halfway": halfway})
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "rules:\n  - {name: sandboxes, match: {server: [risky, halfway], tool: effect}, sandbox: container}\n  - {name: rest, match: {server: [plain, risky, halfway]}, level: 1}\n")
	for name, c := range map[string]struct{ engine, says string }{
		"no image":  {"", "does not have; load or build it there"},
		"no engine": {"unix:///nowhere/docker.sock", "does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{servers: servers, env: []string{quickStop}, flags: []string{"--policy", policy}}
			if c.engine != "" {
				s.env = append(s.env, "CALLYARD_WORKER_SANDBOXES_ENGINE="+c.engine)
			}
			d := startUp(t, s)
			d.waitServers(t, 1, "plain", "risky", "halfway")
			d.eventually(t, startWithin, "saying why", func() error {
				for id, says := range map[string]string{"missing": c.says, "wide": "privileged"} {
					if s := d.server(t, id); s.State != "error" || s.Connected || !strings.Contains(s.Error, says) {
						return fmt.Errorf("%s is %+v", id, s)
					}
				}
				if s := d.server(t, "halfway"); s.Sandbox == nil || s.Sandbox.Ready || !strings.Contains(s.Sandbox.Error, c.says) {
					return fmt.Errorf("the container of halfway is %+v", s.Sandbox)
				}
				return nil
			})
			effect := fmt.Sprintf(`{"path":%q,"id":"x"}`, effects)
			for id, says := range map[string]string{"missing": c.says, "wide": "privileged", "halfway": c.says} {
				if p := d.ask(t, "POST", toolPath(id, "effect"), effect).problem(t, http.StatusServiceUnavailable, "unavailable"); !strings.Contains(p.Detail, says) {
					t.Errorf("%s refuses with %q", id, p.Detail)
				}
			}
			if p := d.ask(t, "POST", toolPath("risky", "effect"), effect).problem(t, http.StatusForbidden, "forbidden"); !strings.Contains(p.Detail, "docker section") {
				t.Errorf("risky refuses with %q", p.Detail)
			}
			d.call(t, "plain", "echo", `{"text":"still here"}`)
			d.call(t, "halfway", "echo", `{"text":"low risk"}`)
			if _, err := os.Stat(effects); err == nil {
				t.Errorf("a call ran outside: %v", readEffects(t, effects))
			}
		})
	}
}

func TestServerIsSandboxedForHighRiskCallsOnly(t *testing.T) {
	id := serverID("mixed")
	e := scripted(mcptest.Echo)
	e.Docker = inSandbox(t, "", mcptest.Echo, nil)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, fmt.Sprintf(`
rules:
  - {name: writes in a sandbox, match: {server: %[1]s, tool: effect}, level: 3}
  - {name: asked and sandboxed, match: {server: %[1]s, tool: add}, level: 3, approval: {by: caller}}
  - {name: the rest, match: {server: %[1]s}, level: 1}
`, id))
	d := startUp(t, setup{servers: serversFile(t, map[string]entry{id: e}), flags: []string{"--policy", policy}, env: []string{quickStop}})
	d.waitServers(t, 1, id)
	d.eventually(t, startWithin, "having a container", func() error {
		if s := d.server(t, id); s.Sandbox == nil || !s.Sandbox.Ready || s.PID == 0 {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	if env := environment(t, d.call(t, id, "echo", `{"text":"low"}`)); env != nil {
		t.Errorf("a call of low risk says that it ran in %v", env)
	}
	// The path exists on the host and, separately, in the container.
	path := filepath.Join("/tmp", id)
	if diff := cmp.Diff(inContainer(scriptedImage), environment(t, d.call(t, id, "effect", fmt.Sprintf(`{"path":%q,"id":"x"}`, path)))); diff != "" {
		t.Errorf("a call of high risk (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("the effect of a sandboxed call is on the host: %v", os.Remove(path))
	}
	// A held call runs in a container too after its confirmation.
	h := d.hold(t, id, "add", `{"a":1,"b":2}`)
	if h.Level != 3 {
		t.Errorf("the confirmation is for level %d", h.Level)
	}
	a := d.confirm(t, h.ID, "true")
	if a.status != http.StatusOK || environment(t, a.body) == nil || text(t, a.body) != "3" {
		t.Errorf("confirmed: %d %s", a.status, a.body)
	}
	d.stop(t)
	noSandboxes(t, "", id)
}

func TestADockerSectionOfMCPBridgeWorks(t *testing.T) {
	file, id := filepath.Join(t.TempDir(), "mcp_config.json"), serverID("bridge")
	scriptedInSandbox(t, "")
	write(t, file, fmt.Sprintf(`{"mcpServers": {%q: {
		"command": "/scripted-server", "args": ["echo"], "env": {"FROM_ENTRY": "1"}, "riskLevel": 3,
		"docker": {"image": %q, "network": "none", "env": {"FROM_DOCKER": "2"}}
	}, "byvar": {"command": "/scripted-server", "args": ["echo"], "riskLevel": 1}}}`, id, scriptedImage))
	d := startUp(t, setup{env: []string{
		"MCP_CONFIG_PATH=" + file, "MCP_SERVER_BYVAR_RISK_LEVEL=3", fmt.Sprintf(`MCP_SERVER_BYVAR_DOCKER_CONFIG={"image":%q}`, scriptedImage), quickStop,
	}})
	d.waitServers(t, 1, id, "byvar")
	result := d.call(t, id, "env", `{}`)
	if got := text(t, result); !strings.Contains(got, "FROM_ENTRY=1") || !strings.Contains(got, "FROM_DOCKER=2") || strings.Contains(got, "MCP_CONFIG_PATH") {
		t.Errorf("its environment is %s", got)
	}
	if environment(t, result)["docker_image"] != scriptedImage {
		t.Errorf("it says %v", environment(t, result))
	}
	if environment(t, d.call(t, "byvar", "echo", `{"text":"x"}`)) == nil {
		t.Error("the server of the variable ran outside a container")
	}
}

func TestAServerOfHighRiskCanBeAddedAndRemoved(t *testing.T) {
	id, image := serverID("added"), demoInSandbox(t)
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{"fixed": scripted(mcptest.Echo)}),
		env:     []string{quickStop, "CALLYARD_FRONT_DOOR_ADD_SERVERS=true", "CALLYARD_WORKER_API_SERVERS=true"},
	})
	d.waitServers(t, 1, "fixed")
	for _, docker := range []string{``, `,"docker":{}`, `,"docker":{"image":""}`, `,"docker":{"image":"` + image + `","network":"host"}`, `,"docker":{"image":"` + image + `","volumes":["/:/host"]}`} {
		d.ask(t, "POST", "/servers", `{"id":"no","command":"/server","riskLevel":3`+docker+`}`).problem(t, http.StatusBadRequest, "invalid-request")
	}
	a := d.ask(t, "POST", "/servers", `{"id":"`+id+`","riskLevel":3,"docker":{"image":"`+image+`","pool":1}}`)
	want := map[string]any{"id": id, "status": "connected", "pid": 0.0, "risk_level": 3.0, "risk_description": "High risk - Docker execution required", "running_in_docker": true}
	if diff := cmp.Diff(want, object(t, a.body)); a.status != http.StatusCreated || diff != "" {
		t.Fatalf("POST /servers answers %d (-want +got):\n%s", a.status, diff)
	}
	if environment(t, d.call(t, id, "echo", `{"message":"x"}`)) == nil {
		t.Error("it ran outside a container")
	}
	if a := d.ask(t, "DELETE", "/servers/"+id, ""); a.status != http.StatusOK {
		t.Errorf("DELETE answers %d %s", a.status, a.body)
	}
	noSandboxes(t, "", id)
}

func TestConfigCheckShowsSandboxesAndRefusesUnsafeOnes(t *testing.T) {
	check := func(docker map[string]any) (string, int) {
		t.Helper()
		p := start(t, program{path: filepath.Join(bin(t), "callyard"), dir: t.TempDir(), args: []string{"config", "check", "--servers",
			serversFile(t, map[string]entry{"b": {RiskLevel: 3, Docker: docker}})}})
		code := p.wait(t, startWithin)
		return p.out.String(), code
	}
	said, code := check(map[string]any{"image": "some/image:1", "memory": 64 << 20, "network": "bridge", "allow": []string{"network:bridge"}})
	for _, want := range []string{"server b: every call runs in a container", "image: some/image:1 (configured)", "memory: 64 MiB, swap included (configured)", "capabilities: none (default)", `less isolated than recommended, because docker.allow contains "network:bridge"`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if code != 0 {
		t.Errorf("it ends with code %d: %s", code, said)
	}
	if said, code := check(map[string]any{"image": "some/image:1", "network": "host"}); code == 0 || !strings.Contains(said, "docker.network") {
		t.Errorf("a wide sandbox: code %d, %s", code, said)
	}
}
