package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/mcptest"
)

// privateEngine is a separate container engine, which the test may stop.
type privateEngine struct {
	dir  string
	cmd  *exec.Cmd
	gone chan struct{}
}

func newPrivateEngine(t *testing.T) *privateEngine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test starts a container engine of its own, which needs root; run it as root, as CI does")
	}
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // a short path: a socket's has to be
	if err != nil {
		t.Fatal(err)
	}
	e := &privateEngine{dir: dir}
	t.Cleanup(func() {
		e.stop()
		e.unmount()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	e.start(t)
	return e
}

func (e *privateEngine) host() string { return "unix://" + e.dir + "/e.sock" }

func (e *privateEngine) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	e.cmd = exec.Command("dockerd", "--data-root", e.dir+"/data", "--exec-root", e.dir+"/exec", "--pidfile", e.dir+"/pid", "--shutdown-timeout", "1",
		"-H", e.host(), "--bridge=none", "--iptables=false", "--containerd-namespace", "sandbox-e2e", "--containerd-plugins-namespace", "sandbox-e2e-plugins")
	e.cmd.Stdout, e.cmd.Stderr = log, log
	// In a separate network namespace: an engine without a bridge removes that of others.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := e.cmd.Start(); err != nil {
		t.Fatalf("this test starts a container engine of its own, which scripts/test.sh --setup brings: %v", err)
	}
	gone, cmd := make(chan struct{}), e.cmd
	e.gone = gone
	go func() { defer close(gone); _ = cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(e.dir, "log"))
			t.Logf("the engine said at last:\n%s", text[max(0, len(text)-4000):])
		}
	})
	eventually(t, startWithin, "the engine answers", func() error {
		_, err := docker(e.host(), "version")
		return err
	})
}

// stop stops the engine like an operator; its containers end with it.
func (e *privateEngine) stop() {
	_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-e.gone
}

// unmount unmounts file systems that the engine left.
func (e *privateEngine) unmount() {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], e.dir+"/") {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
}

func TestDockerEngineStopEndsCallAsUnknownAndRefusesOthers(t *testing.T) {
	engine, id := newPrivateEngine(t), serverID("lost")
	effects := filepath.Join(t.TempDir(), "effects")
	e := scripted(mcptest.Echo)
	e.RiskLevel, e.Docker = 3, inSandbox(t, engine.host(), mcptest.Echo, nil)
	d := startUp(t, setup{
		servers: serversFile(t, map[string]entry{id: e, "plain": scripted(mcptest.Echo)}),
		config:  "worker:\n  sandboxes:\n    engine: " + engine.host() + "\n", env: []string{quickStop},
	})
	d.waitServers(t, 1, id, "plain")
	over := d.hang(t, engine.host(), id)
	engine.stop()
	(<-over).problem(t, http.StatusGatewayTimeout, "outcome-unknown")

	effect := fmt.Sprintf(`{"path":%q,"id":"x"}`, effects)
	d.ask(t, "POST", toolPath(id, "effect"), effect).problem(t, http.StatusServiceUnavailable, "unavailable")
	d.eventually(t, soon, "saying that the engine is gone", func() error {
		if s := d.server(t, id); s.State != "error" || !strings.Contains(s.Error, "does not respond") {
			return fmt.Errorf("it is %q: %s", s.State, s.Error)
		}
		return nil
	})
	if p := d.ask(t, "POST", toolPath(id, "effect"), effect).problem(t, http.StatusServiceUnavailable, "unavailable"); !strings.Contains(p.Detail, "container") {
		t.Errorf("the refusal is %q", p.Detail)
	}
	d.call(t, "plain", "echo", `{"text":"still here"}`)

	engine.start(t)
	d.waitServers(t, 1, id)
	if environment(t, d.call(t, id, "echo", `{"text":"back"}`)) == nil {
		t.Error("it ran outside a container")
	}
	if _, err := os.Stat(effects); err == nil {
		t.Errorf("a call ran outside: %v", readEffects(t, effects))
	}
	d.stop(t)
	noSandboxes(t, engine.host(), id)
}

// If the reaper is killed too, other workers of the engine remove the containers.
func TestAnotherWorkerRemovesContainersOfKilledWorkerAndReaper(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	ids := map[string]string{"north": serverID("north"), "south": serverID("south")}
	workers := map[string]*workerProcess{}
	for zone, id := range ids {
		servers := serversFile(t, map[string]entry{id: sandboxed(t, mcptest.IgnoreEOF, map[string]any{"pool": 1})})
		workers[zone] = startWorker(t, setup{nats: nats.url, servers: servers, config: zoneConfig(zone)})
	}
	d := startFrontDoor(t, setup{nats: nats.url, env: []string{quickStop}})
	d.waitServers(t, 1, ids["north"], ids["south"])
	over := d.hang(t, "", ids["north"])
	guard := descendants(t, workers["north"].pid())
	if len(guard) != 1 {
		t.Fatalf("the worker has the processes %v, and only its guard is expected", guard)
	}
	if err := syscall.Kill(guard[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitUntilStopped(t, guard[0])
	began := time.Now()
	workers["north"].kill9(t)
	if err := syscall.Kill(guard[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for len(sandboxesOf(t, "", ids["north"])) > 0 {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("containers are left: %v", sandboxesOf(t, "", ids["north"]))
		}
	}
	t.Logf("they were gone after %v", time.Since(began).Round(10*time.Millisecond))
	(<-over).problem(t, http.StatusGatewayTimeout, "outcome-unknown")
	if environment(t, d.call(t, ids["south"], "echo", `{"text":"`+strconv.Itoa(len(ids))+`"}`)) == nil {
		t.Error("the other worker's call ran outside a container")
	}
	workers["south"].stop(t)
	noSandboxes(t, "", ids["south"])
}
