package fabric_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/fabric"
)

// project runs the small compose file with its only port published, until the test ends.
func project(t *testing.T) *fabric.Project {
	t.Helper()
	file := small()
	redis := file.Services["redis"]
	file.Networks["front"], redis.Networks, redis.Ports = file.Networks["none"], fabric.On("store", "front"), []string{"6379"}
	file.Services["redis"] = redis
	return opened(t, file)
}

// opened opens the project of a file until the test ends. Then nothing may be left of it.
func opened(t *testing.T, file fabric.Compose) *fabric.Project {
	t.Helper()
	p, err := fabric.OpenProject(t.Context(), file, fabric.ProjectOptions{Images: fabric.Images{"redis": redisImage(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if there, err := left(ownFilter()); err != nil || there != "" {
			t.Errorf("after the end this is left: %v\n%s", err, there)
		}
	})
	return p
}

// ping sends PING to Redis at a container's address.
func ping(t *testing.T, c *fabric.Container) error {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL(), "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}

func TestContainerIsKilledStoppedPausedAndRestarted(t *testing.T) {
	p := project(t)
	if err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := p.Container("redis")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ends := func(code int) {
		t.Helper()
		running, got, err := c.Running(t.Context())
		if err != nil || running || got != code {
			t.Errorf("running %v, code %d, %v; want the end with %d", running, got, err, code)
		}
	}
	must(ping(t, c))
	must(c.Kill(t.Context()))
	must(fabric.Until(t.Context(), func() error {
		if running, _, err := c.Running(t.Context()); err != nil || running {
			return fmt.Errorf("running %v, %w", running, err)
		}
		return nil
	}))
	ends(137)
	must(c.Start(t.Context()))
	must(fabric.Until(t.Context(), func() error { return ping(t, c) }))
	must(c.Pause(t.Context()))
	must(c.Resume(t.Context()))
	must(ping(t, c))
	must(c.Stop(t.Context(), time.Minute))
	ends(0)
	if text, err := c.Logs(t.Context(), time.Time{}); err != nil || strings.Count(text, "Ready to accept connections") != 2 || !strings.Contains(text, "bye bye") {
		t.Errorf("the log of two lives: %v %s", err, text)
	}
}

func TestContainerIsDisconnectedAndReconnected(t *testing.T) {
	file := small()
	one := file.Services["redis"]
	one.Command = append(one.Command, "--repl-ping-replica-period", "1")
	one.Volumes, one.Tmpfs = nil, []string{"/data:uid=999,gid=999"}
	two := one
	two.Command = append(slices.Clone(one.Command), "--replicaof", "redis-1", "6379", "--repl-timeout", "2")
	file.Services = map[string]fabric.Service{"redis-1": one, "redis-2": two}
	p := opened(t, file)
	if err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	main, replica := p.Container("redis-1"), p.Container("redis-2")
	says := func(words string) {
		t.Helper()
		if err := fabric.Until(t.Context(), func() error {
			text, err := replica.Logs(t.Context(), time.Time{})
			if err == nil && !strings.Contains(text, words) {
				err = fmt.Errorf("the replica does not say %q", words)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	says("sync: Finished with success")
	if err := main.Cut(t.Context(), "store"); err != nil {
		t.Fatal(err)
	}
	says("MASTER timeout")
	if running, _, err := main.Running(t.Context()); err != nil || !running {
		t.Errorf("who is cut off runs: %v, %v", running, err)
	}
	if err := main.Reconnect(t.Context(), "store"); err != nil {
		t.Fatal(err)
	}
	says("Successful partial resynchronization with master")
	if err := main.Cut(t.Context(), "front"); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a network that it is not on: %v", err)
	}
}

// redisImage returns the cheapest image.
func redisImage(t *testing.T) string {
	t.Helper()
	source, err := fabric.Source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	images, err := fabric.Build(t.Context(), source, "redis")
	if err != nil {
		t.Fatal(err)
	}
	return images["redis"]
}

// The engine restarts the front door again and again, so without this the start would end only
// after its time limit.
func TestFaultyPolicyEndsTheStartWithItsError(t *testing.T) {
	f, err := fabric.Open(t.Context(), fabric.Options{Policy: "rules: {"})
	if err == nil {
		t.Fatal("it started", f.Close())
	}
	for _, want := range []string{"does not accept its configuration", "policy.yaml:1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if there, err := left(ownFilter()); err != nil || there != "" {
		t.Errorf("after the end this is left: %v\n%s", err, there)
	}
}

func TestLeftoversOfAKilledTestAreRemoved(t *testing.T) {
	image := redisImage(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=killed", "CALLYARD_FABRIC_TEST_IMAGE="+image)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if !strings.HasPrefix(said, "ready") {
		t.Fatalf("the test that is to be killed says %q", said)
	}
	theirs := fmt.Sprintf("dev.callyard.fabric.pid=%d", child.Process.Pid)
	if there, err := left(theirs); err != nil || strings.Count(there, "\n") != 3 {
		t.Fatalf("a killed test is to leave three things, and it left: %v\n%s", err, there)
	}
	p, err := fabric.OpenProject(t.Context(), fabric.Compose{}, fabric.ProjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if there, err := left(theirs); err != nil || there != "" {
		t.Errorf("this is left: %v\n%s", err, there)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutDockerEngineErrorSaysWhatToDo(t *testing.T) {
	source, err := fabric.Source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=engineless", "CALLYARD_FABRIC_TEST_SOURCE="+source, "DOCKER_HOST=tcp://127.0.0.1:1")
	out, err := child.CombinedOutput()
	for _, want := range []string{"no container engine answers", "scripts/test.sh --setup", "DOCKER_HOST"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("it does not say %q: %v %s", want, err, out)
		}
	}
}

// failing is a test that has failed, in the view of a fabric.
type failing struct {
	testing.TB
	cleanups []func()
	said     strings.Builder
}

func (f *failing) Failed() bool                 { return true }
func (f *failing) Helper()                      {}
func (f *failing) Cleanup(c func())             { f.cleanups = append(f.cleanups, c) }
func (f *failing) Logf(format string, a ...any) { fmt.Fprintf(&f.said, format, a...) }

func TestFailingTestShowsContainerLogs(t *testing.T) {
	p := project(t)
	fails := &failing{TB: t}
	p.Watch(fails)
	if err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range fails.cleanups {
		c()
	}
	if said := fails.said.String(); !strings.Contains(said, "--- redis") || !strings.Contains(said, "Ready to accept connections") {
		t.Errorf("it shows %q", said)
	}
}
