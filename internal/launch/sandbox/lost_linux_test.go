package sandbox

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/pkg/schema"
)

// ownEngine is an engine of the test's own, next to the usual one, that may be
// killed.
type ownEngine struct {
	dir  string
	cmd  *exec.Cmd
	gone chan struct{}
}

func newOwnEngine(t *testing.T) *ownEngine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test starts a container engine of its own, which needs root; run it as root, as CI does")
	}
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // a short path: a socket's has to be
	if err != nil {
		t.Fatal(err)
	}
	o := &ownEngine{dir: dir}
	t.Cleanup(func() {
		o.end(syscall.SIGTERM)
		o.killLeft()
		o.unmount()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	o.start(t)
	return o
}

func (o *ownEngine) host() string { return "unix://" + o.dir + "/e.sock" }

func (o *ownEngine) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(o.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o.cmd = exec.Command("dockerd", "--data-root", o.dir+"/data", "--exec-root", o.dir+"/exec", "--pidfile", o.dir+"/pid",
		"-H", o.host(), "--bridge=none", "--iptables=false", "--containerd-namespace", "sandbox-test", "--containerd-plugins-namespace", "sandbox-test-plugins")
	o.cmd.Stdout, o.cmd.Stderr = log, log
	// In a network of its own: an engine without a bridge takes away that of others.
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := o.cmd.Start(); err != nil {
		t.Fatalf("this test starts a container engine of its own, which scripts/test.sh --setup brings: %v", err)
	}
	gone := make(chan struct{})
	o.gone = gone
	cmd := o.cmd
	go func() { defer close(gone); _ = cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(o.dir, "log"))
			t.Logf("%s", text[max(0, len(text)-6000):])
		}
	})
	polltest.Until(t, "the engine answers", func() bool {
		c := o.client(t)
		defer c.Close()
		_, err := c.Ping(context.Background(), client.PingOptions{})
		return err == nil
	})
}

// end ends the engine and waits for it. Its containerd dies with it, but may not
// be reaped here, and would be taken for alive.
func (o *ownEngine) end(sig syscall.Signal) {
	pidFile := filepath.Join(o.dir, "exec/containerd/containerd.pid")
	pid, _ := os.ReadFile(pidFile)
	_ = o.cmd.Process.Signal(sig)
	<-o.gone
	if sig != syscall.SIGKILL || len(pid) == 0 {
		return
	}
	for wait := time.NewTicker(10 * time.Millisecond); ; <-wait.C {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			wait.Stop()
			break
		}
	}
	_ = os.Remove(pidFile)
}

// killLeft kills what the engine left running: its shims, which carry the folder
// in their arguments, and their children.
func (o *ownEngine) killLeft() {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	shims := map[string]bool{}
	kill := func(proc string) {
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for _, proc := range procs {
		if line, err := os.ReadFile(proc + "/cmdline"); err == nil && strings.Contains(string(line), o.dir+"/exec/") {
			shims[filepath.Base(proc)] = true
		}
	}
	for _, proc := range procs {
		stat, err := os.ReadFile(proc + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && shims[fields[1]] {
			kill(proc)
		}
	}
	for shim := range shims {
		kill(shim)
	}
}

func (o *ownEngine) client(t *testing.T) *client.Client {
	t.Helper()
	return clientAt(t, o.host())
}

// unmount takes away what the engine leaves mounted.
func (o *ownEngine) unmount() {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], o.dir+"/") {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
}

// all returns the containers there are, whoever's.
func (o *ownEngine) all(t *testing.T) []string {
	t.Helper()
	c := o.client(t)
	defer c.Close()
	var names []string
	for _, item := range there(t, c, nil) {
		names = append(names, item.ID+" "+strings.Join(item.Names, " ")+" "+item.Status)
	}
	return names
}

func TestDockerEngineFailureEndsCallsAndRefusesStarts(t *testing.T) {
	own := newOwnEngine(t)
	c := own.client(t)
	image, err := imageOf(t.Context(), c, proberFile(), "prober:test")
	c.Close()
	if err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	e, err := Open(t.Context(), Options{Host: own.host(), Owner: owner(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Resolve("prober", Config{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = e.Pin(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if text := log.String(); strings.Contains(text, "that did not start") {
			t.Errorf("each start without an engine logs a container that cannot be removed:\n%s", text)
		}
	}()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		sandbox, err := e.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		k := opened(t, sandbox)
		answered := make(chan error, 1)
		go func() { _, err := k.tool("hang", nil); answered <- err }()
		own.end(sig)
		if err := <-answered; err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // the client waits for a minute
			t.Errorf("after %v the call ended with %v", sig, err)
		}
		t.Logf("after %v it %s", sig, ended(t, sandbox))
		sandbox.Stop(0)

		began := time.Now()
		none, err := e.Start(t.Context(), s)
		var fault *schema.Error
		if !errors.As(err, &fault) || fault.Kind != schema.KindUnavailable || !fault.Retryable || none != nil {
			t.Errorf("without an engine a start gives %v", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the refusal took %v", took)
		}
		own.start(t)
		again, err := e.Start(t.Context(), s)
		if err != nil {
			t.Fatalf("the engine is back, and a start gives %v", err)
		}
		if got, err := opened(t, again).tool("echo", map[string]string{"text": "back"}); err != nil || got != "back" {
			t.Errorf("%q, %v", got, err)
		}
		again.Stop(0)
	}

	// What survived the engine's kill is found by two looks.
	suspects, err := e.scan(t.Context(), nil, nil)
	if err == nil {
		_, err = e.scan(t.Context(), nil, suspects)
	}
	if err != nil {
		t.Error(err)
	}
	// What the engine is removing is dead and still listed.
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %q", left)
		}
	}()
	polltest.Until(t, "nothing being left", func() bool { left = own.all(t); return len(left) == 0 })

	// The image is taken away under the worker.
	c = own.client(t)
	defer c.Close()
	if _, err := c.ImageRemove(t.Context(), image, client.ImageRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if sandbox, err := e.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no longer has its image") {
		t.Errorf("without its image the server gives %v, %v", sandbox, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPoolLogsTheSameFailureOnce(t *testing.T) {
	var log logtest.Log
	p := &Pool[*mcpClient]{log: slog.New(slog.NewTextHandler(&log, nil)), again: time.NewTimer(time.Hour)} // no further start
	defer p.again.Stop()
	for _, text := range []string{"the engine does not respond", "the engine does not respond", "no such image", "no such image"} {
		p.failedLocked(errors.New(text))
	}
	if n := strings.Count(log.String(), "no container"); n != 2 {
		t.Errorf("two failures gave %d lines:\n%s", n, log.String())
	}
}
