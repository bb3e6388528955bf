package bwrap

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/launch"
)

// attempts are those of package sandbox. Of them a sandbox lets through what its package
// comment says: starting programs from /tmp.
var attempts = []string{
	"interfaces", "route-public", "route-cloud", "host-gateway", "raw-socket", "packet-socket", "alg-socket", "vsock", "rxrpc-socket",
	"write-root", "write-hosts", "write-own", "write-kernel", "write-cgroup", "shared-memory", "fill-disk", "many-files",
	"root-user", "capabilities", "new-rights", "bounding-set", "mount", "user-namespace", "mknod", "chown", "hostname", "clock",
	"ptrace", "io-uring", "userfaultfd", "bpf", "perf", "keyring", "kernel-module", "engine-socket", "devices", "kernel-memory",
	"other-processes", "fork-bomb",
	"chroot", // where it works nothing works after it
}

func TestEscapeAttemptsAreBlocked(t *testing.T) {
	m, dir := maker(t), program(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	k := start(t, m, proberSpec(t, dir, nil))
	for _, name := range attempts {
		if got := k.must(t, name, map[string]string{"address": l.Addr().String()}); !strings.HasPrefix(got, "blocked: ") {
			t.Errorf("%s got out of the sandbox: %s", name, got)
		}
	}
	if got := k.must(t, "resolve", map[string]string{"name": "localhost.example", "address": l.Addr().String()}); !strings.HasPrefix(got, "blocked: ") {
		t.Errorf("looking a name up: %s", got)
	}
}

func TestSandboxHasOnlyItsOwnEnvironment(t *testing.T) {
	t.Setenv("HOST_SECRET", "do-not-show")
	k := start(t, maker(t), proberSpec(t, program(t), func(_ *Config, p *Program) { p.Env = map[string]string{"API_KEY": "for the server"} }))
	got := regexp.MustCompile("(?m)^CALLYARD_COOKIE=[0-9a-z]+\\.1\n").ReplaceAllString(k.must(t, "env", nil), "<the mark>\n")
	if want := "API_KEY=for the server\n<the mark>\nHOME=/tmp\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=/tmp\nTZ=UTC"; got != want {
		t.Errorf("the environment is\n%s\nwant\n%s", got, want)
	}
}

func TestNoFilesRemainForTheNextSandbox(t *testing.T) {
	m, s := maker(t), proberSpec(t, program(t), nil)
	for range 2 {
		k := start(t, m, s)
		if got := k.must(t, "leave", nil); got != "clean" {
			t.Errorf("it is %s", got)
		}
		k.p.Stop(0)
	}
}

func TestMemoryAndForkBombsAreStopped(t *testing.T) {
	m, dir := maker(t), program(t)
	neighbour := start(t, m, proberSpec(t, dir, nil))
	answers := func() {
		t.Helper()
		if got := neighbour.must(t, "echo", map[string]string{"text": "x"}); got != "x" {
			t.Errorf("the neighbour answers %q", got)
		}
	}
	memory := start(t, m, proberSpec(t, dir, nil))
	if got, err := memory.tool("memory-bomb", nil); err == nil {
		t.Errorf("a memory bomb came to its end: %s", got)
	}
	t.Logf("the memory bomb %s", ended(t, memory.p))
	answers()

	processes := start(t, m, proberSpec(t, dir, nil))
	gone := make(chan error, 1)
	go func() { _, err := processes.tool("processes-bomb", nil); gone <- err }()
	answers()
	processes.p.Limit(time.Now().Add(500 * time.Millisecond))
	// Where no more processes may be, the Go runtime gets no thread either, and may end
	// the bomb with code 2 before its time is up.
	how, cause := ended(t, processes.p), processes.p.Cause()
	if atItsTime := strings.Contains(how, "time limit") && cause == Deadline; !atItsTime && (how != "exited with code 2" || cause != "") {
		t.Errorf("the process bomb %s, %q", how, cause)
	}
	if err := <-gone; err == nil {
		t.Error("a process bomb came to its end")
	}
	answers()
}

func TestHungSandboxIsKilledAtItsTimeLimit(t *testing.T) {
	mark := "BWRAP_TEST_MARK=" + t.TempDir()
	name, value, _ := strings.Cut(mark, "=")
	k := start(t, maker(t), proberSpec(t, program(t), func(c *Config, p *Program) {
		c.Time, p.Args, p.Env = 300*time.Millisecond, []string{"deaf"}, map[string]string{name: value}
	}))
	if how := ended(t, k.p); !strings.Contains(how, "time limit") || k.p.Cause() != Deadline {
		t.Errorf("it %s, %q", how, k.p.Cause())
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("the processes %v are left", left)
	}
}

func TestExitCodeOfAServerIsReported(t *testing.T) {
	k := start(t, maker(t), proberSpec(t, program(t), func(_ *Config, p *Program) { p.Args = []string{"exit"} }))
	if how := ended(t, k.p); how != "exited with code 7" || k.p.Cause() != "" {
		t.Errorf("it %s, %q", how, k.p.Cause())
	}
}

// workerPart is a worker with a sandbox, to be killed.
func workerPart(dir string) int {
	l, err := launch.New(quiet())
	if err != nil {
		return 1
	}
	m := &Maker{o: Options{Launcher: l}, path: "bwrap"}
	s, err := Resolve("s", Config{Volumes: []string{dir + ":/srv/prober:ro"}}, Program{
		Command: "/srv/prober/prober", Args: []string{"deaf"}, Env: map[string]string{"BWRAP_TEST_MARK": dir},
	})
	if err != nil {
		return 1
	}
	if without := filepath.Join(dir, "bwrap"); exists(without) {
		m.path = without
	}
	sandbox, err := m.Start(context.Background(), s)
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	fmt.Println(sandbox.PID())
	select {}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestSandboxEndsWithItsKilledWorker(t *testing.T) {
	dir := program(t)
	worker, _ := startWorkerPart(t, dir)
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
}

// TestSandboxWithoutBwrapEndsWithItsKilledWorker is for a worker that is killed while bwrap lets the
// server start: bwrap ends before the sandbox asks for a signal at its end.
func TestSandboxWithoutBwrapEndsWithItsKilledWorker(t *testing.T) {
	dir := program(t)
	const without = "#!/bin/bash\nfor a; do [ \"$a\" = --die-with-parent ] || args+=(\"$a\"); done\nexec bwrap \"${args[@]}\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(without), 0o755); err != nil {
		t.Fatal(err)
	}
	worker, bwrap := startWorkerPart(t, dir)
	if err := worker.Signal(syscall.SIGSTOP); err != nil { // the worker would end the sandbox
		t.Fatal(err)
	}
	if err := syscall.Kill(bwrap, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for len(marked("BWRAP_TEST_MARK="+dir)) > 1 { // until bwrap has ended
		runtime.Gosched()
	}
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
}

// startWorkerPart starts [workerPart], and returns its process and the pid of bwrap.
func startWorkerPart(t *testing.T, dir string) (worker *os.Process, bwrap int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "bwrap-test-worker", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if _, err := fmt.Fscan(out, &bwrap); err != nil {
		t.Fatal(err)
	}
	if len(marked("BWRAP_TEST_MARK="+dir)) == 0 {
		t.Error("the sandbox is not to be found, so this proves nothing")
	}
	return cmd.Process, bwrap
}

// gone waits until nothing of the sandbox is left.
func gone(t *testing.T, dir string) {
	t.Helper()
	began := time.Now()
	for len(marked("BWRAP_TEST_MARK="+dir)) > 0 {
		if time.Since(began) > patience {
			t.Fatalf("the processes %v are left", marked("BWRAP_TEST_MARK="+dir))
		}
	}
	t.Logf("it was gone after %v", time.Since(began).Round(time.Millisecond))
}

func TestWithoutBubblewrapStartIsRefused(t *testing.T) {
	old := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho bubblewrap 0.4.1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, says := range map[string]string{"callyard-no-such-bwrap": "apt-get install bubblewrap", old: "0.8.0 or newer", "/bin/false": "0.8.0 or newer"} {
		if _, err := Open(t.Context(), Options{Program: program}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", program, err)
		}
	}
	// A program that makes no sandbox is not trusted with the server.
	m := maker(t)
	m.path = "/bin/true"
	if _, err := m.Start(t.Context(), proberSpec(t, program(t), nil)); err == nil || !strings.Contains(err.Error(), "not run without") {
		t.Errorf("it starts with %v", err)
	}
}

func TestVolumeReplacedByASymlinkIsNotMounted(t *testing.T) {
	m := maker(t)
	open := program(t)
	dir := filepath.Join(open, "shared") // bwrap's user has to get there
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := proberSpec(t, open, func(c *Config, _ *Program) { c.Volumes = append(c.Volumes, dir+":/data:ro") })
	start(t, m, s)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir); err != nil {
		t.Fatal(err)
	}
	p, err := m.Start(t.Context(), s)
	if err == nil {
		p.Stop(0)
		t.Fatal("a sandbox has what the link leads to")
	}
	if !strings.Contains(err.Error(), dir+" was replaced with a link to /etc") {
		t.Errorf("the error is: %v", err)
	}
}
